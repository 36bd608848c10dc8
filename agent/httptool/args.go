package httptool

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/agent/jsonobject"
)

// absent reports whether an argument is missing. The value null counts as missing, because most parts of a request
// can't express null.
func absent(value []byte) bool { return len(value) == 0 || value[0] == 'n' }

// members returns an object's members.
func members(raw []byte) (jsonobject.Object, error) {
	out, err := jsonobject.Read(raw)
	if err != nil {
		return nil, errors.New("the arguments are not a JSON object")
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
