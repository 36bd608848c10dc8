package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Template is a text with gaps that arguments of a call and variables of the environment fill.
type Template []Piece

// Piece is a part of a template: text as it is, or the name of what stands there.
type Piece struct {
	Text     string
	Variable string // of the environment
	Argument string // of the call
}

// String is the template as it is written.
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

// Arguments are the names of the arguments that fill it, in their order, each once.
func (t Template) Arguments() []string {
	var names []string
	for _, p := range t {
		if p.Argument != "" && !slices.Contains(names, p.Argument) {
			names = append(names, p.Argument)
		}
	}
	return names
}

// Variables are the names of the environment's variables that fill it, each once.
func (t Template) Variables() []string {
	var names []string
	for _, p := range t {
		if p.Variable != "" && !slices.Contains(names, p.Variable) {
			names = append(names, p.Variable)
		}
	}
	return names
}

// argumentName is what an argument that fills a gap can be called.
var argumentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// gap finds what is not text as it is: ${NAME}, {name}, {{ and }}, and $${…}, which stands for ${…}.
var gap = regexp.MustCompile(`\$\$\{[^}]*\}?|\$\{[^}]*\}?|\{\{|\}\}|\{[^}]*\}?|\}`)

// special is what text as it is must be written twice for, or its first sign.
var special = regexp.MustCompile(`\$\{[^}]*\}?|[{}]`)

// parseTemplate reads a template, or says what is wrong with it.
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
			return nil, "} closes nothing", "write }} for a brace that is meant as it is"
		case !strings.HasSuffix(found, "}"):
			return nil, found[:strings.IndexByte(found, '{')+1] + " is never closed", "write {name} for an argument, ${NAME} for a variable of the environment, {{ for a brace that is meant as it is"
		case found[0] == '$' && !variableName.MatchString(name):
			return nil, fmt.Sprintf("%s is no variable's name", quote(name)), "write ${NAME} with the name of a variable of the environment, or $${ for these two characters"
		case found[0] == '$':
			t = append(t, Piece{Variable: name})
		case !argumentName.MatchString(name):
			return nil, fmt.Sprintf("%s is no argument's name", quote(name)), "write {name} for an argument, {{ and }} for braces that are meant as they are"
		default:
			t = append(t, Piece{Argument: name})
		}
	}
	add(text[at:])
	return t, "", ""
}

// template reads a text with gaps.
func (v value) template(like string) (Template, bool) {
	text, ok := v.free(like)
	if !ok {
		return nil, false
	}
	t, message, hint := parseTemplate(text)
	if message != "" {
		v.wrong(message, hint)
		return nil, false
	}
	return t, true
}
