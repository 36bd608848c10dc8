package httptool

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// member is one stored argument of a call.
type member struct {
	name string
	key  []byte // the name with quotes, as in the stored arguments
	raw  []byte // the value, as in the stored arguments
}

// absent reports whether an argument is missing. The value null counts as missing, because most parts of a request
// can't express null.
func (m member) absent() bool { return len(m.raw) == 0 || m.raw[0] == 'n' }

var errNoObject = errors.New("the arguments are not a JSON object")

// members returns an object's members in order, each with its exact bytes.
func members(raw []byte) ([]member, error) {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	if open, err := d.ReadToken(); err != nil || open.Kind() != '{' {
		return nil, errNoObject
	}
	var out []member
	for d.PeekKind() == '"' {
		key, err := d.ReadValue()
		if err != nil {
			return nil, errNoObject
		}
		name, err := unquote(key)
		if err != nil {
			return nil, errNoObject
		}
		m := member{name: name, key: bytes.Clone(key)}
		value, err := d.ReadValue()
		if err != nil {
			return nil, errNoObject
		}
		m.raw = bytes.Clone(value)
		out = append(out, m)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, errNoObject
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errNoObject
	}
	return out, nil
}

// elements returns a list's values, each with its exact bytes.
func elements(raw []byte) ([][]byte, error) {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var out [][]byte
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		out = append(out, bytes.Clone(v))
	}
	return out, nil
}

func unquote(raw []byte) (string, error) {
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err
}

// plain returns a text, number or boolean without quotes. For any other value, the second result is false.
func plain(raw []byte) (string, bool) {
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '"':
		s, err := unquote(raw)
		return s, err == nil
	case '{', '[', 'n':
		return "", false
	}
	return string(raw), true
}
