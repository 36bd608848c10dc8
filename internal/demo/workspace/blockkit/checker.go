package blockkit

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"countersign/internal/demo/workspace/wire"
)

// object is decoded JSON.
type object = map[string]any

// Known reports whether a user, channel or conversation exists. The parameter "what" is "user", "channel" or
// "conversation".
type Known func(what, id string) bool

// CheckBlocks returns the problems of a message's blocks.
func CheckBlocks(blocks []any, known Known) []string {
	c := checker{surface: onMessage, known: known}
	c.blocks("/blocks", blocks, MaxMessageBlocks)
	return c.problems
}

// checker collects problems. Each problem has Slack's wording, and names its place with a JSON pointer.
type checker struct {
	surface  surface
	known    Known
	problems []string

	blockIDs  map[string]bool
	actionIDs map[string]bool // action_ids of the current block
	focused   bool
	markdown  int // characters in markdown blocks so far
	tables    int
}

func (c *checker) report(pointer, format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...)+" [json-pointer:"+pointer+"]")
}

// The method "only" reports each field of an object that is not in the given list.
func (c *checker) only(at string, o object, fields []string) {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(fields, key) {
			c.report(at+"/"+key, "invalid additional property: %s", key)
		}
	}
}

// object returns v as an object, and reports any other value.
func (c *checker) object(at string, v any) object {
	o, ok := v.(object)
	if !ok {
		c.report(at, "must be an object")
	}
	return o
}

// list returns v as an array, and reports any other value. It also reports an array with fewer items than the parameter
// least, or with more items than the parameter most. If most is -1, there is no maximum.
func (c *checker) list(at string, v any, least, most int) []any {
	items, ok := v.([]any)
	switch {
	case v == nil:
		c.report(at, "missing required field: %s", lastPart(at))
	case !ok:
		c.report(at, "must be an array")
	case len(items) < least:
		c.report(at, "no less than %d items allowed", least)
	case most >= 0 && len(items) > most:
		c.report(at, "no more than %d items allowed", most)
		return nil
	}
	return items
}

// str checks a string.
func (c *checker) str(at string, v any, most int, required bool) string {
	text, ok := v.(string)
	switch {
	case v == nil:
		if required {
			c.report(at, "missing required field: %s", lastPart(at))
		}
	case !ok:
		c.report(at, "must be a string")
	case required && text == "":
		c.report(at, "must be more than 0 characters")
	case utf8.RuneCountInString(text) > most:
		c.report(at, "must be less than %d characters", most+1)
	}
	return text
}

// name checks an action_id, block_id or callback_id.
func (c *checker) name(at string, v any) string { return c.str(at, v, maxIdentifier, false) }

// number checks a required number.
func (c *checker) number(at string, v any) {
	n, ok := v.(interface{ Float64() (float64, error) })
	if ok {
		_, err := n.Float64()
		ok = err == nil
	}
	if !ok {
		c.report(at, "must be a number")
	}
}

// The method "whole" checks an optional number without a fraction. The parameter least is the minimum, and most is the
// maximum.
func (c *checker) whole(at string, v any, least, most int) {
	if n, ok := wire.Whole(v); v != nil && (!ok || n < least || n > most) {
		c.report(at, "must be from %d to %d", least, most)
	}
}

// oneOf checks an optional field with a fixed set of values.
func (c *checker) oneOf(at string, v any, names ...string) {
	if text, ok := v.(string); v != nil && (!ok || !slices.Contains(names, text)) {
		c.report(at, "must be one of %v", names)
	}
}

// format checks an optional string by calling the parameter is. If the result is false, the problem contains the
// parameter form.
func (c *checker) format(at string, v any, is func(string) bool, form string) {
	if v == nil || v == "" {
		return
	}
	if text, ok := v.(string); !ok || !is(text) {
		c.report(at, "must be %s", form)
	}
}

// The method "plain" checks a plain_text object.
func (c *checker) plain(at string, v any, most int, required bool) {
	if v == nil {
		if required {
			c.report(at, "missing required field: %s", lastPart(at))
		}
		return
	}
	if o, ok := v.(object); ok && o["type"] != "plain_text" {
		c.report(at+"/type", "must be plain_text")
		return
	}
	c.textObject(at, v, most)
}

// textObject checks a plain_text or mrkdwn object.
func (c *checker) textObject(at string, v any, most int) {
	o, ok := v.(object)
	if !ok {
		c.report(at, "must be an object")
		return
	}
	switch o["type"] {
	case "plain_text":
		c.only(at, o, []string{"type", "text", "emoji"})
	case "mrkdwn":
		c.only(at, o, []string{"type", "text", "verbatim", "emoji"})
	default:
		c.report(at+"/type", "must be plain_text or mrkdwn")
		return
	}
	text, ok := o["text"].(string)
	switch {
	case o["text"] == nil:
		c.report(at+"/text", "missing required field: text")
	case !ok:
		c.report(at+"/text", "must be a string")
	case text == "":
		c.report(at+"/text", "must be more than 0 characters")
	case utf8.RuneCountInString(text) > most:
		c.report(at, "failed to match all allowed schemas")
		c.report(at+"/text", "must be less than %d characters", most+1)
	}
}

func lastPart(pointer string) string {
	for i := len(pointer) - 1; i >= 0; i-- {
		if pointer[i] == '/' {
			return pointer[i+1:]
		}
	}
	return pointer
}

// The function "objects" returns the objects in a list, and skips all other items.
func objects(list any) []object {
	items, _ := list.([]any)
	out := make([]object, 0, len(items))
	for _, item := range items {
		if o, ok := item.(object); ok {
			out = append(out, o)
		}
	}
	return out
}
