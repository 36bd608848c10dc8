// Package record reads and writes the JSON of stored records. The JSON is the same in every backend. Times are in UTC
// to the microsecond. Raw JSON is stored as the base64 of its exact bytes. U+FFFD replaces invalid UTF-8.
package record

import (
	"encoding"
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
)

// codec converts values of one type to JSON and back. A codec is built once for each record type, from the type's
// fields and their json tags. A codec supports only the types that records need, so it is several times faster than a
// general codec. The speed matters, because encoding and decoding take most of the time of storing a decision. Building
// a codec for an unsupported type panics, so tests detect an unsupported type.
type codec struct {
	encode func(b []byte, v reflect.Value) ([]byte, error)
	decode func(p *parser, v reflect.Value) error
}

type field struct {
	index  int
	key    string // the quoted name and the colon
	codec  *codec
	absent func(v reflect.Value) bool // reports whether to omit the field; nil: never
}

var (
	timeType   = reflect.TypeFor[time.Time]()
	rawType    = reflect.TypeFor[stdjson.RawMessage]()
	bytesType  = reflect.TypeFor[[]byte]()
	factsType  = reflect.TypeFor[map[string]string]()
	textType   = reflect.TypeFor[encoding.TextMarshaler]()
	custom     = reflect.TypeFor[stdjson.Marshaler]()
	allCodecs  sync.Map // reflect.Type to *codec
	zeroTester = reflect.TypeFor[interface{ IsZero() bool }]()
)

// codecOf returns the codec of a record's type.
func codecOf(t reflect.Type) *codec {
	if c, ok := allCodecs.Load(t); ok {
		return c.(*codec)
	}
	c, _ := allCodecs.LoadOrStore(t, makeCodec(t))
	return c.(*codec)
}

func makeCodec(t reflect.Type) *codec {
	switch {
	case t == timeType:
		return &codec{encodeTime, decodeTime}
	case t == rawType, t == bytesType:
		return &codec{encodeBytes, decodeBytes}
	case t == factsType:
		return &codec{encodeFacts, decodeFacts}
	case t.Implements(textType):
		return &codec{encodeText, decodeText}
	case t.Implements(custom), reflect.PointerTo(t).Implements(custom):
		panic(fmt.Sprintf("store/record: %s has its own JSON, which this codec does not know", t))
	}
	switch t.Kind() {
	case reflect.String:
		return &codec{encodeString, decodeString}
	case reflect.Bool:
		return &codec{encodeBool, decodeBool}
	case reflect.Int, reflect.Int64:
		return &codec{encodeInt, decodeInt}
	case reflect.Uint64:
		return &codec{encodeUint, decodeUint}
	case reflect.Slice:
		return sliceCodec(makeCodec(t.Elem()))
	case reflect.Struct:
		return structCodec(fieldsOf(t))
	case reflect.Pointer:
		return pointerCodec(makeCodec(t.Elem()))
	}
	panic(fmt.Sprintf("store/record: this codec does not know the type %s", t))
}

func fieldsOf(t reflect.Type) []field {
	var fields []field
	for f := range t.Fields() {
		tag := strings.Split(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous || !f.IsExported():
			panic(fmt.Sprintf("store/record: the field %s of %s is embedded or not exported, which this codec does not know", f.Name, t))
		case tag[0] == "-":
			continue
		case tag[0] == "":
			tag[0] = f.Name
		}
		x := field{index: f.Index[0], key: `"` + tag[0] + `":`, codec: makeCodec(f.Type)}
		for _, option := range tag[1:] {
			switch {
			case option == "omitempty":
				x.absent = empty
			case option == "omitzero" && f.Type == timeType:
				x.absent = func(v reflect.Value) bool { return v.Addr().Interface().(*time.Time).IsZero() }
			case option == "omitzero" && !f.Type.Implements(zeroTester):
				x.absent = reflect.Value.IsZero
			default:
				panic(fmt.Sprintf("store/record: this codec does not know the option %q of the field %s of %s", option, f.Name, t))
			}
		}
		fields = append(fields, x)
	}
	return fields
}

// empty implements omitempty.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		return v.Len() == 0
	}
	return v.IsZero()
}
