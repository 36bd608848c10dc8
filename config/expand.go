package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"countersign/config/yamldoc"
)

// ErrVariable means that a value of the policy file names an environment variable that is not set, or is empty. The
// wrapping error names the variable.
var ErrVariable = errors.New("is not set in the environment")

// reference matches a reference to a variable, such as ${NAME}. reference also matches $${NAME}, which is an escaped
// ${NAME}.
var reference = regexp.MustCompile(`\$?\$\{[^}]*\}?`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Expand replaces ${NAME} by values of the environment. If a variable is missing or empty, the error wraps
// [ErrVariable] and names the variable, or the file of its secret that can't be read. The result may contain secrets,
// so it must not appear in logs, errors or cards.
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
	if len(missing) == 0 {
		return out, nil
	}
	missing = yamldoc.SortedUnique(missing)
	err := fmt.Errorf("%s %w", strings.Join(missing, " and "), ErrVariable)
	for _, name := range missing {
		if path := os.Getenv(name + fileSuffix); path != "" {
			if _, _, fault := ReadSecretFile(path); fault != nil {
				err = fmt.Errorf("%w; %s%s %w", err, name, fileSuffix, fault)
			}
		}
	}
	return "", err
}

// Variables lists the distinct environment variables in a text.
func Variables(text string) []string {
	var names []string
	for _, found := range reference.FindAllString(text, -1) {
		if !strings.HasPrefix(found, "$$") {
			names = append(names, referred(found))
		}
	}
	return yamldoc.SortedUnique(names)
}

func referred(found string) string { return strings.TrimSuffix(strings.TrimPrefix(found, "${"), "}") }

// readExpandable reads a text that may contain environment variables.
func readExpandable(v yamldoc.Value, like string) (string, bool) {
	text, ok := v.Free(like)
	if !ok {
		return "", false
	}
	for _, found := range reference.FindAllString(text, -1) {
		hint := "write ${NAME} with the name of a variable of the environment, or $${ for these two characters"
		switch {
		case strings.HasPrefix(found, "$$"):
		case !strings.HasSuffix(found, "}"):
			v.Wrong("${ is not closed", hint)
			return "", false
		case !variableName.MatchString(referred(found)):
			v.Wrong(yamldoc.Quote(referred(found))+" is not a variable's name", hint)
			return "", false
		}
	}
	return text, true
}
