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

func TestWireSchema(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object"}`: `{"type":"object","properties":{}}`,
		refundSchema:        refundSchema,
		// A list gets items, and a pattern that Go does not support is removed. The order stays the same.
		`{"type":"object","properties":{"z":{"type":"array"},"a":{"type":["array","null"]},"m":{"type":"array","items":{"type":"string","pattern":"^(?!x)"}}}}`: `{"type":"object","properties":{` +
			`"z":{"type":"array","items":{}},"a":{"type":["array","null"],"items":{}},"m":{"type":"array","items":{"type":"string"}}}}`,
		`{"type":"object","properties":{"":{"anyOf":[{"type": "array"},true,{"pattern":"^\\d+$"}]}},"$defs":{"p":{"not":{"pattern":"(?=x)"}}}}`: `{"type":"object","properties":{` +
			`"":{"anyOf":[{"type":"array","items":{}},true,{"pattern":"^\\d+$"}]}},"$defs":{"p":{"not":{}}}}`,
		// These are not keywords.
		`{"type":"object","properties":{"pattern":{"type": "string"}},"default":{"pattern":"(?!","type":"array"}}`: `{"type":"object","properties":{"pattern":{"type": "string"}},"default":{"pattern":"(?!","type":"array"}}`,
	} {
		if got := string(wireSchema(json.RawMessage(schema))); got != want {
			t.Errorf("%s:\n got %s\nwant %s", schema, got, want)
		}
	}
}

// A source's schema may have patterns that Go's regular expressions don't support. The tool can be called, its values
// are not checked against these patterns, and the operator can read this. The names in patternProperties are an
// exception, because they decide which properties are known.
func TestPatternsThatGoLacks(t *testing.T) {
	const schema = `{"type":"object","properties":{"mail":{"type":"string","maxLength":9,"pattern":"^(?!\\.)\\S+@"},"n":{"type":"string","pattern":"^[0-9]{1,2000}$"},"id":{"type":"string","pattern":"^[a-z]+$"}}}`
	r := &Registry{}
	made := offered("files.read", "1")
	made.Schema = json.RawMessage(schema)
	none(t, r.Replace("files", []Tool{made}))
	tool, _ := r.Tool("files.read")
	for args, want := range map[string]string{
		`{"mail":".","n":"x","id":"abc"}`:         "",
		`{"mail":"0123456789","n":"","id":"ABC"}`: "id: must match the pattern ^[a-z]+$; mail: must have at most 9 characters, but has 10",
	} {
		if err := tool.Check(json.RawMessage(args)); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v", args, err)
		}
	}
	if string(tool.Schema) != schema {
		t.Errorf("the pinned schema was changed: %s", tool.Schema)
	}
	all, _ := r.Status()
	if notes := strings.Join(all[0].Notes, "\n"); !strings.Contains(notes, `the pattern "^(?!\\.)\\S+@" can't be checked`) || len(all[0].Notes) != 2 {
		t.Errorf("%q", notes)
	}
	made.Schema = json.RawMessage(`{"type":"object","patternProperties":{"^(?!x)":{}}}`)
	if errs := r.Replace("files", []Tool{made}); len(errs) != 1 {
		t.Errorf("%v", errs)
	}
}

// OpenAI's API refuses some schemas, and then the whole request of an agent.
func TestSchemaNotes(t *testing.T) {
	for schema, want := range map[string]int{
		`{"type":"object","anyOf":[{"required":["a"]}],"not":{}}`: 2,
		`{"type":"object","properties":{"anyOf":{"anyOf":[]}}}`:   0,
	} {
		if notes := schemaNotes(json.RawMessage(schema), nil); len(notes) != want {
			t.Errorf("%s: %q", schema, notes)
		}
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
