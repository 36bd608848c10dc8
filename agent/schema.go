package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"countersign/agent/jsonobject"
)

// schema is a tool's compiled argument schema.
type schema struct{ root *jsonschema.Schema }

// schemaURL names the schema within the compiler. Nothing is fetched from this URL.
const schemaURL = "tool:///arguments"

// compileSchema compiles the schema of an object. A reference to another document is an error.
func compileSchema(raw json.RawMessage) (schema, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return schema{}, errors.New(`the schema is missing; for a tool without arguments write {"type":"object","properties":{}}`)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return schema{}, fmt.Errorf("the schema is not valid JSON: %w", err)
	}
	object, ok := doc.(map[string]any)
	if !ok || object["type"] != "object" {
		return schema{}, errors.New(`the schema must be a JSON object with "type": "object": a call's arguments are an object`)
	}
	if err := checkNumbers(doc, ""); err != nil {
		return schema{}, fmt.Errorf("the schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.AssertFormat()
	if err := c.AddResource(schemaURL, doc); err != nil {
		return schema{}, fmt.Errorf("the schema: %w", err)
	}
	root, err := c.Compile(schemaURL)
	if err != nil {
		return schema{}, fmt.Errorf("the schema does not compile: %w", err)
	}
	return schema{root}, nil
}

// noLoader refuses every reference outside the schema. noLoader reads no files and contacts no hosts.
type noLoader struct{}

var errRemoteRef = errors.New("a reference must stay within the schema (#/$defs/…)")

func (noLoader) Load(string) (any, error) { return nil, errRemoteRef }

// wireSchema returns the schema in the form of the model's API. The API requires the member "properties" of the schema,
// and the member "items" of each list. Some servers of models refuse patterns that Go does not support either.
func wireSchema(raw json.RawMessage) json.RawMessage {
	out, _ := WithoutPatterns(raw)
	out, _ = edited(out, func(o jsonobject.Object) jsonobject.Object {
		if isList(o.Get("type")) && o.Get("items") == nil {
			return append(o, jsonobject.Member{Name: "items", Value: json.RawMessage("{}")})
		}
		return o
	})
	o, err := jsonobject.Read(out)
	if err != nil || o.Get("properties") != nil {
		return out
	}
	return append(o, jsonobject.Member{Name: "properties", Value: json.RawMessage("{}")}).Bytes()
}

// schemaNotes returns the notes about a schema for the operator. The parameter patterns lists the patterns that are not
// checked.
func schemaNotes(raw json.RawMessage, patterns []string) (notes []string) {
	for _, p := range patterns {
		notes = append(notes, fmt.Sprintf("the pattern %.60q can't be checked here, and only the server checks it", p))
	}
	o, _ := jsonobject.Read(raw)
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "enum", "not"} {
		if o.Get(keyword) != nil {
			notes = append(notes, "the schema has "+keyword+" at its top level, and OpenAI's API refuses all requests that offer such a tool")
		}
	}
	return notes
}

// isList reports whether the value of the keyword type allows a list.
func isList(kind json.RawMessage) bool {
	var kinds []string
	return string(kind) == `"array"` || json.Unmarshal(kind, &kinds) == nil && slices.Contains(kinds, "array")
}

// WithoutPatterns removes the values of the keyword pattern that Go's regular expressions don't support, such as
// "^(?!x)". It returns the removed patterns. Only the tool's server can check values against them.
func WithoutPatterns(schema json.RawMessage) (rest json.RawMessage, removed []string) {
	rest, _ = edited(schema, func(o jsonobject.Object) jsonobject.Object {
		return slices.DeleteFunc(o, func(m jsonobject.Member) bool {
			var pattern string
			if m.Name != "pattern" || json.Unmarshal(m.Value, &pattern) != nil {
				return false
			}
			if _, err := regexp.Compile(pattern); err == nil {
				return false
			}
			removed = append(removed, pattern)
			return true
		})
	})
	return rest, removed
}

// Keywords of JSON Schema that contain schemas. In schemaPlaces, the value is a schema or a list of schemas. In
// schemaMaps, it is an object of schemas.
var (
	schemaPlaces = []string{
		"not", "items", "additionalItems", "prefixItems", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties",
		"allOf", "anyOf", "oneOf", "if", "then", "else", "contentSchema",
	}
	schemaMaps = []string{"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}
)

// edited applies a function to each schema within a schema, the innermost first. The function adds or removes members.
// edited reports whether something has changed. All other values keep their bytes.
func edited(raw json.RawMessage, edit func(jsonobject.Object) jsonobject.Object) (_ json.RawMessage, changed bool) {
	o, err := jsonobject.Read(raw)
	if err != nil {
		return raw, false // the schema is true or false, or is not valid, which the compiler reports
	}
	before := len(o)
	each := func(parts jsonobject.Object) (some bool) {
		for i := range parts {
			after, ok := edited(parts[i].Value, edit)
			if ok {
				parts[i].Value, changed, some = after, true, true
			}
		}
		return some
	}
	for i, m := range o {
		var list []json.RawMessage
		switch {
		case slices.Contains(schemaMaps, m.Name):
			if parts, err := jsonobject.Read(m.Value); err == nil && each(parts) {
				o[i].Value = parts.Bytes()
			}
		case !slices.Contains(schemaPlaces, m.Name):
		case m.Value[0] != '[':
			each(o[i : i+1])
		case json.Unmarshal(m.Value, &list) == nil:
			var parts jsonobject.Object
			for _, part := range list {
				parts = append(parts, jsonobject.Member{Value: part})
			}
			if each(parts) {
				o[i].Value = listOf(parts)
			}
		}
	}
	if o = edit(o); !changed && len(o) == before {
		return raw, false
	}
	return o.Bytes(), true
}

// listOf encodes the members' values as a list.
func listOf(o jsonobject.Object) json.RawMessage {
	items := make([]string, len(o))
	for i, m := range o {
		items[i] = string(m.Value)
	}
	return array(items)
}
