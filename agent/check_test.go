package agent

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	deep := `{"type":"object","properties":{
		"items":{"type":"array","minItems":1,"maxItems":2,"uniqueItems":true,
			"items":{"type":"object","properties":{"sku":{"type":"string","pattern":"^[A-Z]+$"},"n":{"type":"integer","multipleOf":5}},"required":["sku"]}},
		"when":{"type":"string","format":"date"},
		"tags":{"type":"object","additionalProperties":{"type":"string"}},
		"free":{"type":"object","additionalProperties":true},
		"any":true,
		"bare":{"type":"object"},
		"list":{"type":"array"},
		"empty":{"type":"object","properties":{}},
		"closed":{"type":"object","additionalProperties":false},
		"no":false,
		"odd name.x":{"type":"object","properties":{"a":{"type":"boolean"}}},
		"pay":{"oneOf":[
			{"type":"object","properties":{"card":{"type":"string"}},"required":["card"]},
			{"type":"object","properties":{"iban":{"type":"string","minLength":5}},"required":["iban"]}]},
		"ref":{"$ref":"#/$defs/node"}},
		"dependentRequired":{"when":["items"]},
		"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"v":{"const":1}}}}}`
	for _, c := range []struct{ schema, args, want string }{
		{refundSchema, `{"order_id":"A","amount":1}`, ""},
		{refundSchema, `{"order_id":"A","amount":0.01,"currency":"EUR","to":"a@example.com"}`, ""},
		{refundSchema, `{"order_id":"A","amount":0}`, "amount: must be at least 0.01"},
		{refundSchema, `{"order_id":"A","amount":1000000.5}`, "amount: must be at most 1000000"},
		{refundSchema, `{}`, "amount: is missing; order_id: is missing"},
		{refundSchema, `{"order_id":"","amount":"5"}`, "amount: must be a number, but is a text; order_id: must not be empty"},
		{refundSchema, `{"order_id":"A","amount":null}`, "amount: must be a number, but is null"},
		{refundSchema, `{"order_id":"A","amount":1,"currency":"GBP"}`, `currency: must be one of "USD", "EUR"`},
		{refundSchema, `{"order_id":"A","amount":1,"to":"nobody"}`, "to: must be an e-mail address"},
		{refundSchema, `{"order_id":"A","amount":1,"note":"x"}`, "note: is not known; the fields are amount, currency, order_id, to"},
		{refundSchema, `{"order_id":"A","Amount":1}`, "Amount: is not known; the fields are amount, currency, order_id, to; amount: is missing"},
		{refundSchema, `{"order_id":"` + strings.Repeat("é", 41) + `","amount":1}`, "order_id: must have at most 40 characters, but has 41"},
		{refundSchema, `[]`, "the arguments must be an object, but is a list"},
		{refundSchema, `{"order_id":`, "the arguments are not valid JSON: unexpected EOF"},
		{refundSchema, `{"order_id":"A","amount":1} {}`, "the arguments are not valid JSON: invalid character after top-level value"},
		// The validator computes with exact numbers. Without a limit, numbers of this size would occupy the validator
		// for minutes, or crash the process.
		{refundSchema, `{"order_id":"A","amount":1e999999999}`, "amount: the number 1e999999999 is out of range"},
		{refundSchema, `{"order_id":"A","amount":1e-999999999}`, "amount: the number 1e-999999999 is out of range"},
		{refundSchema, `{"order_id":"A","amount":0e-99999999}`, "amount: must be at least 0.01"},
		{refundSchema, `{"order_id":"A","amount":1` + strings.Repeat("0", 400) + `}`, "amount: the number " + "1" + strings.Repeat("0", 39) + " is out of range"},

		{deep, `{"items":[{"sku":"A","n":10}]}`, ""},
		{deep, `{"items":[]}`, "items: must have at least 1 item, but has 0"},
		{deep, `{"items":[{"sku":"A"},{"sku":"A"}]}`, "items: must not repeat an item, but items 1 and 2 are equal"},
		{deep, `{"items":[{"sku":"a"},{"n":7}]}`, "items[0].sku: must match the pattern ^[A-Z]+$; items[1].n: must be a multiple of 5; items[1].sku: is missing"},
		{deep, `{"items":[{"sku":"A","n":1.5}]}`, "items[0].n: must be a whole number, but is a number"},
		{deep, `{"items":[{"sku":"A","colour":"red"}]}`, "items[0].colour: is not known; the fields are n, sku"},
		{deep, `{"when":"2026-01-31"}`, "items: is missing (needed because when is given)"},
		{deep, `{"when":"tomorrow","items":[{"sku":"A"}]}`, "when: must be a date such as 2026-01-31"},
		{deep, `{"tags":{"a":"b"}}`, ""},
		{deep, `{"tags":{"a":1}}`, "tags.a: must be a text, but is a number"},
		{deep, `{"tags":{"a":"b","":"c"}}`, ""},
		{deep, `{"free":{"x":{"y":[{"z":1}]}},"any":{"x":[{"y":1}]}}`, ""},
		{deep, `{"bare":{"x":{"y":1}},"list":[1,{"x":[{"y":1}]}]}`, ""}, // these schemas describe no members and no items
		{deep, `{"empty":{"x":1}}`, "empty.x: is not known; no fields are allowed here"},
		{deep, `{"closed":{"x":1}}`, "closed.x: is not known; no fields are allowed here"},
		{deep, `{"no":1}`, "no: is not allowed"},
		{deep, `{"odd name.x":{"a":1}}`, `"odd name.x".a: must be true or false, but is a number`},
		{deep, `{"pay":{"card":"1"}}`, ""},
		{deep, `{"pay":{"iban":"DE"}}`, `pay: fits none of the allowed forms: (pay.card: is missing) or (pay.iban: must have at least 5 characters, but has 2)`},
		{deep, `{"pay":{"card":"1","iban":"DE123"}}`, "pay: fits more than one of the allowed forms; leave out what makes it ambiguous"},
		{deep, `{"pay":{"card":"1","iban":"DE"}}`, "pay.iban: is not known; the fields are card"}, // the alternative that fits has no field iban
		{deep, `{"ref":{"next":{"next":{"v":1}}}}`, ""},
		{deep, `{"ref":{"next":{"next":{"w":1}}}}`, "ref.next.next.w: is not known; the fields are next, v"},
		{deep, `{"ref":{"next":{"v":2}}}`, "ref.next.v: must be 1"},

		{`{"type":"object","patternProperties":{"^x-":{"type":"string"}}}`, `{"x-a":"b"}`, ""},
		{`{"type":"object","patternProperties":{"^x-":{"type":"string"}}}`, `{"y":"b"}`, "y: is not known; no fields are allowed here"},
		{`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"string"}}}]}`, `{"a":"1","b":"2"}`, ""},
		{`{"type":"object","properties":{"k":{"enum":["a","b"]}},"if":{"properties":{"k":{"const":"a"}}},"then":{"properties":{"x":{}}},"else":{"properties":{"y":{}}}}`,
			`{"k":"b","x":1}`, "x: is not known; the fields are k, y"},
		{`{"type":"object","properties":{"a":{}},"unevaluatedProperties":{"type":"number"}}`, `{"a":{"q":1},"b":1}`, ""},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"t":{"items":[{"type":"string"},{"type":"object"}],"additionalItems":false}}}`,
			`{"t":["a",{"x":1}]}`, ""},
		// A schema that says nothing about members and items allows any. But the arguments themselves must have names.
		{`{"type":"object","properties":{"a":{"description":"anything"}}}`, `{"a":{"x":1}}`, ""},
		{`{"type":"object","properties":{"a":{"description":"anything"}}}`, `{"a":[{"x":1}]}`, ""},
		{`{"type":"object","properties":{"a":{"type":"object","required":["x"]}}}`, `{"a":{"x":1,"y":2}}`, ""},
		{`{"type":"object"}`, `{"x":1}`, "x: is not known; no fields are allowed here"},
		// One schema describes the members, and so another one does not allow further names.
		{`{"type":"object","properties":{"a":{"allOf":[{"type":"object"},{"properties":{"x":{}}}]}}}`, `{"a":{"x":1,"y":2}}`, "a.y: is not known; the fields are x"},
		{`{"type":"object","properties":{"a":{"type":"object","unevaluatedProperties":false}}}`, `{"a":{"y":2}}`, "a.y: is not allowed; a.y: is not known; no fields are allowed here"},
		// Items beyond the described ones have no schema.
		{`{"type":"object","properties":{"a":{"prefixItems":[{"type":"string"}]}}}`, `{"a":["b",{"x":1}]}`, "a[1].x: is not known; no fields are allowed here"},
	} {
		s, err := compileSchema(json.RawMessage(c.schema))
		if err != nil {
			t.Fatalf("%s: %v", c.schema, err)
		}
		got := ""
		if err := s.check(json.RawMessage(c.args)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s\n got: %s\nwant: %s", c.args, got, c.want)
		}
	}
}

func TestCheckListsAFewProblems(t *testing.T) {
	s, err := compileSchema(json.RawMessage(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	err = s.check(json.RawMessage(`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1}`))
	if err == nil || !strings.HasSuffix(err.Error(), "; and 2 more") {
		t.Errorf("%v", err)
	}
}

// For any input, the check ends without a panic, and a second check of the same input has the same result.
func FuzzCheck(f *testing.F) {
	f.Add(refundSchema, `{"order_id":"A","amount":1e5}`)
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":{"b":1}}}`)
	f.Add(`{"type":"object","anyOf":[{"$ref":"#"},true]}`, `{"a":1}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		s, err := compileSchema(json.RawMessage(schema))
		if err != nil {
			return
		}
		first := s.check(json.RawMessage(args))
		second := s.check(json.RawMessage(args))
		if (first == nil) != (second == nil) {
			t.Errorf("first %v, then %v", first, second)
		}
	})
}
