package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrVariable says that a value of the policy file names a variable of the environment that is not set. The wrapping error names it.
var ErrVariable = errors.New("is not set in the environment")

// reference is a variable's name between ${ and }. $${ stands for ${ itself.
var reference = regexp.MustCompile(`\$?\$\{[^}]*\}?`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Expand puts the values of the environment in the place of ${NAME}. A variable that is missing or empty is an error that wraps [ErrVariable] and
// names it. What comes out may be a secret: it is for the wire, and for no log, error or card.
func Expand(text string, lookup func(name string) (string, bool)) (string, error) {
	var missing []string
	out := reference.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		name := referred(found)
		value, _ := lookup(name)
		if value == "" {
			missing = append(missing, name)
		}
		return value
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("%s %w", strings.Join(sorted(missing), " and "), ErrVariable)
	}
	return out, nil
}

// Variables lists the variables of the environment that a text names, each once.
func Variables(text string) []string {
	var names []string
	for _, found := range reference.FindAllString(text, -1) {
		if !strings.HasPrefix(found, "$$") {
			names = append(names, referred(found))
		}
	}
	return sorted(names)
}

func referred(found string) string { return strings.TrimSuffix(strings.TrimPrefix(found, "${"), "}") }

// expandable reads a text that may name variables of the environment.
func (v value) expandable(like string) (string, bool) {
	text, ok := v.free(like)
	if !ok {
		return "", false
	}
	for _, found := range reference.FindAllString(text, -1) {
		hint := "write ${NAME} with the name of a variable of the environment, or $${ for these two characters"
		switch {
		case strings.HasPrefix(found, "$$"):
		case !strings.HasSuffix(found, "}"):
			v.wrong("${ is not closed", hint)
			return "", false
		case !variableName.MatchString(referred(found)):
			v.wrong(quote(referred(found))+" is no variable's name", hint)
			return "", false
		}
	}
	return text, true
}
