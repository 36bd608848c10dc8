package wire

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Encode returns v as JSON without HTML escapes. v must consist of plain JSON values. Encode panics if v contains any
// other value, because such a value is a bug.
func Encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("workspace: " + err.Error())
	}
	return bytes.TrimSpace(buf.Bytes())
}

// Decode reads exactly one JSON value. Numbers are json.Number, so they keep their notation.
func Decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// Whole returns a decoded JSON number as an int. Whole returns false if v is not a number, or if v has a fraction.
func Whole(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return int(i), err == nil
}
