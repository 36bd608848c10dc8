package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"slices"
)

type tool struct {
	Type     string `json:"type"`
	Function *struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      *bool           `json:"strict"`
	} `json:"function"`
}

// The limits of the service.
const (
	mostTools          = 128
	longestDescription = 1024
	deepestSchema      = 32
)

func parseTools(raw []json.RawMessage) ([]Tool, *apiError) {
	if raw == nil {
		return nil, nil
	}
	if len(raw) == 0 {
		return nil, invalid("tools", "empty_array", "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	if len(raw) > mostTools {
		return nil, invalid("tools", "array_above_max_length", "Invalid 'tools': array too long. Expected an array with maximum length %d, but got %d instead.", mostTools, len(raw))
	}
	tools := make([]Tool, len(raw))
	seen := map[string]bool{}
	for i, data := range raw {
		var t tool
		at := fmt.Sprintf("tools[%d]", i)
		if fault := decodeStrictly(data, &t, at); fault != nil {
			return nil, fault
		}
		switch {
		case t.Type != "function":
			return nil, invalid(at+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function'.", t.Type)
		case t.Function == nil:
			return nil, invalid(at+".function", "missing_required_parameter", "Missing required parameter: '%s.function'.", at)
		case !toolName.MatchString(t.Function.Name):
			return nil, invalid(at+".function.name", "invalid_value", "Invalid '%s.function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]{1,64}$'.", at)
		case seen[t.Function.Name]:
			return nil, invalid(at+".function.name", "", "Invalid '%s.function.name': the name '%s' is given to two tools.", at, t.Function.Name)
		case len(t.Function.Description) > longestDescription:
			return nil, invalid(at+".function.description", "string_above_max_length", "Invalid '%s.function.description': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, longestDescription, len(t.Function.Description))
		}
		seen[t.Function.Name] = true
		if len(t.Function.Parameters) > 0 {
			if problem := checkParameters(t.Function.Parameters); problem != "" {
				return nil, invalid(at+".function.parameters", "invalid_function_parameters", "Invalid schema for function '%s': %s.", t.Function.Name, problem)
			}
		}
		tools[i] = Tool{Name: t.Function.Name, Description: t.Function.Description, Parameters: t.Function.Parameters}
	}
	return tools, nil
}

// checkParameters returns the problem of a tool's schema, or "".
func checkParameters(data json.RawMessage) string {
	var schema any
	if err := json.Unmarshal(data, &schema); err != nil {
		return err.Error()
	}
	object, ok := schema.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s is not of type 'object'", data)
	}
	if kind := object["type"]; kind != "object" {
		return fmt.Sprintf(`schema must be a JSON Schema of 'type: "object"', got 'type: "%v"'`, kind)
	}
	return checkSchema(object, "()", deepestSchema)
}

var schemaTypes = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

func checkSchema(schema any, at string, depth int) string {
	if _, ok := schema.(bool); ok {
		return ""
	}
	object, ok := schema.(map[string]any)
	switch {
	case !ok:
		return fmt.Sprintf("in context=%s, %v is not of type 'object', 'boolean'", at, schema)
	case depth == 0:
		return fmt.Sprintf("in context=%s, the schema is nested too deeply", at)
	}
	kinds, problem := typesOf(object, at)
	if problem != "" {
		return problem
	}
	if slices.Contains(kinds, "array") && object["items"] == nil && object["prefixItems"] == nil {
		return fmt.Sprintf("in context=%s, array schema missing items", at)
	}
	if list, given := object["enum"]; given {
		if values, ok := list.([]any); !ok || len(values) == 0 {
			return fmt.Sprintf("in context=%s, 'enum' must be an array that is not empty", at)
		}
	}
	if list, given := object["required"]; given {
		names, ok := list.([]any)
		if !ok || slices.ContainsFunc(names, func(v any) bool { _, isText := v.(string); return !isText }) {
			return fmt.Sprintf("in context=%s, 'required' must be an array of strings", at)
		}
	}
	return checkWithin(object, at, depth)
}

func typesOf(object map[string]any, at string) (kinds []string, problem string) {
	switch kind := object["type"].(type) {
	case nil:
	case string:
		kinds = []string{kind}
	case []any:
		for _, k := range kind {
			kinds = append(kinds, fmt.Sprint(k))
		}
	default:
		kinds = []string{fmt.Sprint(kind)}
	}
	for _, kind := range kinds {
		if !slices.Contains(schemaTypes, kind) {
			return nil, fmt.Sprintf("in context=%s, %q is not a type of JSON Schema", at, kind)
		}
	}
	return kinds, ""
}

// checkWithin checks the schemas inside a schema.
func checkWithin(object map[string]any, at string, depth int) string {
	for _, word := range []string{"properties", "$defs", "definitions", "patternProperties"} {
		value, given := object[word]
		if !given {
			continue
		}
		schemas, ok := value.(map[string]any)
		if !ok {
			return fmt.Sprintf("in context=%s, '%s' must be an object", at, word)
		}
		for name, schema := range schemas {
			if problem := checkSchema(schema, fmt.Sprintf("%s.%s.%s", at, word, name), depth-1); problem != "" {
				return problem
			}
		}
	}
	for _, word := range []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"} {
		if schema, given := object[word]; given {
			if problem := checkSchema(schema, at+"."+word, depth-1); problem != "" {
				return problem
			}
		}
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		value, given := object[word]
		if !given {
			continue
		}
		schemas, ok := value.([]any)
		if !ok || len(schemas) == 0 {
			return fmt.Sprintf("in context=%s, '%s' must be an array that is not empty", at, word)
		}
		for i, schema := range schemas {
			if problem := checkSchema(schema, fmt.Sprintf("%s.%s[%d]", at, word, i), depth-1); problem != "" {
				return problem
			}
		}
	}
	return ""
}
