package slackapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// These limits of Slack also determine how messages and views are drawn. The length of a text is in characters.
const (
	MaxHeader      = 150
	MaxButtonText  = 75
	MaxConfirm     = 300
	MaxModalTitle  = 24
	MaxInput       = 3000 // initial value and content of a text input
	MaxOptions     = 100
	MaxOptionText  = 75
	MaxMessageText = 4000 // limit of chat.update, and so of every message that may be updated
)

// sizes has Slack's limits on the contents of an object, by the object's type and field. The limit of a text is in
// characters, and the limit of a list is in items.
var sizes = map[string]map[string]int{
	// blocks
	"header":          {"text": MaxHeader},
	"section":         {"text": 3000, "fields": 10},
	"context":         {"elements": 10},
	"actions":         {"elements": 25},
	"context_actions": {"elements": 5},
	"input":           {"label": 2000, "hint": 2000},
	"image":           {"image_url": 3000, "alt_text": 2000, "title": 2000},
	"markdown":        {"text": 12000},
	"table":           {"rows": 100},
	"task_card":       {"task_id": 255, "title": 3000},
	"plan":            {"title": 3000, "tasks": 50},
	// elements
	"button":              {"text": MaxButtonText, "value": 2000, "url": 3000, "accessibility_label": 75},
	"icon_button":         {"text": MaxButtonText, "value": 2000, "accessibility_label": 75},
	"overflow":            {"options": 5},
	"checkboxes":          {"options": 10},
	"radio_buttons":       {"options": 10},
	"static_select":       {"options": MaxOptions, "option_groups": 100},
	"multi_static_select": {"options": MaxOptions, "option_groups": 100},
	"plain_text_input":    {"initial_value": MaxInput, "max_length": MaxInput},
	// views
	"modal": {"title": MaxModalTitle, "submit": MaxModalTitle, "close": MaxModalTitle, "blocks": 100, "private_metadata": 3000, "callback_id": 255, "external_id": 255},
	"home":  {"blocks": 100, "private_metadata": 3000, "callback_id": 255, "external_id": 255},
}

// partSizes has the limits of objects without a type. The keys are the names of the fields that hold these objects.
var partSizes = map[string]map[string]int{
	"confirm":         {"title": 100, "text": MaxConfirm, "confirm": 30, "deny": 30},
	"options":         {"text": MaxOptionText, "description": 75, "value": 150, "url": 3000},
	"option_groups":   {"label": 75, "options": MaxOptions},
	"positive_button": {"text": MaxButtonText, "value": 2000},
	"negative_button": {"text": MaxButtonText, "value": 2000},
	"fields":          {"text": 2000},
}

// anySizes has the limits that apply to every block and element.
var anySizes = map[string]int{"block_id": 255, "action_id": 255, "placeholder": 150}

// These values limit a whole message or view.
const (
	maxMessageBlocks = 50
	maxBlocksText    = 12000     // all text of one message's blocks
	maxMarkdown      = 12000     // all markdown blocks of one message, and one piece of a stream
	MaxViewBytes     = 250 << 10 // size of a view's JSON
	maxText          = 3000      // any text that has no limit of its own
	maxColumns       = 20        // cells of a table's row
	maxPrompts       = 4
	maxMetadata      = 3000 // the bot's own limit: the metadata of a message only names its outbox message
)

// SizeError is one part of a call that Slack would refuse because of its size.
type SizeError struct {
	Code   string // Slack's error code
	At     string
	Reason string
}

// sizeChecker measures the parts of one call.
type sizeChecker struct {
	errors   []SizeError
	code     string // code of the errors found in the current part
	blockIDs map[string]bool
	markdown int
}

func (g *sizeChecker) wrong(at, format string, args ...any) {
	g.errors = append(g.errors, SizeError{g.code, at, fmt.Sprintf(format, args...)})
}

// checkText measures a string.
func (g *sizeChecker) checkText(at, s string, most int) {
	if n := utf8.RuneCountInString(s); n > most {
		g.wrong(at, "has %d characters, but Slack accepts at most %d", n, most)
	}
}

// list measures the length of a list.
func (g *sizeChecker) list(at string, n, most int) {
	if n > most {
		g.wrong(at, "has %d items, but Slack accepts at most %d", n, most)
	}
	if n == 0 {
		g.wrong(at, "is empty")
	}
}

// blocks measures the blocks of one message.
func (g *sizeChecker) blocks(at string, blocks []any) {
	if len(blocks) > maxMessageBlocks {
		g.wrong(at, "has %d items, but Slack accepts at most %d", len(blocks), maxMessageBlocks)
	}
	g.blockIDs, g.markdown = map[string]bool{}, 0
	g.checkItems(at, "blocks", blocks)
	if g.markdown > maxMarkdown {
		g.wrong(at, "has %d characters in markdown blocks, but Slack accepts at most %d", g.markdown, maxMarkdown)
	}
	if n := textWithin(blocks); n > maxBlocksText {
		g.code = "msg_blocks_too_long"
		g.wrong(at, "has %d characters in all, but Slack accepts at most %d", n, maxBlocksText)
	}
}

// view measures a modal or a Home tab.
func (g *sizeChecker) view(v map[string]any) {
	if raw, err := json.Marshal(v); err == nil && len(raw) > MaxViewBytes {
		g.code = "view_too_large"
		g.wrong("view", "has %d bytes, but Slack accepts at most %d", len(raw), MaxViewBytes)
	}
	g.code, g.blockIDs = "invalid_arguments", map[string]bool{}
	g.object("view", "view", v)
}

// checkItems measures the items of the list in a field. The action ids of one block must differ.
func (g *sizeChecker) checkItems(at, field string, items []any) {
	actions := map[string]bool{}
	for i, item := range items {
		here := at + "/" + strconv.Itoa(i)
		switch v := item.(type) {
		case []any: // a row
			g.list(here, len(v), maxColumns)
			g.checkItems(here, field, v)
		case map[string]any:
			if id, _ := v["action_id"].(string); id != "" {
				if actions[id] {
					g.wrong(here+"/action_id", "is used twice in one block: %q", id)
				}
				actions[id] = true
			}
			g.object(here, field, v)
		}
	}
}

// object measures the object in a field.
func (g *sizeChecker) object(at, field string, o map[string]any) {
	kind, _ := o["type"].(string)
	if kind == "plain_text" || kind == "mrkdwn" {
		g.textObject(at, field, o)
		return
	}
	limits := sizes[kind]
	if kind == "" {
		limits = partSizes[field]
	}
	if id, _ := o["block_id"].(string); id != "" {
		if g.blockIDs[id] {
			g.wrong(at+"/block_id", "is used twice: %q", id)
		}
		g.blockIDs[id] = true
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		most, limited := limits[key]
		if !limited {
			most, limited = anySizes[key]
		}
		g.field(at+"/"+key, key, o[key], most, limited)
	}
	if s, ok := o["text"].(string); ok && kind == "markdown" {
		g.markdown += utf8.RuneCountInString(s)
	}
}

// field measures the value of a field.
func (g *sizeChecker) field(at, key string, v any, most int, limited bool) {
	switch v := v.(type) {
	case string:
		if limited {
			g.checkText(at, v, most)
		}
		if key == "text" && v == "" {
			g.wrong(at, "is empty")
		}
	case float64:
		if limited && v > float64(most) {
			g.wrong(at, "is %v, but Slack accepts at most %d", v, most)
		}
	case []any:
		if limited {
			g.list(at, len(v), most)
		}
		g.checkItems(at, key, v)
	case map[string]any:
		if text, ok := v["text"].(string); ok && limited {
			g.checkText(at, text, most)
		}
		g.object(at, key, v)
	}
}

// textObject measures a text object. The caller has checked the limit of the text's field.
func (g *sizeChecker) textObject(at, field string, o map[string]any) {
	text, _ := o["text"].(string)
	if text == "" {
		g.wrong(at, "is empty")
	}
	most := maxText
	if m, ok := partSizes[field]["text"]; ok { // the items of "fields" are text objects themselves
		most = m
	}
	g.checkText(at, text, most)
}

// textWithin counts the characters of all texts in blocks.
func textWithin(v any) (n int) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += textWithin(item)
		}
	case map[string]any:
		for key, item := range v {
			if s, ok := item.(string); ok && key == "text" {
				n += utf8.RuneCountInString(s)
				continue
			}
			n += textWithin(item)
		}
	}
	return n
}
