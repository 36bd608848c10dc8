package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/agent/jsonobject"
)

// maxDepth limits the nesting depth of a message.
const maxDepth = 100

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
func outermost(raw []byte) jsonobject.Object {
	for _, part := range [][]byte{raw[:min(len(raw), 200)], raw[max(0, len(raw)-200):]} {
		if m := plainID.FindSubmatch(part); m != nil {
			return jsonobject.Object{{Name: "id", Value: append(m[1], m[2]...)}}
		}
	}
	return nil
}

var plainID = regexp.MustCompile(`^\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*([0-9]{1,18})\s*,|\}\s*,\s*"id"\s*:\s*([0-9]{1,18})\s*\}\s*$`)

// readMessage parses one message of a server. If the message is invalid, the returned object has the readable members.
// If the id is one of them, the answered call fails immediately, and does not wait for its timeout.
func readMessage(raw []byte) (jsonobject.Object, error) {
	if tooDeep(raw) {
		return outermost(raw), fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	o, err := jsonobject.Read(raw)
	if err == nil || errors.Is(err, jsonobject.ErrNoObject) {
		return o, err
	}
	loose, looseErr := jsonobject.Read(raw, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if looseErr != nil {
		return nil, errors.New("it is not valid JSON")
	}
	return loose, errors.New("it has invalid UTF-8, or an object with a repeated name")
}
