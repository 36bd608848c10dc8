package argument

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/block"
	"countersign/bot/render/markdown"
)

func TestArgumentText(t *testing.T) {
	raw := `{ "order_id" : "ORD-1" , "amount":49.990, "big":12345678901234567890, "body":"Dear\nAnn\u202e\n", "items":[{"a":1,"b":[]},{}, "x"],
		"o":{}, "e":"", "n":null, "odd name":true, "\u0061dmin":"q\"\\\t" }`
	want := strings.TrimPrefix(`
order_id:   ORD-1
amount:     49.990
big:        12345678901234567890
body:
  │ Dear
  │ Ann⟨U+202E⟩
  │ 
items:
  -
    a: 1
    b: []
  - {}
  - x
o:          {}
e:          ""
n:          null
"odd name": true
admin:      "q\"\\\t"`, "\n")
	if diff := cmp.Diff(want, Text([]byte(raw))); diff != "" {
		t.Error(diff)
	}
	for raw, want := range map[string]string{`{}`: "(no arguments)", ` [1]`: " [1]", `{"a":`: `{"a":`} {
		if got := Text([]byte(raw)); got != want {
			t.Errorf("%s: %q", raw, got)
		}
	}
}

// The old and the new text of an edit are shown as a difference that has all lines of both texts. This also holds for
// each edit of a list. No other argument looks like a difference.
func TestEdits(t *testing.T) {
	for raw, want := range map[string]string{
		`{"file_path":"/w/a.go","old_string":"a\nb\nc","new_string":"a\nB\nc\nd","working_folder":"/w"}`: `
file_path:      /w/a.go
old_string → new_string:
  │   a
  │ - b
  │ + B
  │   c
  │ + d
working_folder: /w`,
		`{"file_path":"/w/a.go","edits":[{"old_string":"x := 1","new_string":"x := 1\ny := 2","replace_all":true},{"old_string":"a","new_string":"b"}]}`: `
file_path: /w/a.go
edits:
  -
    old_string → new_string:
      │   x := 1
      │ + y := 2
    replace_all: true
  -
    old_string: a
    new_string: b`,
		`{"new_str":"b\u202e\n","path":"/a","old_str":"a\n"}`: `
old_str → new_str:
  │ - a
  │ + b⟨U+202E⟩
  │   
path: /a`,
		"{\"old_string\":\"" + strings.Repeat(" ", 16) + "if ok:\\n" + strings.Repeat(" ", 14) + "a()\\n" + strings.Repeat(" ", 16) + "x = 1\",\"new_string\":\"" +
			strings.Repeat(" ", 16) + "if ok:\\n" + strings.Repeat(" ", 14) + "a()\\n" + strings.Repeat(" ", 16) + "x = 2\"}": `
old_string → new_string:
  │   ⟨16 spaces⟩if ok:
  │                 a()
  │ - ⟨16 spaces⟩x = 1
  │ + ⟨16 spaces⟩x = 2`,
		`{"old_string":"","new_string":"a\nb"}`: `
old_string: ""
new_string:
  │ a
  │ b`,
		`{"old_string":["a\n"],"new_string":"a\nb"}`: `
old_string:
  -
    │ a
    │ 
new_string:
  │ a
  │ b`,
		`{"old_string":"a\nb","old_string":"a\nc","new_string":"a"}`: `
old_string:
  │ a
  │ b
old_string:
  │ a
  │ c
new_string: a`,
		`{"old_string → new_string":"- a\n+ b"}`: `
"old_string → new_string":
  │ - a
  │ + b`,
	} {
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), Text([]byte(raw))); diff != "" {
			t.Errorf("%s\n%s", raw, diff)
		}
	}
	masked := MaskedText([]byte(`{"old_string":"a\nb","new_string":"a\nc"}`), []string{"new_string"})
	if want := "old_string:\n  │ a\n  │ b\nnew_string: ⟨masked⟩"; masked != want {
		t.Errorf("with a masked text it is %q, want %q", masked, want)
	}
}

// No text can look like another argument: two argument objects that mean different things look different.
func FuzzArgumentText(f *testing.F) {
	for _, pair := range [][2]string{
		{`{"a":"1\nb: 2"}`, `{"a":"1","b":2}`}, {`{"a":["x","y"]}`, `{"a":["x\n  - \"y\""]}`}, {`{"a":"1"}`, `{"a":1}`},
		{`{"a":{"b":1}}`, `{"a":"\n  b: 1"}`}, {`{"a":"│ x"}`, `{"a":"\nx"}`}, {`{"a":{}}`, `{"a":"{}"}`}, {`{"a.b":1}`, `{"a":{"b":1}}`},
		{`{"a":[]}`, `{"a":[[]]}`}, {`{"a":[{}]}`, `{"a":{"-":{}}}`},
		{`{"old_string":"a\nb","new_string":"a\nc"}`, `{"old_string":"a\n- b","new_string":"a\n+ c"}`},
		{`{"old_string":"a\nb","new_string":"a"}`, `{"old_string":"a\nb\n","new_string":"a\n"}`},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if !taken(a) || !taken(b) {
			return
		}
		same := approvers.EqualArgs([]byte(a), []byte(b))
		x, y := Text([]byte(a)), Text([]byte(b))
		if x == y && !same && !sameButOrder(a, b) {
			t.Fatalf("%s and %s both look like this:\n%s", a, b, x)
		}
	})
}

func taken(raw string) bool {
	_, err := approvers.StrictArgs([]byte(raw), false)
	return err == nil
}

// sameButOrder reports whether two argument objects are equal except for the order of members. It reads numbers as
// float64. So it treats two numbers as equal if they differ only in digits that float64 can't hold. EqualArgs treats
// such numbers as different.
func sameButOrder(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && cmp.Equal(x, y)
}

func TestPages(t *testing.T) {
	text := strings.Repeat("a line of text\n", 1000) + strings.Repeat("界", 5000)
	pages := markdown.Pages(text, 900)
	if strings.Join(pages, "") != text {
		t.Error("pages lose text")
	}
	for _, p := range pages {
		if block.Width(p) > 900 {
			t.Errorf("a page has %d characters", block.Width(p))
		}
	}
}

func TestChanges(t *testing.T) {
	got, ok := Changes([]byte(`{"a":1,"b":"x","gone":[1],"same":{"x":1}}`), []byte(`{"a":2,"b":"x\ny","same":{"x":1},"new":true}`), nil)
	want := "- a: 1\n+ a: 2\n- b: x\n+ b:\n+   │ x\n+   │ y\n- gone:\n-   - 1\n+ new: true"
	if !ok || got != want {
		t.Errorf("%v\n%s", ok, got)
	}
	if _, ok := Changes([]byte(`{"a":1}`), []byte(`{"a":"`+strings.Repeat("x", MaxDiff)+`"}`), nil); ok {
		t.Error("a change that is too long to show was shown")
	}
}

func TestSplice(t *testing.T) {
	raw := "{ \"a\" : 1 ,\n  \"b\":\t2, \"\\u0063\" : [ 1 , 2 ] }"
	for name, c := range map[string]struct {
		change map[string][]byte
		added  []string
		want   string
	}{
		"nothing":    {nil, nil, raw},
		"one":        {map[string][]byte{"b": []byte("3")}, nil, "{ \"a\" : 1,\n  \"b\":\t3, \"\\u0063\" : [ 1 , 2 ] }"},
		"escaped":    {map[string][]byte{"c": []byte(`"x"`)}, nil, "{ \"a\" : 1,\n  \"b\":\t2, \"\\u0063\" : \"x\" }"},
		"first gone": {map[string][]byte{"a": nil}, nil, "{\n  \"b\":\t2, \"\\u0063\" : [ 1 , 2 ] }"},
		"all gone":   {map[string][]byte{"a": nil, "b": nil, "c": nil}, nil, "{ }"},
		"added":      {map[string][]byte{"z": []byte("0")}, []string{"z"}, "{ \"a\" : 1,\n  \"b\":\t2, \"\\u0063\" : [ 1 , 2 ],\"z\":0 }"},
	} {
		got := Splice([]byte(raw), c.change, c.added)
		if !json.Valid(got) {
			t.Errorf("%s: not valid: %s", name, got)
		}
		if !approvers.EqualArgs(got, []byte(c.want)) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// For any replacement the result is valid and contains the new values, and all other members keep their bytes.
func FuzzSplice(f *testing.F) {
	f.Add(`{"a":1,"b":[1, 2]}`, "a", `"x"`)
	f.Add(`{ "a" : 1.50 , "\u0062" : {"c":"d,e"} }`, "b", "null")
	f.Add(`{}`, "new", "0")
	f.Fuzz(func(t *testing.T, raw, member, value string) {
		if !taken(raw) || !json.Valid([]byte(value)) || !taken(`{"x":`+value+`}`) || string(MustQuote(member)) == `"?"` {
			return
		}
		names, before := Members([]byte(raw))
		var added []string
		if !slices.Contains(names, member) {
			added = []string{member}
		}
		out := Splice([]byte(raw), map[string][]byte{member: []byte(value)}, added)
		if !json.Valid(out) {
			t.Fatalf("splice(%s, %q, %s) = %s", raw, member, value, out)
		}
		_, after := Members(out)
		if !bytes.Equal(bytes.TrimSpace(after[member]), bytes.TrimSpace([]byte(value))) {
			t.Fatalf("%s holds %s, not %s", out, after[member], value)
		}
		for _, n := range names {
			if n != member && !bytes.Equal(before[n], after[n]) {
				t.Fatalf("%q was %s and became %s", n, before[n], after[n])
			}
		}
		gone := Splice(out, map[string][]byte{member: nil}, nil)
		if _, left := Members(gone); !json.Valid(gone) || left[member] != nil {
			t.Fatalf("removing %q from %s gives %s", member, out, gone)
		}
	})
}

// Even if all arguments are on one line, no value can be mistaken for another argument or for a value of another type.
func TestOnOneLine(t *testing.T) {
	for args, want := range map[string]string{
		`{"order_id":"ORD-123","amount":49.990,"reason":"arrived broken"}`: `order_id: ORD-123, amount: 49.990, reason: arrived broken`,
		`{"a":"x, amount: 5","b":"1,000 USD"}`:                             `a: "x, amount: 5", b: 1,000 USD`,
		`{"a":"x,","b":"y:"}`:                                              `a: "x,", b: "y:"`,
		`{"a":"5","b":"","c":"two\nlines","d":null}`:                       `a: "5", b: "", c: "two\nlines", d: null`,
		`{"a":{"b":"c","d":[1,"2",{}]},"e":[]}`:                            `a: {b: c, d: [1, "2", {}]}, e: []`,
		`{"a":"b]","c":"{d"}`:                                              `a: "b]", c: "{d"`,
		`{"a b":"12:30","c":"http://x.example/y"}`:                         `"a b": 12:30, c: http://x.example/y`,
		`{}`:        `(no arguments)`,
		`[1]`:       `[1]`,
		`{"a":1} {`: `{"a":1} {`,
	} {
		if got := OnOneLine([]byte(args), nil); got != want {
			t.Errorf("%s on one line is %q, want %q", args, got, want)
		}
	}
	got := OnOneLine([]byte(bottest.SecretArgs), []string{"card.number", "pin"})
	if want := "order_id: ORD-7, card: {number: ⟨masked, 19 characters, ends in 4242⟩, name: Ann}, pin: ⟨masked, 9 characters⟩, note: hunter2-is-it"; got != want {
		t.Errorf("with masked values it is %q, want %q", got, want)
	}
}
