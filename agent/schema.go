package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
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
	out, _ = edited(out, func(o schemaObject) schemaObject {
		if isList(o.get("type")) && o.get("items") == nil {
			return append(o, schemaMember{"items", json.RawMessage("{}")})
		}
		return o
	})
	o, err := readSchema(out)
	if err != nil || o.get("properties") != nil {
		return out
	}
	return append(o, schemaMember{"properties", json.RawMessage("{}")}).bytes()
}

// schemaNotes returns the notes about a schema for the operator. The parameter patterns lists the patterns that are not
// checked.
func schemaNotes(raw json.RawMessage, patterns []string) (notes []string) {
	for _, p := range patterns {
		notes = append(notes, fmt.Sprintf("the pattern %.60q can't be checked here, and only the server checks it", p))
	}
	o, _ := readSchema(raw)
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "enum", "not"} {
		if o.get(keyword) != nil {
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
	rest, _ = edited(schema, func(o schemaObject) schemaObject {
		return slices.DeleteFunc(o, func(m schemaMember) bool {
			var pattern string
			if m.name != "pattern" || json.Unmarshal(m.value, &pattern) != nil {
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

// schemaObject has the members of a JSON object in their order, with their exact bytes.
type schemaObject []schemaMember

type schemaMember struct {
	name  string
	value json.RawMessage
}

// edited applies a function to each schema within a schema, the innermost first. The function adds or removes members.
// edited reports whether something has changed. All other values keep their bytes.
func edited(raw json.RawMessage, edit func(schemaObject) schemaObject) (_ json.RawMessage, changed bool) {
	o, err := readSchema(raw)
	if err != nil {
		return raw, false // the schema is true or false, or is not valid, which the compiler reports
	}
	before := len(o)
	each := func(parts schemaObject) (some bool) {
		for i := range parts {
			after, ok := edited(parts[i].value, edit)
			if ok {
				parts[i].value, changed, some = after, true, true
			}
		}
		return some
	}
	for i, m := range o {
		var list []json.RawMessage
		switch {
		case slices.Contains(schemaMaps, m.name):
			if parts, err := readSchema(m.value); err == nil && each(parts) {
				o[i].value = parts.bytes()
			}
		case !slices.Contains(schemaPlaces, m.name):
		case m.value[0] != '[':
			each(o[i : i+1])
		case json.Unmarshal(m.value, &list) == nil:
			var parts schemaObject
			for _, part := range list {
				parts = append(parts, schemaMember{value: part})
			}
			if each(parts) {
				o[i].value = parts.list()
			}
		}
	}
	if o = edit(o); !changed && len(o) == before {
		return raw, false
	}
	return o.bytes(), true
}

// readSchema parses a JSON object.
func readSchema(raw json.RawMessage) (schemaObject, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if dec.PeekKind() != '{' {
		return nil, errors.New("it is not an object")
	}
	_, _ = dec.ReadToken() // the opening brace
	var out schemaObject
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		m := schemaMember{name: name.String()}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		m.value = json.RawMessage(bytes.Clone(value))
		out = append(out, m)
	}
	_, err := dec.ReadToken()
	return out, err
}

func (o schemaObject) get(name string) json.RawMessage {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (o schemaObject) bytes() json.RawMessage {
	items := make([]string, len(o))
	for i, m := range o {
		name, _ := jsontext.AppendQuote(nil, m.name)
		items[i] = string(name) + ":" + string(m.value)
	}
	out := array(items)
	out[0], out[len(out)-1] = '{', '}'
	return out
}

// list encodes the members' values as a list.
func (o schemaObject) list() json.RawMessage {
	items := make([]string, len(o))
	for i, m := range o {
		items[i] = string(m.value)
	}
	return array(items)
}
