package record

import (
	"encoding/base64"
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"countersign/approvers"
	"countersign/store"
)

// someTime is an arbitrary time.
var someTime = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// draw returns a record with random values in all fields.
func draw[T any](t *rapid.T) (rec T) {
	drawValue(t, reflect.ValueOf(&rec).Elem())
	return rec
}

var oddText = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", `"`, `\`, `\\"`, "\x00\x1f\x7f", "é😀\u2028\U0010ffff", "null", `{"a":1}`, "\ufffd"}))

func drawValue(t *rapid.T, v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.UnixMicro(rapid.Int64Range(-62135596800e6, 253402300799e6).Draw(t, "time")).UTC()
		return
	case *approvers.Risk:
		*x = approvers.Risk(rapid.IntRange(0, 4).Draw(t, "risk"))
		return
	case *map[string]string:
		*x = rapid.MapOfN(oddText, oddText, 1, 3).Draw(t, "facts")
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(oddText.Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(t, "byte")))
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, "length")
		if n == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			drawValue(t, v.Index(i))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			drawValue(t, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				drawValue(t, v.Field(i))
			}
		}
	default:
		t.Fatalf("a record has a field of type %s", v.Type())
	}
}

// reference makes package json, which is independent of this codec, read the JSON of records.
var reference = json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, raw *stdjson.RawMessage) error {
	tok, err := d.ReadToken()
	if err != nil || tok.Kind() == 'n' {
		return err
	}
	*raw, err = base64.StdEncoding.DecodeString(tok.String())
	return err
}), json.UnmarshalFromFunc(func(d *jsontext.Decoder, duration *time.Duration) error {
	return json.UnmarshalDecode(d, (*int64)(duration))
})))

// same checks that the codec reads its own output, and that the independent codec reads the same record from this
// output. same also checks that the codec refuses a truncated output.
func same[T any](t *testing.T) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		want := draw[T](t)
		b, err := Append([]byte("before"), &want)
		if err != nil {
			t.Fatal(err)
		}
		b = b[len("before"):]
		var got, other T
		if err := Decode(b, &got); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read back differently from %s:\n%s", b, cmp.Diff(want, got))
		}
		if err := json.Unmarshal(b, &other, reference); err != nil {
			t.Fatalf("another codec refuses %s: %v", b, err)
		}
		if !reflect.DeepEqual(other, want) {
			t.Fatalf("another codec reads %s differently:\n%s", b, cmp.Diff(want, other))
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if err := Decode(b[:cut], new(T)); err == nil {
			t.Fatalf("%s is taken for a whole record", b[:cut])
		}
	})
}

func TestCodec(t *testing.T) {
	t.Run("conversation", same[store.Conversation])
	t.Run("message", same[store.Message])
	t.Run("turn", same[approvers.Turn])
	t.Run("call", same[store.Call])
	t.Run("request", same[approvers.Request])
	t.Run("execution", same[approvers.Execution])
	t.Run("timer", same[store.Timer])
	t.Run("inbox", same[store.Inbox])
	t.Run("outbox message", same[store.OutboxMessage])
	t.Run("rendering", same[store.Rendering])
	t.Run("audit record", same[approvers.AuditRecord])
	t.Run("audit payload", same[approvers.AuditPayload])
	t.Run("setting", same[store.Setting])
	t.Run("grant", same[approvers.Grant])
	t.Run("absence", same[approvers.Absence])
}

// The codec reads records of a later version of the program, in which fields were added or removed.
func TestCodecOfOtherVersions(t *testing.T) {
	var got store.Timer
	js := `{"new":{"a":[1,"}",{"b":null}],"c":1.5e3},"ref":"r","older":"x","kind":"run","more":[],"due":"2026-05-04T12:00:00Z","last":true}`
	if err := Decode([]byte(js), &got); err != nil {
		t.Fatal(err)
	}
	if want := (store.Timer{Kind: store.TimerRun, Ref: "r", Due: someTime}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for js, want := range map[string]*approvers.ModelQuestion{
		`{}`: nil, `{"inquiry":null}`: nil, `{"inquiry":{}}`: {}, `{"inquiry":{"options":[],"new":{}},"new":1}`: {Options: []string{}},
	} {
		var got store.Call
		if err := Decode([]byte(js), &got); err != nil || !reflect.DeepEqual(got.ModelQuestion, want) {
			t.Errorf("%s: got %+v, want %+v (%v)", js, got.ModelQuestion, want, err)
		}
	}
	for _, js := range []string{`{"inquiry":}`, `{"inquiry":nul`, `{"inquiry":{}`, `{"inquiry":[]}`, `{"inquiry":null`} {
		if err := Decode([]byte(js), new(store.Call)); err == nil {
			t.Errorf("%s was read", js)
		}
	}
	for _, js := range []string{
		``, `{`, `{}x`, `{"kind"}`, `{"kind":}`, `{"kind":"a",}`, `{"kind":"a"]`, `{"kind":1}`, `{"tries":""}`, `{"tries":-}`, `{"tries":9223372036854775808}`,
		`{"tries":1.5}`, `{"due":"yesterday"}`, `{"due":null}`, `{"x":}`, `{"x":1,,}`, `{"kind":"\x"}`, `{"kind":"\`, `null`, `[]`,
	} {
		if err := Decode([]byte(js), new(store.Timer)); err == nil {
			t.Errorf("%s was read", js)
		}
	}
}

func TestCodecLimits(t *testing.T) {
	for _, n := range []int{-1 << 63, 1<<63 - 1} {
		b, err := Append(nil, &store.Timer{Tries: n})
		var got store.Timer
		if err == nil {
			err = Decode(b, &got)
		}
		if err != nil || got.Tries != n {
			t.Errorf("%d reads back as %d (%v)", n, got.Tries, err)
		}
	}
	if _, err := Append(nil, &store.Timer{Due: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("a year that can't be read again was written")
	}
	if _, err := Append(nil, &approvers.Plan{Risk: 9}); err == nil {
		t.Error("an invalid risk was written")
	}
	b, err := Append(nil, &store.Message{Text: "a\xff\xfeb"})
	if err != nil || !strings.Contains(string(b), "a\ufffd\ufffdb") {
		t.Errorf("invalid UTF-8 was written as %s (%v)", b, err)
	}
}

// The codec does not panic on any input.
func FuzzDecode(f *testing.F) {
	for _, r := range []approvers.Request{{}, {ID: "x", Args: []byte("{}"), Decisions: []approvers.Decision{{By: "\\\""}}, CreatedAt: someTime}} {
		sow(f, &r)
	}
	sow(f, &store.Call{ID: "x", ModelQuestion: &approvers.ModelQuestion{Options: []string{"yes", "no"}, ExpiresAt: someTime}})
	sow(f, &approvers.Grant{ID: "x", Bounds: []approvers.Bound{{Arg: "a", AtMost: []byte("50")}}, Within: time.Hour})
	sow(f, &approvers.Absence{Who: "T/U", Until: someTime})
	sow(f, &store.Rendering{OutboxMessage: "s", Shows: []store.Shown{{Request: "r", Whole: true}}})
	f.Add([]byte(`{"inquiry":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		stable[approvers.Request](t, b)
		stable[store.Call](t, b)
		stable[approvers.Grant](t, b)
		stable[approvers.Absence](t, b)
		stable[store.Rendering](t, b)
	})
}

func sow[T any](f *testing.F, rec *T) {
	f.Helper()
	b, err := Append(nil, rec)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
}

// stable reads a record from b. If b is valid, stable writes the record, reads it a second time, and writes it again.
// Both written records must have the same length.
func stable[T any](t *testing.T, b []byte) {
	t.Helper()
	var read, again T
	if Decode(b, &read) != nil {
		return
	}
	written, err := Append(nil, &read)
	if err != nil {
		return // a year that can't be written
	}
	if err := Decode(written, &again); err != nil {
		t.Fatalf("%s was read and written as %s, which was not read: %v", b, written, err)
	}
	if rewritten, err := Append(nil, &again); err != nil || len(rewritten) != len(written) { // compares only the lengths, because maps are written in random order
		t.Fatalf("%s was read and written as %s, and then as %s (%v)", b, written, rewritten, err)
	}
}
