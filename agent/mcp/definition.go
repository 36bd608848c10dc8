package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/config"
)

// maxModelText is the maximum length of a description in the model's API, in characters.
const maxModelText = 1024

// definition is a server's definition of a tool.
type definition struct {
	raw    json.RawMessage // the object in the server's list, byte for byte
	name   string          // the tool's name on the server
	effect approvers.Effect
	output *jsonschema.Schema
}

// ErrDefinition means that a server's definition is not usable as a tool. The wrapping error gives the reason.
var ErrDefinition = errors.New("this definition can't be used as a tool")

// define converts a server's definition to a tool whose Run function is not set.
func define(s config.Server, raw json.RawMessage) (definition, agent.Tool, error) {
	o, err := readMessage(raw)
	if err != nil {
		return definition{}, agent.Tool{}, fmt.Errorf("%w: %w", ErrDefinition, err)
	}
	d := definition{raw: bytes.Clone(raw), name: o.Text("name")}
	if d.name == "" {
		return definition{}, agent.Tool{}, fmt.Errorf("%w: it has no name", ErrDefinition)
	}
	if schema := o.Given("outputSchema"); schema != nil {
		if d.output, err = compile(schema); err != nil {
			return definition{}, agent.Tool{}, fmt.Errorf("%w: the outputSchema of %.80q: %w", ErrDefinition, d.name, err)
		}
	}
	says := o.Object("annotations")
	t := agent.Tool{
		Name: canonical(s.Name, d.name, s.Bare), Description: forModel(o.Text("description"), d.name), Schema: o.Get("inputSchema"),
		Effect: approvers.Unprotected, Timeout: s.Timeout, Definition: d.raw,
		Claims: workflow.Claims{
			Title: says.Text("title"), ReadOnly: says.Flag("readOnlyHint"), Destructive: says.Flag("destructiveHint"),
			Idempotent: says.Flag("idempotentHint"), OpenWorld: says.Flag("openWorldHint"),
		},
	}
	if title := o.Text("title"); t.Claims.Title == "" {
		t.Claims.Title = title
	}
	if s.TrustAnnotations {
		believe(&t)
	}
	if effect, said := s.Effects[d.name]; said {
		t.Effect = effect
	}
	d.effect = t.Effect
	return d, t, nil
}

// believe sets a tool's effect and risk from the server's claims. Use it only for servers whose claims the operator
// trusts.
func believe(t *agent.Tool) {
	switch c := t.Claims; {
	case c.ReadOnly != nil && *c.ReadOnly:
		t.Presumed, t.Effect = approvers.Low, approvers.ReadOnly
	case c.Idempotent != nil && *c.Idempotent:
		t.Effect = approvers.Idempotent
	}
}

// forModel returns a description within the limits of the model's API. If the server has no description, forModel
// returns a sentence with the tool's name.
func forModel(text, name string) string {
	if strings.TrimSpace(text) == "" {
		return "The tool " + name + ". Its server does not say what it does."
	}
	const cut = " … (the description is cut here)"
	if runes := []rune(text); len(runes) > maxModelText {
		return string(runes[:maxModelText-len([]rune(cut))]) + cut
	}
	return text
}

// compile compiles a JSON Schema without external references, and without the patterns that can't be checked.
func compile(raw json.RawMessage) (*jsonschema.Schema, error) {
	raw, _ = agent.WithoutPatterns(raw)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("it is not JSON")
	}
	if _, ok := doc.(map[string]any); !ok {
		return nil, errors.New("it is not an object")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // without loaders, the compiler reads no files and contacts no hosts
	if err := c.AddResource("mem:output", doc); err != nil {
		return nil, errors.New("it can't be used as a JSON Schema: " + line(err.Error()))
	}
	schema, err := c.Compile("mem:output")
	if err != nil {
		return nil, errors.New("it can't be used as a JSON Schema: " + line(err.Error()))
	}
	return schema, nil
}
