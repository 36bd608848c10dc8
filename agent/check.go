package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxProblems limits the number of faults that an error lists. The error counts the remaining faults.
const maxProblems = 8

// problem is one fault in a call's arguments: its path, and how to fix it.
type problem struct{ path, text string }

func (p problem) String() string {
	if p.path == "" {
		return "the arguments " + p.text
	}
	return p.path + ": " + p.text
}

// check validates arguments against the schema. An example of an error is "amount: must be at least 0.01; reason: is
// missing".
func (s schema) check(args json.RawMessage) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	if err := checkNumbers(v, ""); err != nil {
		return err
	}
	found := s.unknownProperties(v)
	var invalid *jsonschema.ValidationError
	switch err := s.root.Validate(v); {
	case errors.As(err, &invalid):
		found = append(found, explain(invalid, v)...)
	case err != nil:
		return err
	}
	if len(found) == 0 {
		return nil
	}
	return errors.New(list(found))
}

// list joins the problems in a stable order, without duplicates.
func list(found []problem) string {
	slices.SortFunc(found, func(a, b problem) int {
		if c := strings.Compare(a.path, b.path); c != 0 {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
	found = slices.Compact(found)
	var lines []string
	for i, p := range found {
		if i == maxProblems {
			lines = append(lines, fmt.Sprintf("and %d more", len(found)-maxProblems))
			break
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "; ")
}

// checkNumbers refuses numbers outside the range of a float64, and numbers with more than 400 characters. The validator
// uses exact numbers, so a number like 1e999999 would take minutes or longer.
func checkNumbers(v any, path string) error {
	switch v := v.(type) {
	case json.Number:
		text := v.String()
		f, err := strconv.ParseFloat(text, 64)
		mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
		if err != nil || len(text) > 400 || (f == 0 && strings.ContainsAny(mantissa, "123456789")) {
			return errors.New(problem{path, fmt.Sprintf("the number %.40s is out of range", text)}.String())
		}
	case map[string]any:
		for name, child := range v {
			if err := checkNumbers(child, join(path, name)); err != nil {
				return err
			}
		}
	case []any:
		for i, child := range v {
			if err := checkNumbers(child, path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
	}
	return nil
}

// join adds a property to a field path.
func join(path, name string) string {
	if strings.ContainsAny(name, ".[]; ") || name == "" {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// fieldPath formats the validator's instance location in the usual notation: items[2].amount.
func fieldPath(location []string, root any) string {
	path := ""
	at := root
	for _, token := range location {
		switch v := at.(type) {
		case []any:
			path += "[" + token + "]"
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				at = nil
				continue
			}
			at = v[i]
		case map[string]any:
			path = join(path, token)
			at = v[token]
		default:
			path = join(path, token)
		}
	}
	return path
}
