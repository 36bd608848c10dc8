package jsonobject

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestRead checks which texts Read accepts. In all modes, an object that Read returns has its original names and values.
func TestRead(t *testing.T) {
	loosely := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	for _, c := range []struct {
		raw, strict, loose string // the object that is read; "" for an error
	}{
		{`{}`, `{}`, `{}`},
		{" {\n\"a\" : 1.0 , \"\\u0061b\":[ 1,2 ]} ", `{"a":1.0,"\u0061b":[ 1,2 ]}`, `{"a":1.0,"\u0061b":[ 1,2 ]}`},
		{`{"a":1,"\u0061":2}`, ``, `{"a":1,"\u0061":2}`},
		{`{"a":{"b":1,"b":2}}`, ``, `{"a":{"b":1,"b":2}}`},
		{"{\"a\":\"\xff\"}", ``, "{\"a\":\"\xff\"}"},
		{"{\"\xff\":1}", ``, "{\"\xff\":1}"},
		{`{"\ud83d":1}`, ``, `{"\ud83d":1}`},
		{`{"a":1} x`, ``, ``}, {`{"a":1`, ``, ``}, {`{"a":}`, ``, ``}, {`{"a"`, ``, ``}, {`{"a" 1}`, ``, ``}, {`{1:2}`, ``, ``}, {`{"a":1,}`, ``, ``}, {`[1]`, ``, ``}, {``, ``, ``}, {`null`, ``, ``},
	} {
		for options, want := range map[bool]string{false: c.strict, true: c.loose} {
			var o Object
			var err error
			if options {
				o, err = Read([]byte(c.raw), loosely...)
			} else {
				o, err = Read([]byte(c.raw))
			}
			if got := string(o.Bytes()); (err == nil) != (want != "") || err == nil && got != want {
				t.Errorf("%q (loosely: %t): %q, %v; want %q", c.raw, options, got, err, want)
			}
		}
	}
	if o, err := Read([]byte(`{"a":1} x`)); !errors.Is(err, ErrMore) || string(o.Bytes()) != `{"a":1}` {
		t.Errorf("with more text: %s, %v", o.Bytes(), err)
	}
	if o, err := Read([]byte("{\"\xff\\u0041\":1}"), loosely...); err != nil || !o.Has("\ufffdA") {
		t.Errorf("a name with invalid UTF-8: %q, %v", o, err)
	}
}

func TestReadList(t *testing.T) {
	if list, err := ReadList([]byte(` [ 1.0, {"a" : 2}]`)); err != nil || len(list) != 2 || string(list[0]) != "1.0" || string(list[1]) != `{"a" : 2}` {
		t.Errorf("%s, %v", list, err)
	}
	for _, raw := range []string{`{}`, `[1`, `[1 2]`, `[`, `1`, ``} {
		if _, err := ReadList([]byte(raw)); err == nil {
			t.Errorf("%s is taken for a list", raw)
		}
	}
}

// With and Without change one member, and leave the object itself unchanged.
func TestChanges(t *testing.T) {
	const before = `{"\u0061":1,"b":{"c":true},"d":"x"}`
	o, err := Read([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	for want, got := range map[string]Object{
		`{"\u0061":2,"b":{"c":true},"d":"x"}`:         o.With("a", []byte("2")),
		`{"\u0061":1,"b":{"c":true},"d":"x","\"e":3}`: o.With(`"e`, []byte("3")),
		`{"\u0061":1,"d":"x"}`:                        o.Without("b"),
		before:                                        o.Without("e"),
	} {
		if string(got.Bytes()) != want {
			t.Errorf("%s, want %s", got.Bytes(), want)
		}
	}
	if string(o.Bytes()) != before {
		t.Errorf("the object changed to %s", o.Bytes())
	}
	if yes := o.Object("b").Flag("c"); yes == nil || !*yes || o.Flag("d") != nil || o.Text("d") != "x" || o.Text("a") != "" || o.Object("d") != nil || o.Get("e") != nil {
		t.Error("the members have other values")
	}
}
