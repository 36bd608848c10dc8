// Package jsonobject reads and changes JSON objects. It keeps the order of the members, and the exact bytes of their
// names and values.
package jsonobject

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is one member of an object.
type Member struct {
	Name  string
	Value json.RawMessage
	Key   []byte // the name with its quotes and escapes; nil if the member was not read
}

// Object has the members of an object, in their order.
type Object []Member

// Errors of [Read].
var (
	ErrNoObject = errors.New("it is not a JSON object")
	ErrMore     = errors.New("something follows the object")
)

// Read parses an object. Without options, duplicate names and invalid UTF-8 are errors, at any level. With the error
// ErrMore, Read also returns the object.
func Read(raw []byte, options ...jsontext.Options) (Object, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), options...)
	if dec.PeekKind() != '{' {
		return nil, ErrNoObject
	}
	_, _ = dec.ReadToken() // the opening brace, which PeekKind has checked
	var out Object
	for dec.PeekKind() == '"' {
		key, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		m := Member{Key: bytes.Clone(key)}
		name, _ := jsontext.AppendUnquote(nil, m.Key) // if the options allow invalid UTF-8, the error is about it
		m.Name = string(name)
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		m.Value = bytes.Clone(value)
		out = append(out, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return out, ErrMore
	}
	return out, nil
}

// ReadList parses a list, and returns the exact bytes of its values.
func ReadList(raw []byte) ([]json.RawMessage, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if dec.PeekKind() != '[' {
		return nil, errors.New("it is not a list")
	}
	_, _ = dec.ReadToken() // the opening bracket, which PeekKind has checked
	var out []json.RawMessage
	for dec.PeekKind() != ']' {
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		out = append(out, bytes.Clone(value))
	}
	_, err := dec.ReadToken()
	return out, err
}

// Get returns the value of the first member with exactly this name, or nil.
func (o Object) Get(name string) json.RawMessage {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Given is like Get, but returns nil if the value is null. Some programs write null for a member that they leave out.
func (o Object) Given(name string) json.RawMessage {
	if value := o.Get(name); string(value) != "null" {
		return value
	}
	return nil
}

// Has reports whether the object has a member with this name, even if its value is null.
func (o Object) Has(name string) bool { return o.Get(name) != nil }

// Text returns the value of a member whose value is a text. For any other member, Text returns "".
func (o Object) Text(name string) string {
	var s string
	if raw := o.Get(name); len(raw) > 0 && raw[0] == '"' {
		_ = json.Unmarshal(raw, &s)
	}
	return s
}

// Flag returns the value of a member whose value is a boolean. For any other member, Flag returns nil.
func (o Object) Flag(name string) *bool {
	var yes bool
	switch string(o.Get(name)) {
	case "true":
		yes = true
	case "false":
	default:
		return nil
	}
	return &yes
}

// Object returns the value of a member whose value is an object. For any other member, Object returns nil.
func (o Object) Object(name string) Object {
	out, err := Read(o.Get(name))
	if err != nil {
		return nil
	}
	return out
}

// With returns the object after one member is set. The other members stay the same.
func (o Object) With(name string, value json.RawMessage) Object {
	out := slices.Clone(o)
	for i, m := range out {
		if m.Name == name {
			out[i].Value = value
			return out
		}
	}
	return append(out, Member{Name: name, Value: value})
}

// Without returns the object without the members that have this name.
func (o Object) Without(name string) Object {
	return slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return m.Name == name })
}

// Bytes encodes the object. The names and values that were read keep their bytes.
func (o Object) Bytes() json.RawMessage {
	out := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		if m.Key == nil {
			out, _ = jsontext.AppendQuote(out, m.Name)
		}
		out = append(append(append(out, m.Key...), ':'), m.Value...)
	}
	return append(out, '}')
}
