package record

import (
	"encoding"
	"encoding/base64"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Append appends a record as JSON.
func Append[T any](b []byte, rec *T) ([]byte, error) {
	b, err := codecOf(reflect.TypeFor[T]()).encode(b, reflect.ValueOf(rec).Elem())
	if err != nil {
		return nil, fmt.Errorf("store: encode %T: %w", *rec, err)
	}
	return b, nil
}

func structCodec(fields []field) *codec {
	return &codec{
		encode: func(b []byte, v reflect.Value) (_ []byte, err error) {
			b = append(b, '{')
			first := true
			for i := range fields {
				f := &fields[i]
				value := v.Field(f.index)
				if f.absent != nil && f.absent(value) {
					continue
				}
				if !first {
					b = append(b, ',')
				}
				first = false
				b = append(b, f.key...)
				if b, err = f.codec.encode(b, value); err != nil {
					return nil, err
				}
			}
			return append(b, '}'), nil
		},
		decode: decodeStruct(fields),
	}
}

func sliceCodec(element *codec) *codec {
	return &codec{
		encode: func(b []byte, v reflect.Value) (_ []byte, err error) {
			if v.IsNil() {
				return append(b, "null"...), nil // a nil list and an empty list are stored differently, because hashes cover the values as they are read back
			}
			b = append(b, '[')
			for i := range v.Len() {
				if i > 0 {
					b = append(b, ',')
				}
				if b, err = element.encode(b, v.Index(i)); err != nil {
					return nil, err
				}
			}
			return append(b, ']'), nil
		},
		decode: decodeSlice(element),
	}
}

func pointerCodec(target *codec) *codec {
	return &codec{
		encode: func(b []byte, v reflect.Value) ([]byte, error) {
			if v.IsNil() {
				return append(b, "null"...), nil
			}
			return target.encode(b, v.Elem())
		},
		decode: func(p *parser, v reflect.Value) error {
			if p.take("null") {
				v.SetZero()
				return nil
			}
			v.Set(reflect.New(v.Type().Elem()))
			return target.decode(p, v.Elem())
		},
	}
}

// quote appends a string. U+FFFD replaces invalid UTF-8.
func quote(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			b, _ = jsontext.AppendQuote(b, s) // an error can only report replaced bytes
			return b
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func encodeString(b []byte, v reflect.Value) ([]byte, error) { return quote(b, v.String()), nil }

func encodeBool(b []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendBool(b, v.Bool()), nil
}

func encodeInt(b []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendInt(b, v.Int(), 10), nil
}

func encodeUint(b []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendUint(b, v.Uint(), 10), nil
}

// encodeTime writes a time in the precision of every backend: in UTC, to the microsecond.
func encodeTime(b []byte, v reflect.Value) ([]byte, error) {
	t := v.Addr().Interface().(*time.Time).UTC().Truncate(time.Microsecond)
	if y := t.Year(); y < 0 || y > 9999 {
		return nil, fmt.Errorf("the year %d can't be stored", y)
	}
	b = append(b, '"')
	b = t.AppendFormat(b, time.RFC3339Nano)
	return append(b, '"'), nil
}

// encodeBytes writes bytes as base64. Raw JSON is also written as base64. If raw JSON were written as JSON, the white
// space would be lost, and the digest would change.
func encodeBytes(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, v.Bytes())
	return append(b, '"'), nil
}

func encodeFacts(b []byte, v reflect.Value) ([]byte, error) {
	facts := *v.Addr().Interface().(*map[string]string)
	if facts == nil {
		return append(b, "null"...), nil
	}
	b = append(b, '{')
	first := true
	for name, value := range facts {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(quote(b, name), ':')
		b = quote(b, value)
	}
	return append(b, '}'), nil
}

func encodeText(b []byte, v reflect.Value) ([]byte, error) {
	text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
	if err != nil {
		return nil, err
	}
	return quote(b, string(text)), nil
}
