package condition_test

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// richSchema is the schema of a tool whose arguments include lists, nested objects and alternatives.
//
//go:embed testdata/typed/schema.json
var richSchema []byte

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The function lists the findings about a condition on a tool's arguments. A finding has the position in the
// condition, the problem, and what to write.
func said(t *testing.T, condition string, schema json.RawMessage) (out []string) {
	t.Helper()
	const before = "version: 1\ntools:\n  pay: {risk: low, rules: [{when: "
	f, err := config.ParsePolicy("p", []byte(before+strconv.Quote(condition)+", confirm: true}]}\n"))
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	start := len(before) - strings.LastIndex(before, "\n") // position at which the text begins, after its opening quotation mark
	for _, p := range check.Run(f, []check.Tool{{Name: "pay", Schema: schema}}) {
		about, found := strings.CutPrefix(p.Message, "tools.pay.rules[0].when: ")
		if !found {
			continue
		}
		if p.Hint == "" {
			t.Errorf("%s: it does not say what to write: %v", condition, p)
		}
		// In the policy file, a quotation mark in the condition is written as two characters. Therefore the loop counts
		// the written characters before the position.
		at, escaped := 0, strconv.Quote(condition)[1:]
		for written := start + 1; written < p.Column; written++ {
			if escaped[written-start-1] == '\\' {
				written++
			}
			at++
		}
		severity := ""
		if p.Severity == yamldoc.Warning {
			severity = "warning: "
		}
		out = append(out, fmt.Sprintf("%s%s; %s\n  %s\n  %s^", severity, about, p.Hint, condition, strings.Repeat(" ", at)))
	}
	return out
}

// TestTypedConditions checks each condition of testdata/typed/conditions.txt against richSchema. The findings must be
// those that the file lists.
func TestTypedConditions(t *testing.T) {
	const path = "testdata/typed/conditions.txt"
	text := read(t, path)
	var got strings.Builder
	heading := true
	for _, line := range strings.Split(text, "\n") {
		condition, isCase := strings.CutPrefix(line, "> ")
		switch {
		case strings.HasPrefix(line, "#") || (heading && line == ""):
			got.WriteString(line + "\n")
		case isCase:
			heading = false
			got.WriteString("> " + condition + "\n")
			for _, s := range said(t, condition, richSchema) {
				got.WriteString(s + "\n")
			}
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(text, got.String()); diff != "" {
		t.Errorf("the findings differ (-want +got; run with -update if they should):\n%s", diff)
	}
}

// TestSchemasLeftAlone checks schemas that are not understood or have too many alternatives. Such schemas must cause
// no error and no long computation.
func TestSchemasLeftAlone(t *testing.T) {
	var alternatives []string
	for i := range 15 {
		alternatives = append(alternatives, fmt.Sprintf(`{"properties": {"a%d": {"type": "string"}}}`, i))
	}
	all := strings.Join(alternatives, ",")
	for name, schema := range map[string]string{
		"no schema":             ``,
		"no JSON":               `{"type"`,
		"no schema's JSON":      `{"type": 5}`,
		"another file":          `{"type": "object", "$ref": "other.json"}`,
		"no properties":         `{"type": "object"}`,
		"additional":            `{"type": "object", "properties": {"b": {}}, "additionalProperties": true}`,
		"unevaluated":           `{"type": "object", "properties": {"b": {}}, "unevaluatedProperties": {"type": "number"}}`,
		"dynamic":               `{"type": "object", "properties": {"b": {}}, "$dynamicRef": "#x", "$defs": {"x": {"$dynamicAnchor": "x", "properties": {"a14": {}}}}}`,
		"dependent":             `{"type": "object", "properties": {"b": {}}, "dependentSchemas": {"b": {"properties": {"a14": {}}}}}`,
		"dependencies":          `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"b": {}}, "dependencies": {"b": {"properties": {"a14": {}}}}}`,
		"too many alternatives": `{"type": "object", "anyOf": [` + all + `], "oneOf": [` + all + `]}`,
		"alternatives in turn":  `{"type": "object", "allOf": [{"anyOf": [` + all + `]}, {"oneOf": [` + all + `]}, {"anyOf": [` + all + `]}]}`,
		"it contains itself":    `{"type": "object", "properties": {"b": {}}, "additionalProperties": true, "allOf": [{"$ref": "#"}]}`,
	} {
		for _, found := range said(t, `args.a14.x == 5 && args.nothing > 5`, json.RawMessage(schema)) {
			if !strings.HasPrefix(found, "warning: ") {
				t.Errorf("%s:\n%s", name, found)
			}
		}
	}
	growing := `{"type": "object", "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {
		"a": {"type": "object", "required": ["x", "y"], "properties": {"x": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}, "y": {"type": "array", "items": {"$ref": "#/$defs/b"}}}},
		"b": {"type": "object", "required": ["x", "y"], "properties": {"x": {"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/a"}]}, "y": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/a"}]}}}}}}`
	for _, condition := range []string{
		"args" + strings.Repeat(".x", 200) + " == 5", "args" + strings.Repeat(".y[0]", 60) + ".x == 5", strings.Repeat("args.x in [", 30) + "5" + strings.Repeat("]", 30),
	} {
		said(t, condition, json.RawMessage(growing))
	}
}

// TestOlderDrafts checks that schemas of earlier drafts have the same meaning.
func TestOlderDrafts(t *testing.T) {
	schema := json.RawMessage(`{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["pair", "to"],
		"properties": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}}}], "additionalItems": {"type": "boolean"}}, "to": {"$ref": "#/definitions/to"}},
		"definitions": {"to": {"type": "string", "enum": ["x"]}}}`)
	for condition, want := range map[string]int{
		`args.to == "x"`: 0, `args.to == "y"`: 1, `args.to == 5`: 1, `args.pair[1].a == 5`: 0, `args.pair[1].b == 5`: 1, `true in args.pair`: 0, `args.pair[0] == 5`: 1,
	} {
		if found := said(t, condition, schema); len(found) != want {
			t.Errorf("%s: %q", condition, found)
		}
	}
}

// TestCostlyConditions checks the warning about conditions that exceed the cost limit with the largest arguments that
// the schema allows. The warning must have the right position. If the schema is not known, check warns only about
// conditions that make a long text from short texts.
func TestCostlyConditions(t *testing.T) {
	const note, bounded = `{"type":"object","properties":{"note":{"type":"string"}}}`, `{"type":"object","properties":{"note":{"type":"string","maxLength":20}}}`
	for _, c := range []struct {
		condition, schema, place string // empty place: no warning
	}{
		{`args.note.split("").join(args.note) != ""`, note, "3:75"},
		{`size(args.note.replace("a", args.note)) > 5`, note, "3:73"},
		{`args.note.split("").join(args.note) != ""`, "", "3:75"},
		{`size(args.note.replace("a", args.note)) > 5`, "", "3:73"},
		{`size(args.note.replace("a", args.note)) > 5`, bounded, ""},
		{`args.note.lowerAscii().contains("refund")`, note, ""},
		{`args.items.exists(i, i.price > 5.0)`, "", ""},
		{`args.note.split("").exists(x, args.note.split("").exists(y, x == y))`, note, "3:77"},
	} {
		f, err := config.ParsePolicy("p", []byte("version: 1\ntools:\n  pay: {risk: low, rules: [{confirm: true, when: '"+c.condition+"'}]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		tools := []check.Tool{{Name: "pay", Schema: json.RawMessage(c.schema)}}
		if c.schema == "" {
			tools = nil
		}
		place := ""
		for _, p := range check.Run(f, tools) {
			if strings.Contains(p.Message, "over the limit of 100,000 steps") {
				place = fmt.Sprintf("%d:%d", p.Line, p.Column)
			}
		}
		if place != c.place {
			t.Errorf("%s: the warning points at %q, want %q", c.condition, place, c.place)
		}
	}
}
