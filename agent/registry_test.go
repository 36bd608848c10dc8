package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
)

func nothing(context.Context, Invocation) (string, error) { return "done", nil }

// refundSchema is the schema that most tests use.
const refundSchema = `{"type":"object","properties":{
	"order_id":{"type":"string","minLength":1,"maxLength":40},
	"amount":{"type":"number","minimum":0.01,"maximum":1000000},
	"currency":{"type":"string","enum":["USD","EUR"]},
	"to":{"type":"string","format":"email"}},
	"required":["order_id","amount"],"additionalProperties":false}`

func refund() Tool {
	return Tool{
		Name: "issue_refund", Description: "Gives money back.", Schema: json.RawMessage(refundSchema),
		Effect: approvers.Unprotected, Run: nothing,
	}
}

func TestRegisterRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Tool)
		says   string
	}{
		"empty name":            {func(t *Tool) { t.Name = "" }, "a name has"},
		"space in name":         {func(t *Tool) { t.Name = "issue refund" }, "a name has"},
		"line end after name":   {func(t *Tool) { t.Name = "issue_refund\n" }, "a name has"},
		"long name":             {func(t *Tool) { t.Name = strings.Repeat("a", 65) }, "a name has"},
		"other letters":         {func(t *Tool) { t.Name = "rückzahlung" }, "a name has"},
		"no description":        {func(t *Tool) { t.Description = "" }, "the description is missing"},
		"long description":      {func(t *Tool) { t.Description = strings.Repeat("é", 1025) }, "1025 characters"},
		"no effect":             {func(t *Tool) { t.Effect = "" }, "approvers.ReadOnly"},
		"unknown effect":        {func(t *Tool) { t.Effect = "harmless" }, "approvers.ReadOnly"},
		"negative timeout":      {func(t *Tool) { t.Timeout = -1 }, "timeout"},
		"endless timeout":       {func(t *Tool) { t.Timeout = 2 * time.Hour }, "timeout"},
		"no function":           {func(t *Tool) { t.Run = nil }, "no Run"},
		"no schema":             {func(t *Tool) { t.Schema = nil }, "the schema is missing"},
		"schema not JSON":       {func(t *Tool) { t.Schema = json.RawMessage(`{"type":`) }, "not valid JSON"},
		"more after the schema": {func(t *Tool) { t.Schema = json.RawMessage(`{"type":"object"} x`) }, "not valid JSON"},
		"schema of a list":      {func(t *Tool) { t.Schema = json.RawMessage(`{"type":"array"}`) }, `"type": "object"`},
		"schema true":           {func(t *Tool) { t.Schema = json.RawMessage(`true`) }, `"type": "object"`},
		"object or null":        {func(t *Tool) { t.Schema = json.RawMessage(`{"type":["object","null"]}`) }, `"type": "object"`},
		"wrong keyword value": {
			func(t *Tool) { t.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"minLength":"x"}}}`) }, "does not compile",
		},
		"bad pattern": {
			func(t *Tool) { t.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"pattern":"("}}}`) }, "does not compile",
		},
		"reference to a host": {
			func(t *Tool) {
				t.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`)
			}, "must stay within",
		},
		"reference to a file": {
			func(t *Tool) {
				t.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`)
			}, "must stay within",
		},
		"unknown dialect": {
			func(t *Tool) { t.Schema = json.RawMessage(`{"$schema":"https://example.com/mine","type":"object"}`) }, "must stay within",
		},
		"a bound that is no number": {
			func(t *Tool) {
				t.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"maximum":1e99999999}}}`)
			}, "out of range",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tool := refund()
			c.change(&tool)
			var r Registry
			err := r.Register(tool)
			if !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Register = %v, want an error that says %q", err, c.says)
			}
			if _, ok := r.Tool(tool.Name); ok {
				t.Error("the refused tool is there")
			}
		})
	}
}

func TestRegisterTwice(t *testing.T) {
	var r Registry
	one := refund()
	one.Name = "shop.refund"
	if err := r.Register(one); err != nil {
		t.Fatal(err)
	}
	if err := r.Register(one); !errors.Is(err, ErrTool) {
		t.Errorf("the same name again: %v", err)
	}
	one.Name = "shop_refund" // the model receives this name for shop.refund
	if err := r.Register(one); !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "shop.refund") {
		t.Errorf("the same name for the model: %v", err)
	}
	if got := r.named("shop_refund"); got != "shop.refund" {
		t.Errorf("the model's name leads to %q", got)
	}
	if got := r.named("shop-refund"); got != "shop-refund" {
		t.Errorf("an unknown name leads to %q", got)
	}
}

func TestHashPinsTheDefinition(t *testing.T) {
	hash := func(change func(*Tool)) string {
		tool := refund()
		change(&tool)
		var r Registry
		if err := r.Register(tool); err != nil {
			t.Fatal(err)
		}
		pinned, _ := r.Tool(tool.Name)
		return pinned.Hash
	}
	base := hash(func(*Tool) {})
	for name, change := range map[string]func(*Tool){
		"name":        func(t *Tool) { t.Name += "2" },
		"description": func(t *Tool) { t.Description += " " },
		"schema":      func(t *Tool) { t.Schema = append([]byte(" "), t.Schema...) },
		"effect":      func(t *Tool) { t.Effect = approvers.ReadOnly },
	} {
		if hash(change) == base {
			t.Errorf("another %s has the same hash", name)
		}
	}
	if hash(func(t *Tool) { t.Timeout = time.Minute }) != base {
		t.Error("the timeout is not part of the definition")
	}
}

func TestSchemaIsCopied(t *testing.T) {
	tool := refund()
	var r Registry
	if err := r.Register(tool); err != nil {
		t.Fatal(err)
	}
	for i := range tool.Schema {
		tool.Schema[i] = 'x'
	}
	if pinned, _ := r.Tool(tool.Name); string(pinned.Schema) != refundSchema {
		t.Error("the caller's bytes are still used")
	}
}

func TestWireSchemaHasProperties(t *testing.T) {
	if got := string(wireSchema(json.RawMessage(`{"type":"object"}`))); got != `{"properties":{},"type":"object"}` {
		t.Errorf("%s", got)
	}
	if got := string(wireSchema(json.RawMessage(refundSchema))); got != refundSchema {
		t.Errorf("a schema with properties was changed: %s", got)
	}
}

// Register accepts these schemas, which tool servers send in practice.
func TestRegisterTakes(t *testing.T) {
	for i, schema := range []string{
		`{"type":"object"}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://shop.example/refund","type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"format":"of our own","x-extra":1}}}`,
	} {
		tool := refund()
		tool.Schema = json.RawMessage(schema)
		var r Registry
		if err := r.Register(tool); err != nil {
			t.Errorf("schema %d: %v", i, err)
		}
	}
}
