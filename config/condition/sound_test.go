package condition_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
	"countersign/internal/demo/shop"
)

// sample draws conditions on a tool's arguments, and valid arguments.
type sample struct {
	name   string
	schema json.RawMessage
	root   map[string]any
}

func newSample(t *testing.T, name string, schema json.RawMessage) sample {
	t.Helper()
	s := sample{name: name, schema: schema}
	if err := json.Unmarshal(schema, &s.root); err != nil {
		t.Fatal(err)
	}
	return s
}

// value draws a value that the schema describes.
func (s sample) value(t *rapid.T, schema any, depth int) any {
	m, ok := schema.(map[string]any)
	if !ok || len(m) == 0 {
		return rapid.SampledFrom([]any{"x", 5.0, true, nil}).Draw(t, "any")
	}
	if ref, ok := m["$ref"].(string); ok {
		return s.value(t, s.root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")], depth)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if parts, ok := m[key].([]any); ok {
			return s.value(t, rapid.SampledFrom(parts).Draw(t, key), depth)
		}
	}
	if parts, ok := m["allOf"].([]any); ok {
		out := map[string]any{}
		for _, part := range parts {
			maps.Copy(out, s.value(t, part, depth).(map[string]any))
		}
		return out
	}
	if v, ok := m["const"]; ok {
		return v
	}
	if values, ok := m["enum"].([]any); ok {
		return rapid.SampledFrom(values).Draw(t, "enum")
	}
	kind, ok := m["type"].(string)
	if kinds, several := m["type"].([]any); several {
		kind, ok = rapid.SampledFrom(kinds).Draw(t, "type").(string)
	}
	if !ok {
		kind = "null"
	}
	switch kind {
	case "string":
		return rapid.SampledFrom([]string{"", "x", "USD", "5", "someone@example.com", "a longer text of some words"}).Draw(t, "text")
	case "number":
		return rapid.SampledFrom([]float64{-1, 0.5, 1, 5, 501}).Draw(t, "number")
	case "integer":
		return rapid.SampledFrom([]float64{1, 2, 5, 20}).Draw(t, "integer")
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case "array":
		out := []any{}
		items := m["items"]
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			if depth < 4 {
				out = append(out, s.value(t, items, depth+1))
			}
		}
		return out
	case "object":
		return s.object(t, m, depth)
	}
	return nil
}

func (s sample) object(t *rapid.T, m map[string]any, depth int) map[string]any {
	out := map[string]any{}
	required, _ := m["required"].([]any)
	properties, _ := m["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || (depth < 4 && rapid.Bool().Draw(t, "with "+name)) {
			out[name] = s.value(t, properties[name], depth+1)
		}
	}
	return out
}

// args returns arguments of a call. The arguments may break limits of length and size, because the check of conditions
// does not use these limits.
func (s sample) args(t *rapid.T) map[string]any {
	out := s.object(t, s.root, 0)
	if when, ok := out["when"].(map[string]any); ok && when["b"] == nil {
		delete(when, "a") // the schema permits the field a only together with the field b
	}
	return out
}

// path returns the path of a field below a name. Sometimes the name of the field is misspelt.
func (s sample) path(t *rapid.T, from string, schema map[string]any) string {
	properties, _ := schema["properties"].(map[string]any)
	for schema["$ref"] != nil {
		schema, _ = s.root["$defs"].(map[string]any)[strings.TrimPrefix(schema["$ref"].(string), "#/$defs/")].(map[string]any)
		properties, _ = schema["properties"].(map[string]any)
	}
	if len(properties) == 0 {
		return from
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(properties))).Draw(t, "field")
	below, _ := properties[name].(map[string]any)
	if rapid.IntRange(0, 9).Draw(t, "slip") == 0 {
		name += "x"
	}
	to := from + "." + name
	if strings.Contains(name, " ") {
		to = from + "[" + strconv.Quote(name) + "]"
	}
	if rapid.Bool().Draw(t, "deeper") {
		return s.path(t, to, below)
	}
	return to
}

var literals = []string{`"USD"`, `"x"`, `"vip"`, `""`, `5`, `2.5`, `2`, `true`, `null`, `now`, `["x"]`}

// atom returns one condition on the arguments below a name. If the operands have different kinds, the condition always
// has the same value, or its evaluation fails. The second result is this value ("true" or "false"), or empty if the
// evaluation fails.
func (s sample) atom(t *rapid.T, from string, schema map[string]any, depth int) (text, never string) {
	return s.about(t, s.path(t, from, schema), from, schema, depth)
}

func (s sample) about(t *rapid.T, p, from string, schema map[string]any, depth int) (text, never string) {
	literal := rapid.SampledFrom(literals).Draw(t, "literal")
	other := literal
	if rapid.IntRange(0, 2).Draw(t, "two") == 0 {
		other = s.path(t, from, schema)
	}
	forms := []func() (string, string){
		func() (string, string) { return p + " == " + other, "false" },
		func() (string, string) { return p + " == " + literal, "false" },
		func() (string, string) { return p + " != " + other, "true" },
		func() (string, string) {
			return p + rapid.SampledFrom([]string{" < ", " <= ", " > ", " >= "}).Draw(t, "order") + other, ""
		},
		func() (string, string) { return p + " in [" + literal + "]", "false" },
		func() (string, string) { return other + " in " + p, "false" },
		func() (string, string) { return "has(" + p + ")", "false" },
		func() (string, string) { return p + ".endsWith(" + other + ")", "" },
		func() (string, string) { return "size(" + p + ") > 1", "" },
		func() (string, string) { return p + ".lowerAscii() == 'x'", "" },
		func() (string, string) { return p + " + " + other + " != " + p, "" },
		func() (string, string) { return p + " * 2.0 > 5", "" },
		func() (string, string) { return "-" + p + " < 0.0", "" },
		func() (string, string) { return "!" + p, "" },
		func() (string, string) { return p + " ? true : false", "" },
		func() (string, string) { return "string(" + p + ") == '5'", "" },
		func() (string, string) { return p + ".matches('x+')", "" },
	}
	if depth > 0 {
		forms = append(forms, func() (string, string) { return s.loop(t, p, depth) })
	}
	return rapid.SampledFrom(forms).Draw(t, "form")()
}

// loop returns a condition on the items of a list. The function reads the fields of a random definition of the schema,
// so that the fields fit the items in some cases.
func (s sample) loop(t *rapid.T, over string, depth int) (text, never string) {
	schema := s.root
	if defs, ok := s.root["$defs"].(map[string]any); ok {
		schema, _ = defs[rapid.SampledFrom(slices.Sorted(maps.Keys(defs))).Draw(t, "items")].(map[string]any)
	}
	name := rapid.SampledFrom([]string{"i", "j"}).Draw(t, "name")
	inner, never := s.atom(t, name, schema, depth-1)
	if never == "true" {
		inner = "!(" + inner + ")"
	}
	return rapid.SampledFrom([]string{over + ".exists(" + name + ", " + inner + ")", over + ".filter(" + name + ", " + inner + ").size() > 0"}).Draw(t, "macro"), "false"
}

// condition combines several conditions.
func (s sample) condition(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "simple") == 0 {
		text, _ := s.atom(t, "args", s.root, 1)
		return "(" + text + ")"
	}
	part := func() string { return s.condition(t, depth-1) }
	switch rapid.IntRange(0, 4).Draw(t, "joined") {
	case 0:
		return "!" + part()
	case 1:
		return "(" + part() + " || " + part() + ")"
	case 2:
		return "(" + part() + " ? " + part() + " : " + part() + ")"
	}
	if rapid.Bool().Draw(t, "unguarded") {
		return "(" + part() + " && " + part() + ")"
	}
	p := s.path(t, "args", s.root)
	text, _ := s.about(t, p, "args", s.root, 1)
	guard := ""
	for i := range p { // args.address.zip is present if has(args.address) && has(args.address.zip)
		if i > len("args") && p[i] == '.' {
			guard += "has(" + p[:i] + ") && "
		}
	}
	if text = "(" + guard + "has(" + p + ") && " + text + ")"; rapid.Bool().Draw(t, "turned") {
		text = "(!(" + guard + "has(" + p + ")) || " + text + ")"
	}
	return text
}

// judge compiles a condition and returns the findings of check. ok is false if the condition does not compile.
func (s sample) judge(text string) (eval func(approvers.Facts) (bool, error), findings yamldoc.Problems, ok bool) {
	f, err := config.ParsePolicy("p", []byte("version: 1\ntools:\n  pay: {risk: low, rules: [{when: "+strconv.Quote(text)+", confirm: true}]}\n"))
	if errors.As(err, new(yamldoc.Problems)) {
		return nil, nil, false
	}
	for _, p := range check.Run(f, []check.Tool{{Name: "pay", Schema: s.schema}}) {
		if strings.HasPrefix(p.Message, "tools.pay.rules[0].when: ") {
			findings = append(findings, p)
		}
	}
	return f.Policy.Tools[0].Rules[0].When.Eval, findings, true
}

// The function calls check five times in each of rapid's cases, because most random conditions reveal nothing.
func many(t *testing.T, check func(t *rapid.T)) {
	rapid.Check(t, func(t *rapid.T) {
		for range 5 {
			check(t)
		}
	})
}

// samples returns samples for the sample shop's tools and for richSchema.
func samples(t *testing.T) []sample {
	out := []sample{newSample(t, "rich", richSchema)}
	for _, tool := range shop.New(time.Now).Tools() {
		out = append(out, newSample(t, tool.Name, tool.Schema))
	}
	return out
}

// TestNoFalseAlarm checks conditions for which check reports an error. For every valid call, such a condition must
// fail, or must have the same result.
func TestNoFalseAlarm(t *testing.T) {
	all, alarms := samples(t), 0
	many(t, func(t *rapid.T) {
		s := all[rapid.IntRange(0, len(all)-1).Draw(t, "tool")]
		text, never := s.atom(t, "args", s.root, 2)
		eval, findings, ok := s.judge(text)
		if !ok || len(findings.Errors()) == 0 {
			return
		}
		alarms++
		for range 20 {
			args := s.args(t)
			got, err := eval(approvers.Facts{Args: args})
			if err == nil && fmt.Sprint(got) != never {
				t.Fatalf("%s: %s is %v for %v, but check says:\n%v", s.name, text, got, args, findings)
			}
		}
	})
	t.Logf("%d conditions with an error", alarms)
	if alarms == 0 {
		t.Error("no condition had an error: the test shows nothing")
	}
}

// plainSchema has no alternatives, because check reports nothing about schemas with alternatives.
var plainSchema = json.RawMessage(`{
	"type": "object", "required": ["amount", "to", "currency", "items", "address", "urgent"], "additionalProperties": false,
	"properties": {
		"amount": {"type": "number"}, "count": {"type": "integer"}, "to": {"type": "string"}, "note": {"type": "string"},
		"currency": {"enum": ["USD", "EUR"]}, "urgent": {"type": "boolean"}, "soft": {"type": "boolean"},
		"tags": {"type": "array", "items": {"enum": ["vip", "x"]}},
		"items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
		"address": {"$ref": "#/$defs/address"}, "billing": {"$ref": "#/$defs/address"}
	},
	"$defs": {
		"item": {"type": "object", "required": ["price"], "properties": {"price": {"type": "number"}, "name": {"type": "string"}, "gift": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}}}},
		"address": {"type": "object", "required": ["country"], "properties": {"country": {"type": "string"}, "zip": {"type": "string"}}}
	}
}`)

// TestSilenceMeansItWorks checks conditions without a finding. If the tool's schema is complete, such a condition can
// be evaluated for every valid call.
func TestSilenceMeansItWorks(t *testing.T) {
	all := []sample{newSample(t, "plain", plainSchema)}
	for _, tool := range shop.New(time.Now).Tools() {
		all = append(all, newSample(t, tool.Name, tool.Schema))
	}
	silent := 0
	many(t, func(t *rapid.T) {
		s := all[rapid.IntRange(0, len(all)-1).Draw(t, "tool")]
		text := s.condition(t, 3)
		eval, findings, ok := s.judge(text)
		if !ok || len(findings) > 0 {
			return
		}
		silent++
		for range 20 {
			args := s.args(t)
			if _, err := eval(approvers.Facts{Args: args}); err != nil {
				t.Fatalf("%s: %s fails for %v: %v, but check says nothing", s.name, text, args, err)
			}
		}
	})
	t.Logf("%d conditions without a finding", silent)
	if silent == 0 {
		t.Error("no condition was without a finding: the test shows nothing")
	}
}
