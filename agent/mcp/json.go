package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth limits the nesting depth of a message.
const maxDepth = 100

// member is one member of an object with its exact bytes.
type member struct {
	name  string
	value json.RawMessage
}

// object is an object's members, in their order.
type object []member

var errNoObject = errors.New("it is not a JSON object")

// readObject parses an object strictly: duplicate names, invalid UTF-8, and trailing data are errors.
func readObject(raw []byte) (object, error) { return readWith(raw) }

// readLoosely parses an invalid object as far as possible. From the readable members, the client can find the call to
// which the object belongs.
func readLoosely(raw []byte) (object, error) {
	return readWith(raw, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func readWith(raw []byte, options ...jsontext.Options) (object, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), options...)
	if dec.PeekKind() != '{' {
		return nil, errNoObject
	}
	_, _ = dec.ReadToken() // the opening brace, which PeekKind has checked
	var out object
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		m.value = json.RawMessage(bytes.Clone(value))
		out = append(out, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return out, nil
}

// readArray reads an array's values with their exact bytes.
func readArray(raw []byte) ([]json.RawMessage, error) {
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
		out = append(out, json.RawMessage(bytes.Clone(value)))
	}
	_, err := dec.ReadToken()
	return out, err
}

// get returns the value of the member with exactly this name, or nil.
func (o object) get(name string) json.RawMessage {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// given returns the value of a member, or nil if the object does not have the member or its value is null. Some servers
// write null for a member that they leave out.
func (o object) given(name string) json.RawMessage {
	if value := o.get(name); string(value) != "null" {
		return value
	}
	return nil
}

// has reports whether the object has a member with this name, even if its value is null.
func (o object) has(name string) bool { return o.get(name) != nil }

// text returns the value of a member whose value is a text. For any other member, text returns "".
func (o object) text(name string) string {
	var s string
	if raw := o.get(name); len(raw) > 0 && raw[0] == '"' {
		_ = json.Unmarshal(raw, &s)
	}
	return s
}

// flag returns the value of a member whose value is a boolean. For any other member, flag returns nil.
func (o object) flag(name string) *bool {
	var yes bool
	switch string(o.get(name)) {
	case "true":
		yes = true
	case "false":
	default:
		return nil
	}
	return &yes
}

// object returns the value of a member whose value is an object. For any other member, object returns nil.
func (o object) object(name string) object {
	out, err := readObject(o.get(name))
	if err != nil {
		return nil
	}
	return out
}

// with returns the object after one member is set. The other members keep their bytes and their order.
func (o object) with(name string, value json.RawMessage) object {
	out := append(object(nil), o...)
	for i, m := range out {
		if m.name == name {
			out[i].value = value
			return out
		}
	}
	return append(out, member{name, value})
}

// without returns the object without one member.
func (o object) without(name string) object {
	var out object
	for _, m := range o {
		if m.name != name {
			out = append(out, m)
		}
	}
	return out
}

// bytes encodes the object. The values' bytes are unchanged.
func (o object) bytes() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quoted(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func quoted(s string) json.RawMessage {
	raw, _ := json.Marshal(s) // encoding a string can't fail
	return raw
}

// tooDeep reports whether a text in JSON syntax is nested more deeply than maxDepth. The text need not be valid JSON.
func tooDeep(raw []byte) bool {
	depth, inText := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// outermost finds the id of a message that is nested too deeply to be parsed. It returns an object with the id as the
// only member. It finds the id if the id is a number near the beginning or the end of the message.
func outermost(raw []byte) object {
	for _, part := range [][]byte{raw[:min(len(raw), 200)], raw[max(0, len(raw)-200):]} {
		if m := plainID.FindSubmatch(part); m != nil {
			return object{{"id", json.RawMessage(append(m[1], m[2]...))}}
		}
	}
	return nil
}

var plainID = regexp.MustCompile(`^\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*([0-9]{1,18})\s*,|\}\s*,\s*"id"\s*:\s*([0-9]{1,18})\s*\}\s*$`)

// readMessage parses one message of a server. If the message is invalid, the returned object has the readable members.
// If the id is one of them, the answered call fails immediately, and does not wait for its timeout.
func readMessage(raw []byte) (object, error) {
	if tooDeep(raw) {
		return outermost(raw), fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	o, err := readObject(raw)
	if err == nil || errors.Is(err, errNoObject) {
		return o, err
	}
	loose, looseErr := readLoosely(raw)
	if looseErr != nil {
		return nil, errors.New("it is not valid JSON")
	}
	return loose, errors.New("it has invalid UTF-8, or an object with a repeated name")
}
