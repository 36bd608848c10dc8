package approvers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"countersign/approvers"
)

func TestStrictArgs(t *testing.T) {
	nested := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	tests := []struct {
		name  string
		raw   string
		exact bool
		fault string // a part of the error; empty: accepted
	}{
		{name: "plain", raw: `{"order_id":"ORD-123","amount":49.99}`, exact: true},
		{name: "spaces around", raw: " \n{ \"a\" : 1 }\t"},
		{name: "empty object", raw: `{}`},
		{name: "null and booleans", raw: `{"a":null,"b":true,"c":[false,{}]}`},
		{name: "the same name in different objects", raw: `{"a":{"x":1},"b":{"x":1}}`},
		{name: "NUL written as an escape", raw: `{"a":"\u0000"}`},

		{name: "nothing", raw: ``, fault: "cut short"},
		{name: "cut in an object", raw: `{"a":1`, fault: "cut short"},
		{name: "cut in a string", raw: `{"a":"b`, fault: "cut short"},
		{name: "cut after a name", raw: `{"a":`, fault: "cut short"},
		{name: "cut in a list", raw: `{"a":[1,`, fault: "cut short"},
		{name: "a list", raw: `[1]`, fault: "a JSON object is needed"},
		{name: "a string", raw: `"{}"`, fault: "a JSON object is needed"},
		{name: "null", raw: `null`, fault: "a JSON object is needed"},
		{name: "a second object", raw: `{} {}`, fault: "more after"},
		{name: "words behind", raw: `{} done`, fault: "more after"},
		{name: "a bracket behind", raw: `{}}`, fault: "more after"},
		{name: "a NUL behind", raw: "{}\x00", fault: "more after"},
		{name: "a raw NUL in a string", raw: "{\"a\":\"\x00\"}", fault: "not valid JSON"},
		{name: "the wrong bracket", raw: `{"a":[}`, fault: "not valid JSON"},
		{name: "a trailing comma", raw: `{"a":1,}`, fault: "not valid JSON"},
		{name: "a comment", raw: `{/* */}`, fault: "not valid JSON"},
		{name: "single quotes", raw: `{'a':1}`, fault: "not valid JSON"},
		{name: "bytes that are not UTF-8", raw: "{\"a\":\"\xff\"}", fault: "not valid JSON"},
		{name: "half a surrogate pair", raw: `{"a":"\ud800"}`, fault: "not valid JSON"},
		{name: "a byte order mark", raw: "\ufeff{}", fault: "not valid JSON"},

		{name: "a name twice", raw: `{"amount":1,"amount":9}`, fault: `"amount" and "amount"`},
		{name: "a name twice, once escaped", raw: `{"amount":1,"\u0061mount":9}`, fault: "same or differ only in case"},
		{name: "names that differ in case", raw: `{"amount":1,"Amount":9}`, fault: "differ only in case"},
		{name: "the Kelvin sign is a k", raw: "{\"kind\":1,\"\u212aind\":9}", fault: "differ only in case"},
		{name: "the long s is an s", raw: "{\"status\":1,\"\u017ftatus\":9}", fault: "differ only in case"},
		{name: "both sigmas", raw: `{"σ":1,"ς":9}`, fault: "differ only in case"},
		{name: "deep down", raw: `{"a":[{"b":{"x":1,"X":2}}]}`, fault: "differ only in case"},
		{name: "the empty name twice", raw: `{"":1,"":2}`, fault: "same"},

		{name: "out of float64's range", raw: `{"a":1e400}`, fault: "out of range"},
		{name: "minus out of range", raw: `{"a":-1e400}`, fault: "out of range"},
		{name: "a number with a leading zero", raw: `{"a":01}`, fault: "not valid JSON"},
		{name: "NaN", raw: `{"a":NaN}`, fault: "not valid JSON"},
		{name: "2^53+1, not read by a rule", raw: `{"a":9007199254740993}`},
		{name: "2^53+1, read by a rule", raw: `{"a":9007199254740993}`, exact: true, fault: "would be rounded"},
		{name: "2^53", raw: `{"a":9007199254740992}`, exact: true},
		{name: "minus zero", raw: `{"a":-0}`, exact: true},
		{name: "a decimal that a person would write", raw: `{"a":0.1,"b":49.99,"c":1e3,"d":1.50}`, exact: true},
		{name: "more digits than float64 has", raw: `{"a":0.1000000000000000055}`, exact: true, fault: "would be rounded"},
		{name: "too small for float64", raw: `{"a":1e-400}`, exact: true, fault: "would be rounded"},
		{name: "very much too small", raw: `{"a":1e-1000000}`, exact: true, fault: "would be rounded"},
		{name: "zero with any exponent", raw: `{"a":0e-1000000}`, exact: true},
		{name: "a thousand digits", raw: `{"a":0.` + strings.Repeat("1", 1000) + `}`, exact: true, fault: "digits"},

		{name: "as deep as a person can read", raw: nested(31)},
		{name: "deeper", raw: nested(33), fault: "nested deeper"},
		{name: "longer than a card can be", raw: `{"a":"` + strings.Repeat("x", approvers.MaxArgs) + `"}`, fault: "more than 65536"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := approvers.StrictArgs([]byte(tt.raw), tt.exact)
			switch {
			case tt.fault == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.fault != "" && err == nil:
				t.Errorf("accepted; want refused: %s", tt.fault)
			case tt.fault != "" && !errors.Is(err, approvers.ErrArgs):
				t.Errorf("%v is not ErrArgs", err)
			case tt.fault != "" && !strings.Contains(err.Error(), tt.fault):
				t.Errorf("refused with %q; want %q", err, tt.fault)
			}
		})
	}
}

// TestStrictArgsFoldsLikeUnicode tries every character that case folding maps to another character. A decoder that
// ignores the case of names, such as encoding/json, could confuse the two characters.
func TestStrictArgsFoldsLikeUnicode(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			raw := fmt.Appendf(nil, `{"a%c":1,"a%c":2}`, r, f)
			if _, err := approvers.StrictArgs(raw, false); err == nil {
				t.Errorf("%U and %U are taken as two names", r, f)
			}
		}
	}
}

func TestEqualArgs(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":2}`, `{ "b" : 2, "a" : 1 }`, true},
		{`{"a":1}`, `{"a":1.0}`, false}, // an edit that only writes a number in another form is still an edit
		{`{"a":"é"}`, `{"a":"\u00e9"}`, true},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false}, // two numbers that are the same float64
		{`{"a":0.1}`, `{"a":0.1000000000000000055}`, false},         // also two numbers that are the same float64
		{`{"a":1`, `{"a":1`, true},
		{`{"a":1`, `{"a":2`, false},
	}
	for _, tt := range tests {
		if got := approvers.EqualArgs(json.RawMessage(tt.a), json.RawMessage(tt.b)); got != tt.want {
			t.Errorf("EqualArgs(%s, %s) = %t", tt.a, tt.b, got)
		}
	}
	raw := json.RawMessage(`{ "b":1, "a":2 }`)
	before := bytes.Clone(raw)
	approvers.EqualArgs(raw, raw)
	if !bytes.Equal(raw, before) {
		t.Errorf("comparing rewrote the bytes to %s", raw)
	}
}

// Texts with the same value have the same form. Texts with different values have different forms.
func TestCanonicalArgs(t *testing.T) {
	tests := []struct{ args, want string }{
		{"{ \"b\" : [ 1, {\"d\":true,\"c\":null} ],\n\t\"a\" : \"x y\" }", `{"a":"x y","b":[1,{"c":null,"d":true}]}`},
		{`{"a":"é/\u00e9\/\u0041\"\\","A":""}`, `{"A":"","a":"é/é/A\"\\"}`},
		{`{"a":[1,1.0,1e0,10E-1,0.1e+1,1.000e00]}`, `{"a":[1,1,1,1,1,1]}`},
		{`{"a":[100,1e2,1E+02,100.00,-100,-1e2]}`, `{"a":[1e2,1e2,1e2,1e2,-1e2,-1e2]}`},
		{`{"a":[1.5,15e-1,0.0150e2,10.05]}`, `{"a":[15e-1,15e-1,15e-1,1005e-2]}`},
		{`{"a":[0,-0,0.0,0e9,-0.0E-5]}`, `{"a":[0,0,0,0,0]}`},
		{`{"a":9007199254740993,"b":9007199254740992.0}`, `{"a":9007199254740993,"b":9007199254740992}`},
		{`{"a":[0.1,0.1000000000000000055]}`, `{"a":[1e-1,1000000000000000055e-19]}`},
		{`{"a":[1e-400,1e400,1e-99999999999]}`, `{"a":[1e-400,1e400,1e-99999999999]}`},
		{`{"a":"1.0","b":" 1e0, [-1]"}`, `{"a":"1.0","b":" 1e0, [-1]"}`},
		{`[]`, `[]`}, {` {} `, `{}`}, {`1.0`, `1`}, {`""`, `""`},
		{`{"a": 1, "a": 1}`, `{"a": 1, "a": 1}`}, {`{"a": 1.0`, `{"a": 1.0`}, {``, ``}, {`{} {}`, `{} {}`}, {"{\"a\": \"\xff\"}", "{\"a\": \"\xff\"}"},
	}
	for _, tt := range tests {
		raw := json.RawMessage(tt.args)
		before := bytes.Clone(raw)
		if got := approvers.CanonicalArgs(raw); string(got) != tt.want {
			t.Errorf("CanonicalArgs(%s) = %s, want %s", tt.args, got, tt.want)
		}
		if !bytes.Equal(raw, before) {
			t.Errorf("the form was written over the bytes: %s", raw)
		}
	}
}

// FuzzStrictArgs compares StrictArgs with encoding/json. If StrictArgs accepts an input, encoding/json must accept the
// input as one object, and must read the same values from it.
func FuzzStrictArgs(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":1,"b":[true,null,"x"]}`, `{"amount":1,"Amount":2}`, "{\"k\":1,\"\u212a\":2}", `{"a":1e400}`, `{"a":9007199254740993}`,
		`{"a":-0}`, `{"a":49.99}`, `{"a":1`, `{} {}`, "{\"a\":\"\xff\"}", "{\"a\":\"\x00\"}", `{"a":"\ud800"}`, `{"a":1e-999999}`, `{"a":{"b":{"c":[[[]]]}}}`,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, exact bool) {
		got, err := approvers.StrictArgs(raw, exact)
		if err != nil {
			if !errors.Is(err, approvers.ErrArgs) {
				t.Fatalf("%v is not ErrArgs", err)
			}
			return
		}
		var want map[string]any
		if err := json.Unmarshal(raw, &want); err != nil || want == nil {
			t.Fatalf("accepted, although it is not a JSON object: %v", err)
		}
		a, errA := json.Marshal(got)
		b, errB := json.Marshal(want)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Fatalf("read as %s (%v), encoding/json reads %s (%v)", a, errA, b, errB)
		}
		if !approvers.EqualArgs(raw, raw) {
			t.Fatal("not equal to itself")
		}
		form := approvers.CanonicalArgs(raw)
		if same, err := approvers.StrictArgs(form, false); len(form) <= approvers.MaxArgs && (err != nil || !reflect.DeepEqual(same, got)) {
			t.Fatalf("the canonical form %s is %v (%v), want %v", form, same, err, got)
		}
		if again := approvers.CanonicalArgs(form); !bytes.Equal(again, form) {
			t.Fatalf("the canonical form of %s is %s", form, again)
		}
		if _, err := approvers.StrictArgs(raw, false); exact && err != nil {
			t.Fatalf("accepted with exact, but refused without it: %v", err)
		}
	})
}
