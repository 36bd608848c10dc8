package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

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

// wireSchema returns the schema in the form of the model's API, which requires the member "properties".
func wireSchema(raw json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object["properties"] != nil {
		return raw
	}
	object["properties"] = json.RawMessage("{}")
	out, err := json.Marshal(object)
	if err != nil {
		return raw
	}
	return out
}
