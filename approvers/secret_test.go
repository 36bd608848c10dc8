package approvers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSecretPaths(t *testing.T) {
	for schema, want := range map[string][]string{
		`{"properties":{"pin":{"type":"string","x-secret":true},"order":{"type":"string"}}}`:                                     {"pin"},
		`{"properties":{"a":{"format":"password"},"b":{"writeOnly":true},"c":{"x-secret":false}}}`:                               {"a", "b"},
		`{"properties":{"card":{"type":"object","properties":{"number":{"x-secret":true}}}}}`:                                    {"card.number"},
		`{"properties":{"cards":{"type":"array","items":{"properties":{"number":{"x-secret":true}}}}}}`:                          {"cards.number"},
		`{"properties":{"card":{"$ref":"#/$defs/c"}},"$defs":{"c":{"properties":{"cvc":{"format":"password"}}}}}`:                {"card.cvc"},
		`{"properties":{"pay":{"oneOf":[{"properties":{"iban":{"x-secret":true}}},{"properties":{"card":{"x-secret":true}}}]}}}`: {"pay.card", "pay.iban"},
		`{"x-secret":true}`: {"*"},
		`{"properties":{"a":{"patternProperties":{"^pw_":{"writeOnly":true}}},"b":{}}}`:                                     {"a"},
		`{"properties":{"a":{"patternProperties":{"^c":{"properties":{"pin":{"x-secret":true}}}}}}}`:                        {"a.pin"},
		`{"properties":{"a":{}},"unevaluatedProperties":{"format":"password"}}`:                                             {"*"},
		`{"properties":{"a":{"items":[{"type":"string"},{"writeOnly":true}]}}}`:                                             {"a"},
		`{"properties":{"a":{"dependencies":{"b":["c"],"d":{"properties":{"e":{"x-secret":true}}}}}}}`:                      {"a.e"},
		`{"properties":{"a":{"x-shape":{"of":{"writeOnly":true}}},"b":{}}}`:                                                 {"a"},
		`{"properties":{"pw":{"$ref":"#secret"}},"$defs":{"s":{"$anchor":"secret","properties":{"x":{"x-secret":true}}}}}`:  {"pw.x"},
		`{"properties":{"pw":{"$dynamicRef":"#secret"}},"$defs":{"s":{"$dynamicAnchor":"secret","x-secret":true}}}`:         {"pw"},
		`{"properties":{"pw":{"$ref":"#secret"}},"definitions":{"s":{"$id":"#secret","x-secret":true}}}`:                    {"pw"},
		`{"properties":{"pw":{"$ref":"#/$defs/my%20secret"}},"$defs":{"my secret":{"properties":{"x":{"x-secret":true}}}}}`: {"pw.x"},
		`{"properties":{"pw":{"$ref":"#/allOf/0"}},"allOf":[{"type":"object","properties":{"x":{"x-secret":true}}}]}`:       {"pw.x", "x"},
		`{"properties":{"a":{"$ref":"card.json"},"b":{"$ref":"#/$defs/none"},"c":{"x-secret":true},"d":{}}}`:                {"a", "b", "c"},
		`{"properties":{"a":{"$ref":"card.json"},"b":{"$ref":"#/$defs/none"}}}`:                                             nil,
		`{"properties":{"a":{"default":{"writeOnly":true}}},"$defs":{"unused":{"x-secret":true}}}`:                          nil,
		`nothing`: nil,
	} {
		got := SecretPaths(json.RawMessage(schema))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", schema, diff)
		}
	}
}

// A schema may refer to itself. The secrets of such a schema are found at every level of nested arguments. If a schema
// describes too many paths, the search for secrets ends at a limit. If the schema marks any secret, its parts beyond
// the limit count as secret.
func TestSecretPathsOfRecursiveSchema(t *testing.T) {
	one := SecretPaths(json.RawMessage(`{"properties":{"self":{"$ref":"#"},"name":{"type":"string"},"key":{"x-secret":true}},
		"allOf":[{"if":{},"then":{"properties":{"t":{"writeOnly":true}}}}]}`))
	for depth := range 40 {
		at := strings.Repeat("self.", depth)
		if !IsSecret(one, at+"key") || !IsSecret(one, at+"t") || IsSecret(one, at+"name") {
			t.Fatalf("at depth %d: key %t, t %t, name %t", depth, IsSecret(one, at+"key"), IsSecret(one, at+"t"), IsSecret(one, at+"name"))
		}
	}

	var many, wide []string
	for i := range 10 {
		many = append(many, fmt.Sprintf(`"p%d":{"$ref":"#"}`, i))
	}
	for i := range 20_000 {
		wide = append(wide, fmt.Sprintf(`"p%d":{"$ref":"#"}`, i))
	}
	for _, names := range [][]string{many, wide} {
		got := SecretPaths(json.RawMessage(`{"properties":{` + strings.Join(names, ",") + `,"key":{"x-secret":true}}}`))
		if len(got) > 30_000 {
			t.Errorf("%d paths of %d properties", len(got), len(names))
		}
		for _, at := range []string{"key", "p3.key", "p3.p4.key", strings.Repeat("p3.", 30) + "key"} {
			if !IsSecret(got, at) {
				t.Errorf("%d properties: %s is not secret", len(names), at)
			}
		}
	}
	if got := SecretPaths(json.RawMessage(`{"properties":{` + strings.Join(wide, ",") + `}}`)); got != nil {
		t.Errorf("without a mark %d paths are secret", len(got))
	}
}

func TestIsSecret(t *testing.T) {
	for _, c := range []struct {
		secrets   []string
		path      string
		is, holds bool
	}{
		{[]string{"card"}, "card", true, true},
		{[]string{"card"}, "card.number", true, true},
		{[]string{"card"}, "cards", false, false},
		{[]string{"card.number"}, "card", false, true},
		{[]string{"card.number"}, "card.name", false, false},
		{[]string{"*"}, "anything", true, true},
		{nil, "card", false, false},
	} {
		if IsSecret(c.secrets, c.path) != c.is || HoldsSecret(c.secrets, c.path) != c.holds {
			t.Errorf("%q at %q", c.secrets, c.path)
		}
	}
}

func TestMaskValues(t *testing.T) {
	args := map[string]any{"pin": "1234", "cards": []any{map[string]any{"number": "4242", "name": "Ann"}}, "amount": 5.0}
	got := MaskValues(args, []string{"pin", "cards.number"})
	want := map[string]any{"pin": MaskedValue, "cards": []any{map[string]any{"number": MaskedValue, "name": "Ann"}}, "amount": 5.0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if args["pin"] != "1234" {
		t.Error("the arguments themselves were changed")
	}
}
