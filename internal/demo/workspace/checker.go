package workspace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// checker finds what Slack would refuse in blocks and views. Problems are worded and
// pointed at as Slack does it.
type checker struct {
	surface  surface
	known    func(what, id string) bool // whether there is such a user, channel or conversation
	problems []string

	blockIDs  map[string]bool
	actionIDs map[string]bool // of the block under check
	focused   bool
	markdown  int
	tables    int
	depth     int // of layouts and containers around the block under check
}

func (c *checker) report(pointer, format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...)+" [json-pointer:"+pointer+"]")
}

// only reports fields that Slack doesn't know.
func (c *checker) only(at string, o object, fields []string) {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(fields, key) {
			c.report(at+"/"+key, "invalid additional property: %s", key)
		}
	}
}

// list checks that v is an array of least to most items (most -1: any number).
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

// str checks a string field.
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

// plain checks a plain_text object.
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

// wholeNumber reads a JSON number without a fraction.
func wholeNumber(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return int(i), err == nil
}
