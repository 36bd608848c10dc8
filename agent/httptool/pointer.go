package httptool

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// point returns the exact bytes that a JSON Pointer (RFC 6901) selects. If an object has duplicate names, point uses
// the first member.
func point(data []byte, pointer string) ([]byte, bool) {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var ok bool
		switch d.PeekKind() {
		case '{':
			ok = enterMember(d, token)
		case '[':
			ok = enterElement(d, token)
		}
		if !ok {
			return nil, false
		}
	}
	v, err := d.ReadValue()
	return bytes.Clone(v), err == nil
}

// enterMember moves to the value of an object's member.
func enterMember(d *jsontext.Decoder, name string) bool {
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() == '"' {
		key, err := d.ReadToken()
		if err != nil {
			return false
		}
		if key.String() == name {
			return true
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}

// enterElement moves to an element of a list.
func enterElement(d *jsontext.Decoder, token string) bool {
	n, err := strconv.Atoi(token)
	if err != nil || n < 0 || token != strconv.Itoa(n) {
		return false
	}
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for range n {
		if d.PeekKind() == ']' || d.SkipValue() != nil {
			return false
		}
	}
	return d.PeekKind() != ']' && d.PeekKind() != 0
}
