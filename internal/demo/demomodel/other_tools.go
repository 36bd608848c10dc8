package demomodel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// unlisted holds the tools that are not listed to people: the tools that every agent has, and the preview of the shop's
// refunds.
var unlisted = []string{"ask_people", "about_the_asker", "preview_refund"}

// withoutRules returns the tools for which this package has no rules, sorted by name. The model calls a tool without
// rules only if a person writes the call out, as in "call files.read_file path=a.txt".
func (b toolbox) withoutRules() []Tool {
	var out []Tool
	for _, t := range b.offered {
		if b.kindOf(t.Name) == "" && !slices.Contains(unlisted, t.Name) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(x, y Tool) int { return strings.Compare(x.Name, y.Name) })
	return out
}

// The method "meant" returns the tool that a person names. The person can use the offered name, or the name in the
// policy (files.read_file for files_read_file). The person can also use the end of the name, if no other tool's name
// has the same end.
func (b toolbox) meant(name string) (string, bool) {
	if b.names[name] {
		return name, true
	}
	if wire := strings.ReplaceAll(name, ".", "_"); b.names[wire] {
		return wire, true
	}
	found := ""
	for _, t := range b.offered {
		if strings.HasSuffix(t.Name, "_"+name) {
			if found != "" {
				return "", false
			}
			found = t.Name
		}
	}
	return found, found != ""
}

// inputs is the schema of a tool's arguments.
type inputs struct {
	Properties map[string]struct {
		Type any `json:"type"`
	} `json:"properties"`
	Required []string `json:"required"`
}

func (b toolbox) inputs(name string) inputs {
	var in inputs
	for _, t := range b.offered {
		if t.Name == name {
			_ = json.Unmarshal(t.Parameters, &in) // without a schema the arguments are unknown
		}
	}
	return in
}

// example returns an example of a written-out call.
func (b toolbox) example(name string) string {
	in := b.inputs(name)
	names := slices.Clone(in.Required)
	if len(names) == 0 {
		for n := range in.Properties {
			names = append(names, n)
		}
		slices.Sort(names)
		names = names[:min(len(names), 2)]
	}
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = fmt.Sprintf("%s=…", n)
	}
	return strings.TrimSpace("call " + name + " " + strings.Join(parts, " "))
}

var (
	pair    = re(`^([a-zA-Z_][a-zA-Z0-9_]*)\s*[=:]\s*("(?:[^"\\]|\\.)*"|“[^”]*”|'[^']*'|[^\s,]+)`)
	between = re(`^(?:\s|,|;|and\b|with\b)+`)
)

// The method "written" parses arguments of the form name=value. Each value is one word, or a text in quotes. If some of
// the text is not an argument, ok is false.
func (in inputs) written(text string) (arguments string, ok bool) {
	var parts []string
	for rest := strings.TrimSpace(text); rest != ""; {
		m := pair.FindStringSubmatch(rest)
		if m == nil {
			return "", false
		}
		parts = append(parts, textArg("", m[1]).value+":"+in.value(m[1], m[2]))
		rest = rest[len(m[0]):]
		gap := between.FindString(rest)
		if rest != "" && gap == "" {
			return "", false
		}
		rest = rest[len(gap):]
	}
	return "{" + strings.Join(parts, ",") + "}", true
}

// value writes an argument's value as JSON. A value that is already valid JSON stays as it is, if it is in quotes or if
// its type in the schema is not string. Every other value becomes a JSON string.
func (in inputs) value(name, word string) string {
	if strings.HasPrefix(word, `"`) && json.Valid([]byte(word)) {
		return word
	}
	word = strings.Trim(word, `"“”'`)
	if kind, text := in.Properties[name].Type.(string); text && kind != "string" && json.Valid([]byte(word)) {
		return word
	}
	return textArg("", word).value
}

// handleVerbatim makes a call that a person has written out.
func (d *responder) handleVerbatim(w *request) {
	name, ok := d.tools.meant(w.tool)
	if !ok {
		d.notes = append(d.notes, fmt.Sprintf("No tool named %s is offered to me here.%s", w.tool, d.others()))
		return
	}
	for i, c := range d.t.done {
		if !d.claimed[i] && c.Name == name {
			d.claimed[i] = true
			d.report(w, i)
			return
		}
	}
	arguments := w.verbatim
	if !strings.HasPrefix(arguments, "{") {
		in := d.tools.inputs(name)
		if arguments, ok = in.written(arguments); !ok || arguments == "{}" && len(in.Required) > 0 {
			d.notes = append(d.notes, fmt.Sprintf("I need the arguments of %s as JSON, or each with its name: “%s”, with a value of several words in quotes.", name, d.tools.example(name)))
			return
		}
	}
	d.queue(Call{Name: name, Arguments: arguments})
}

// mostNamed limits how many tools without rules an answer names.
const mostNamed = 12

// The method "others" returns a sentence that names the tools without rules and says how to call them. If there are no
// such tools, the sentence is empty.
func (d *responder) others() string {
	others := d.tools.withoutRules()
	if len(others) == 0 {
		return ""
	}
	var names []string
	for _, t := range others[:min(len(others), mostNamed)] {
		names = append(names, t.Name)
	}
	more := ""
	if n := len(others) - mostNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf(" I know no rules for %s%s, but call them when you write it out: “%s”.", strings.Join(names, ", "), more, d.tools.example(others[0].Name))
}
