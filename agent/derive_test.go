package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// everyArgs has a field of every kind and every tag.
type everyArgs struct {
	Place
	Text      string            `json:"text" min:"1" max:"40" pattern:"^[a-z]+$" doc:"a \"word\" <of> ours"`
	Named     word              `json:"named,omitempty" enum:"one,two"`
	Mail      string            `json:"mail,omitempty" format:"email"`
	PIN       string            `json:"pin,omitempty" secret:"true"`
	Yes       bool              `json:"yes,omitzero"`
	Small     int8              `json:"small,omitempty"`
	Byte      uint8             `json:"byte,omitempty"`
	Whole     int               `json:"whole,omitempty" min:"1" max:"20" enum:"1,5,20"`
	Count     uint64            `json:"count,omitempty" max:"18446744073709551615"`
	Share     float64           `json:"share,omitempty" above:"0" below:"1"`
	Money     Decimal           `json:"money,omitzero" min:"0.01" max:"1000000" places:"2"`
	Exact     json.Number       `json:"exact,omitempty" min:"-5"`
	When      time.Time         `json:"when,omitzero"`
	File      []byte            `json:"file,omitempty"`
	Any       json.RawMessage   `json:"any,omitempty" doc:"whatever the system wants"`
	Tags      []string          `json:"tags,omitempty" min:"1" max:"3" unique:"true" each_min:"2" each_max:"9" enum:"ab,cd"`
	Pair      [2]int32          `json:"pair,omitempty"`
	Prices    map[string]money  `json:"prices,omitempty" max:"4"`
	Lines     []Line            `json:"lines,omitempty" max:"10"`
	Parent    *Line             `json:"parent" doc:"left out for the first one"`
	Huge      *big.Int          `json:"huge" type:"integer"`
	Own       ownForm           `json:"own,omitempty" type:"string" format:"uuid"`
	Code      textForm          `json:"code,omitempty" pattern:"^c"`
	ByName    map[word][]string `json:"by_name,omitempty" each_max:"2"`
	GoName    string            `yaml:"go_name" json:",omitempty"`
	Left      chan int          `json:"-"`
	notShown  string            //nolint:unused // an unexported field, which is skipped
	Embedded2 struct {
		Deep bool `json:"deep"`
	} `json:"embedded2,omitzero"`
}

type (
	word  string
	money float32
	// Place is embedded in everyArgs.
	Place struct {
		City string `json:"city" doc:"where"`
	}
	// Line is the type of two fields of everyArgs.
	Line struct {
		SKU string `json:"sku"`
		N   uint16 `json:"n,omitempty" min:"1"`
	}
	ownForm  struct{ text string }
	textForm struct{ text string }
)

func (o *ownForm) UnmarshalJSON(b []byte) error {
	if bytes.Contains(b, []byte("ffff")) {
		panic("not like that")
	}
	return json.Unmarshal(b, &o.text)
}

func (f *textForm) UnmarshalText(b []byte) error {
	if string(b) == "c0" {
		return errors.New("is not in use")
	}
	f.text = string(b)
	return nil
}

// TestSchemaGolden checks that the bytes of the schema are the same in every run and with every version of Go. The
// tool's hash covers these bytes.
func TestSchemaGolden(t *testing.T) {
	raw, err := SchemaOf[everyArgs]()
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	const file = "testdata/every_args.schema.json"
	if *update {
		if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("the schema changed, and with it the hash of every tool that has such a field; if that is meant, run with -update:\n%s", pretty.Bytes())
	}
	tool := Func("every", "Takes everything.", approvers.ReadOnly, func(context.Context, Invocation, everyArgs) (string, error) { return "", nil })
	if got := tool.hash(); got != "37ee1286d0bcec54455f0443f4a1153d70484e83843449c2e0a25ee1e35e913e" {
		t.Errorf("the hash is %s", got)
	}
	for range 20 {
		if again, _ := SchemaOf[everyArgs](); !bytes.Equal(again, raw) {
			t.Fatalf("derived twice, it differs:\n%s\n%s", raw, again)
		}
	}
	if got := approvers.SecretPaths(raw); len(got) != 1 || got[0] != "pin" {
		t.Errorf("the secrets are %q", got)
	}
}

// registeredCheck returns the argument check of a tool whose function has the arguments Args.
func registeredCheck[Args any](t *testing.T) func(json.RawMessage) error {
	t.Helper()
	var r Registry
	if err := r.Register(Func("x", "Does it.", approvers.ReadOnly, func(context.Context, Invocation, Args) (string, error) { return "", nil })); err != nil {
		t.Fatal(err)
	}
	tool, _ := r.Tool("x")
	return tool.Check
}

// TestTypedArgumentsAreStrict checks that the check refuses every value that the struct can't hold exactly.
func TestTypedArgumentsAreStrict(t *testing.T) {
	check := registeredCheck[everyArgs](t)
	const rest = `"city":"Köln","text":"abc"`
	for _, c := range []struct{ args, fault string }{
		{`{` + rest + `}`, ""},
		{
			`{` + rest + `,"named":"two","mail":"a@example.com","pin":"1","yes":true,"small":-128,"byte":255,"whole":5,"count":18446744073709551615,"share":0.1,"money":1.10,` +
				`"exact":12345678901234567890.5,"when":"2026-03-31T14:05:00+02:00","file":"aGk=","any":{"a":[1]},"tags":["ab","cd"],"pair":[1,2],"prices":{"x":0.1},` +
				`"lines":[{"sku":"s","n":3}],"parent":{"sku":"p"},"huge":123456789012345678901234567890,"own":"0190a5a0-0000-7000-8000-000000000000","code":"c1","by_name":{"a":["b"]},"GoName":"g","embedded2":{"deep":true}}`, "",
		},
		{`{"text":"abc"}`, "city: is missing"},
		{`{` + rest + `,"colour":1}`, "colour: is not known"},
		{`{` + rest + `,"Text":"abc"}`, "Text: is not known"},
		{`{` + rest + `,"lines":[{"SKU":"s"}]}`, "lines[0].SKU: is not known"},
		{`{` + rest + `,"Left":1}`, "Left: is not known"},
		{`{` + rest + `,"notShown":"x"}`, "notShown: is not known"},
		{`{` + rest + `,"yes":true,"yes":false}`, "a name occurs twice"},
		{`{` + rest + `,"small":128}`, "small: must be at most 127"},
		{`{` + rest + `,"whole":7}`, "whole: must be one of 1, 5, 20"},
		{`{` + rest + `,"whole":5.0}`, "whole: can't be held: write a whole number without a point or an exponent"},
		{`{` + rest + `,"count":18446744073709551616}`, "count: must be at most 18446744073709551615"},
		{`{` + rest + `,"count":-1}`, "count: must be at least 0"},
		{`{` + rest + `,"share":0.12345678901234567890123}`, "share: has more digits than the tool can hold exactly"},
		{`{` + rest + `,"share":1}`, "share: must be less than 1"},
		{`{` + rest + `,"prices":{"x":123456789.123}}`, "prices.x: has more digits than the tool can hold exactly"},
		{`{` + rest + `,"money":1.234}`, "money: must be a multiple of 0.01"},
		{`{` + rest + `,"money":"1.23"}`, "money: must be a number, but is a text"},
		{`{` + rest + `,"when":"yesterday"}`, "when: must be"},
		{`{` + rest + `,"file":"%"}`, "file: "},
		{`{` + rest + `,"pair":[1]}`, "pair: must have at least 2 items"},
		{`{` + rest + `,"tags":["ab","ab"]}`, "tags: must not repeat an item"},
		{`{` + rest + `,"tags":["a"]}`, "tags[0]: must be one of"},
		{`{` + rest + `,"parent":null}`, "parent: must be an object, but is null"},
		{`{` + rest + `,"huge":1.5}`, "huge: must be a whole number"},
		{`{` + rest + `,"own":"0190a5a0-0000-7000-8000-00000000ffff"}`, "the arguments can't be read: not like that"},
		{`{` + rest + `,"code":"c0"}`, "code: is not in use"},
		{`{` + rest + `,"by_name":{"a":["b","c","d"]}}`, "by_name.a: must have at most 2 items"},
		{`{` + rest + `,"whole":1e999999999}`, "out of range"},
	} {
		err := check(json.RawMessage(c.args))
		switch {
		case c.fault == "" && err != nil:
			t.Errorf("%s: %v", c.args, err)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s:\n got %v\nwant %s", c.args, err, c.fault)
		}
	}
}

// TestTypedArgumentsArrive checks that the function gets the arguments exactly as written, with all digits.
func TestTypedArgumentsArrive(t *testing.T) {
	var got everyArgs
	tool := Func("x", "Does it.", approvers.ReadOnly, func(_ context.Context, _ Invocation, args everyArgs) (string, error) {
		got = args
		return "", nil
	})
	in := Invocation{Args: json.RawMessage(`{"city":"Köln","text":"abc","exact":12345678901234567890.50,"money":1.10,"parent":{"sku":"p"},"huge":123456789012345678901234567890,"file":"aGk=","any":{"b": 1,"a":2}}`)}
	if _, err := tool.Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if got.City != "Köln" || got.Exact != "12345678901234567890.50" || got.Money.String() != "1.10" || got.Parent == nil || got.Parent.SKU != "p" ||
		got.Huge.String() != "123456789012345678901234567890" || string(got.File) != "hi" || string(got.Any) != `{"b": 1,"a":2}` {
		t.Errorf("%+v", got)
	}
	in.Args = json.RawMessage(`{"city":1}`)
	if _, err := tool.Run(t.Context(), in); err == nil || err.Error() != "the arguments don't fit: city: is of another kind than the tool takes" {
		t.Errorf("got %v", err)
	}
}

type loop struct {
	Next []loop `json:"next"`
}

func refused[Args any]() error {
	var r Registry
	return r.Register(Func("x", "Does it.", approvers.ReadOnly, func(context.Context, Invocation, Args) (string, error) { return "", nil }))
}

// TestTypesThatAreNoArguments checks the error of Register for types that can't be arguments. The error names the
// unsuitable field and says what to write.
func TestTypesThatAreNoArguments(t *testing.T) {
	for _, c := range []struct {
		err  error
		says string
	}{
		{refused[string](), "the arguments are a string"},
		{refused[*everyArgs](), "declare a struct"},
		{refused[map[string]int](), "declare a struct"},
		{refused[time.Time](), "declare a struct"},
		{refused[loop](), "loop.Next[] is a agent.loop: it contains itself"},
		{refused[struct{ Done chan int }](), "the arguments.Done is a chan int: JSON can't represent it"},
		{refused[struct{ Do func() }](), "JSON can't represent it"},
		{refused[struct{ C complex128 }](), "JSON can't represent it"},
		{refused[struct{ Any any }](), "use json.RawMessage"},
		{refused[struct{ M map[int]string }](), "the names in a JSON object are texts"},
		{refused[struct{ P **int }](), "a pointer marks"},
		{refused[struct{ P []*int }](), "a pointer marks"},
		{refused[struct{ D time.Duration }](), "a number of seconds"},
		{refused[struct{ O ownForm }](), "say what it reads"},
		{refused[struct {
			O ownForm `type:"date"`
		}](), "say what it reads"},
		{refused[struct {
			S string `type:"string"`
		}](), "the tag type is only for"},
		{refused[struct {
			A string `json:"name"`
			B string `json:"Name"`
		}](), `the names "name" and "Name" are the same or differ only in case`},
		{refused[struct {
			Place
			B string `json:"CITY"`
		}](), `the names "city" and "CITY"`},
		{refused[struct{ *Place }](), "only a struct itself can be embedded"},
		{refused[struct {
			A string `json:"a b"`
		}](), `the name "a b" is not possible`},
		{refused[struct {
			A int `json:"a,string"`
		}](), `the json tag's option "string" is not possible`},
		{refused[struct {
			A int `minimum:"3"`
		}](), "the tag minimum is not read here; write min"},
		{refused[struct {
			A int `jsonschema:"a number"`
		}](), "the tag jsonschema is not read here"},
		{refused[struct {
			A bool `min:"3"`
		}](), `min:"3": a field of this type has no such limit`},
		{refused[struct {
			A int `min:"3.5"`
		}](), "a number that the field can hold"},
		{refused[struct {
			A int `min:"9" max:"3"`
		}](), "the lower bound is above the upper one"},
		{refused[struct {
			A float64 `above:"3" below:"3"`
		}](), "the lower bound is above the upper one"},
		{refused[struct {
			A string `max:"many"`
		}](), "a whole number is needed"},
		{refused[struct {
			A string `above:"1"`
		}](), "no such limit"},
		{refused[struct {
			A string `pattern:"("`
		}](), "a regular expression is needed"},
		{refused[struct {
			A int `pattern:"a"`
		}](), "the field must be a text"},
		{refused[struct {
			A string `format:"iban"`
		}](), "the format one of date"},
		{refused[struct {
			A string `enum:"a, b"`
		}](), "commas without spaces"},
		{refused[struct {
			A string `enum:"a,a"`
		}](), "is listed twice"},
		{refused[struct {
			A int `enum:"1,x"`
		}](), "values that the field can hold"},
		{refused[struct {
			A string `secret:"yes"`
		}](), "write true"},
		{refused[struct {
			A string `unique:"true"`
		}](), "no such limit"},
		{refused[struct {
			A string `each_min:"1"`
		}](), "only a list or a map has items"},
		{refused[struct {
			A int `places:"2"`
		}](), "a number that is not whole"},
		{refused[struct {
			A string `doc:""`
		}](), "a text is needed"},
		{refused[struct {
			When time.Time `max:"3"`
		}](), "no such limit"},
	} {
		if c.err == nil || !errors.Is(c.err, ErrTool) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("got %v\nwant %s", c.err, c.says)
		}
	}
	var r Registry
	err := r.Register(Func("x", "Does it.", approvers.ReadOnly, func(context.Context, Invocation, struct{}) (map[string][]struct{ C chan int }, error) {
		return nil, nil
	}))
	if err == nil || !strings.Contains(err.Error(), "the result can't be written as JSON: the arguments.C is a chan int") {
		t.Errorf("got %v", err)
	}
	err = r.Register(Func[struct{}, string]("x", "Does it.", approvers.ReadOnly, nil))
	if err == nil || !strings.Contains(err.Error(), "there is no Run function") {
		t.Errorf("got %v", err)
	}
}

// TestTagsThatCantBeRead checks that Register returns an error for a tag that package reflect would ignore.
func TestTagsThatCantBeRead(t *testing.T) {
	for _, tag := range []string{`min:3`, `min:"3" min:"4"`, `min:"3`, `min`, `:"3"`, `min: "3"`, `min:"3",max:"4"`, `json:"a" "b"`} {
		if _, err := readTag(reflect.StructField{Name: "A", Tag: reflect.StructTag(tag)}); err == nil || !strings.Contains(err.Error(), "can't be read") {
			t.Errorf("%s: %v", tag, err)
		}
	}
	read, err := readTag(reflect.StructField{Name: "A", Tag: `json:"a,omitempty"  min:"3" yaml:"b"`})
	if err != nil || read.name != "a" || !read.optional || len(read.said) != 1 || read.said["min"] != "3" {
		t.Errorf("%+v, %v", read, err)
	}
}

// unwritable is a result that can't be encoded as JSON.
type unwritable struct{}

func (unwritable) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

// TestResults checks that a text is returned unchanged, and that any other result is returned as JSON. A result that
// can't be encoded is not a failure, because the tool has already acted.
func TestResults(t *testing.T) {
	for _, c := range []struct {
		result any
		want   string
	}{
		{"plain <words>", "plain <words>"},
		{json.RawMessage(`{"a": 1}`), `{"a": 1}`},
		{struct {
			Tracking string `json:"tracking"`
		}{"a<b"}, `{"tracking":"a<b"}`},
		{map[string]int{"b": 1, "a": 2}, `{"a":2,"b":1}`},
		{[]int(nil), "null"},
		{4, "4"},
		{unwritable{}, "It was done, but its result can't be written as JSON: json: error calling MarshalJSON for type agent.unwritable: no."},
	} {
		run := Typed(func(context.Context, Invocation, struct{}) (any, error) { return c.result, nil })
		got, err := run(t.Context(), Invocation{Args: json.RawMessage(`{}`)})
		if err != nil || got != c.want {
			t.Errorf("%v: got %q, %v; want %q", c.result, got, err, c.want)
		}
	}
	failed := errors.New("the carrier is closed today")
	run := Typed(func(context.Context, Invocation, struct{}) (int, error) { return 1, failed })
	if got, err := run(t.Context(), Invocation{Args: json.RawMessage(`{}`)}); got != "" || !errors.Is(err, failed) {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestDecimal checks that a Decimal keeps all digits of a number and never rounds.
func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		text  string
		units int64
		fault string
	}{
		{"49.99", 4999, ""}, {"1.10", 110, ""}, {"0", 0, ""}, {"-0.01", -1, ""}, {"1e2", 10000, ""}, {"5E-1", 50, ""},
		{"1.234", 0, "1.234 has more than 2 digits after the point"}, {"1e300", 0, "out of the range"},
	} {
		d, err := ParseDecimal(c.text)
		if err != nil || d.String() != c.text {
			t.Errorf("%s: %v, %v", c.text, d, err)
		}
		units, err := d.Units(2)
		if units != c.units || (err == nil) != (c.fault == "") || (err != nil && !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: got %d, %v", c.text, units, err)
		}
		if back, err := json.Marshal(d); err != nil || string(back) != c.text {
			t.Errorf("%s: written as %s, %v", c.text, back, err)
		}
	}
	for _, bad := range []string{"", "x", "1.", ".5", "01", "+1", " 1", "1 ", "null", `"1"`, "1,5", "1e400", "1e-400", "-2.5E-999999999", "NaN", "0x1", strings.Repeat("1", 65)} {
		if d, err := ParseDecimal(bad); err == nil {
			t.Errorf("%q was read as %s", bad, d)
		}
	}
	if d, err := ParseDecimal("0.0e-999"); err != nil || d.Rat().Sign() != 0 {
		t.Errorf("0.0e-999 was read as %s, %v", d, err)
	}
	var zero Decimal
	if zero.String() != "0" || zero.Rat().Sign() != 0 {
		t.Errorf("the zero Decimal is %s", zero)
	}
}

// FuzzTyped checks that the argument check ends without a panic for any arguments. Arguments that pass the check can
// be decoded.
func FuzzTyped(f *testing.F) {
	f.Add(`{"city":"Köln","text":"abc","money":1.10,"lines":[{"sku":"a"}]}`)
	f.Add(`{"city":"x","text":"abc","share":1e-400,"any":[[[]]],"huge":1e30}`)
	f.Add(`{"city":"x","text":"abc","when":"2026-03-31T14:05:00Z","own":"ffff"}`)
	tool := Func("x", "Does it.", approvers.ReadOnly, func(context.Context, Invocation, everyArgs) (string, error) { return "", nil })
	var r Registry
	if err := r.Register(tool); err != nil {
		f.Fatal(err)
	}
	checked, _ := r.Tool("x")
	f.Fuzz(func(t *testing.T, args string) {
		if len(args) > approvers.MaxArgs {
			return
		}
		if _, err := approvers.StrictArgs([]byte(args), false); err != nil {
			return
		}
		if checked.Check(json.RawMessage(args)) != nil {
			return
		}
		if _, err := tool.Run(t.Context(), Invocation{Args: json.RawMessage(args)}); err != nil {
			t.Errorf("%q passed the check and does not decode: %v", args, err)
		}
	})
}
