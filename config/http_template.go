package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"countersign/config/yamldoc"
)

// Template is a text with placeholders for a call's arguments and for environment variables.
type Template []Piece

// Piece is a part of a template: literal text, or the name of a placeholder.
type Piece struct {
	Text     string
	Variable string // an environment variable
	Argument string // an argument of the call
}

// String returns the template in its source form.
func (t Template) String() string {
	var b strings.Builder
	for _, p := range t {
		switch {
		case p.Variable != "":
			b.WriteString("${" + p.Variable + "}")
		case p.Argument != "":
			b.WriteString("{" + p.Argument + "}")
		default:
			b.WriteString(special.ReplaceAllStringFunc(p.Text, func(s string) string { return s[:1] + s }))
		}
	}
	return b.String()
}

// Arguments lists the distinct arguments of the template, in order.
func (t Template) Arguments() []string {
	var names []string
	for _, p := range t {
		if p.Argument != "" && !slices.Contains(names, p.Argument) {
			names = append(names, p.Argument)
		}
	}
	return names
}

// Variables lists the distinct environment variables of the template.
func (t Template) Variables() []string {
	var names []string
	for _, p := range t {
		if p.Variable != "" && !slices.Contains(names, p.Variable) {
			names = append(names, p.Variable)
		}
	}
	return names
}

// argumentName matches the valid names of arguments in placeholders.
var argumentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// gap matches everything that is not literal text: ${NAME}, {name}, {{, }}, and the escaped form $${…}.
var gap = regexp.MustCompile(`\$\$\{[^}]*\}?|\$\{[^}]*\}?|\{\{|\}\}|\{[^}]*\}?|\}`)

// special matches the parts of a literal text that must be escaped. A second $ escapes ${, and a second brace escapes
// a brace.
var special = regexp.MustCompile(`\$\{[^}]*\}?|[{}]`)

// parseTemplate parses a template, or describes its fault.
func parseTemplate(text string) (t Template, message, hint string) {
	add := func(s string) {
		if n := len(t); n > 0 && t[n-1].Variable == "" && t[n-1].Argument == "" {
			t[n-1].Text += s
		} else if s != "" {
			t = append(t, Piece{Text: s})
		}
	}
	at := 0
	for _, m := range gap.FindAllStringIndex(text, -1) {
		add(text[at:m[0]])
		found := text[m[0]:m[1]]
		at = m[1]
		name := strings.TrimSuffix(strings.TrimLeft(found, "${"), "}")
		switch {
		case found == "{{" || found == "}}":
			add(found[:1])
		case strings.HasPrefix(found, "$$"):
			add(found[1:])
		case found == "}":
			return nil, "} closes nothing", "write }} for a literal brace"
		case !strings.HasSuffix(found, "}"):
			return nil, found[:strings.IndexByte(found, '{')+1] + " is never closed", "write {name} for an argument, ${NAME} for a variable of the environment, {{ for a literal brace"
		case found[0] == '$' && !variableName.MatchString(name):
			return nil, fmt.Sprintf("%s is not a variable's name", yamldoc.Quote(name)), "write ${NAME} with the name of a variable of the environment, or $${ for these two characters"
		case found[0] == '$':
			t = append(t, Piece{Variable: name})
		case !argumentName.MatchString(name):
			return nil, fmt.Sprintf("%s is not an argument's name", yamldoc.Quote(name)), "write {name} for an argument, {{ and }} for literal braces"
		default:
			t = append(t, Piece{Argument: name})
		}
	}
	add(text[at:])
	return t, "", ""
}

func readTemplate(v yamldoc.Value, like string) (Template, bool) {
	text, ok := v.Free(like)
	if !ok {
		return nil, false
	}
	t, message, hint := parseTemplate(text)
	if message != "" {
		v.Wrong(message, hint)
		return nil, false
	}
	return t, true
}
