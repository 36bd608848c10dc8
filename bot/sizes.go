package bot

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Slack's limits on what an object holds, by its type and field (SLACK.md): a text counts in characters, a list in items. limits.go has those that
// decide how things are drawn.
var sizes = map[string]map[string]int{
	// blocks
	"header":          {"text": maxHeader},
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
	"button":              {"text": maxButtonText, "value": 2000, "url": 3000, "accessibility_label": 75},
	"icon_button":         {"text": maxButtonText, "value": 2000, "accessibility_label": 75},
	"overflow":            {"options": 5},
	"checkboxes":          {"options": 10},
	"radio_buttons":       {"options": 10},
	"static_select":       {"options": maxOptions, "option_groups": 100},
	"multi_static_select": {"options": maxOptions, "option_groups": 100},
	"plain_text_input":    {"initial_value": maxInput, "max_length": maxInput},
	// views
	"modal": {"title": maxModalTitle, "submit": maxModalTitle, "close": maxModalTitle, "blocks": 100, "private_metadata": 3000, "callback_id": 255, "external_id": 255},
	"home":  {"blocks": 100, "private_metadata": 3000, "callback_id": 255, "external_id": 255},
}

// partSizes are the same for what has no type of its own, by the field that it stands in.
var partSizes = map[string]map[string]int{
	"confirm":         {"title": 100, "text": maxConfirm, "confirm": 30, "deny": 30},
	"options":         {"text": maxOptionText, "description": 75, "value": 150, "url": 3000},
	"option_groups":   {"label": 75, "options": maxOptions},
	"positive_button": {"text": maxButtonText, "value": 2000},
	"negative_button": {"text": maxButtonText, "value": 2000},
	"fields":          {"text": 2000},
}

// anySizes hold for every block and element.
var anySizes = map[string]int{"block_id": 255, "action_id": 255, "placeholder": 150}

// Limits on a whole message or view.
const (
	maxMessageBlocks = 50
	maxBlocksText    = 12000     // all text of one message's blocks
	maxMarkdown      = 12000     // all markdown blocks of one message, and one piece of a stream
	maxViewBytes     = 250 << 10 // of a view's JSON
	maxText          = 3000      // any text that has no limit of its own
	maxColumns       = 20        // of a table's row
	maxPrompts       = 4
	maxMetadata      = 3000 // ours: a message's metadata names the surface, and nothing else
)

// misfit is something that Slack would refuse because of its size.
type misfit struct {
	code   string // with which Slack refuses it
	at     string
	reason string
}

// gauge measures what is to be shown.
type gauge struct {
	misfits  []misfit
	code     string // for what is measured now
	blockIDs map[string]bool
	markdown int
}

func (g *gauge) wrong(at, format string, args ...any) {
	g.misfits = append(g.misfits, misfit{g.code, at, fmt.Sprintf(format, args...)})
}

// text measures a string.
func (g *gauge) text(at, s string, most int) {
	if n := width(s); n > most {
		g.wrong(at, "has %d characters, and Slack takes %d", n, most)
	}
}

// list measures how much there is of something.
func (g *gauge) list(at string, n, most int) {
	if n > most {
		g.wrong(at, "has %d items, and Slack takes %d", n, most)
	}
	if n == 0 {
		g.wrong(at, "is empty")
	}
}

// blocks measures the blocks of one message.
func (g *gauge) blocks(at string, blocks []any) {
	if len(blocks) > maxMessageBlocks {
		g.wrong(at, "has %d items, and Slack takes %d", len(blocks), maxMessageBlocks)
	}
	g.blockIDs, g.markdown = map[string]bool{}, 0
	g.each(at, "blocks", blocks)
	if g.markdown > maxMarkdown {
		g.wrong(at, "has %d characters in markdown blocks, and Slack takes %d", g.markdown, maxMarkdown)
	}
	if n := textWithin(blocks); n > maxBlocksText {
		g.code = "msg_blocks_too_long"
		g.wrong(at, "has %d characters in all, and Slack takes %d", n, maxBlocksText)
	}
}

// view measures a modal or a Home.
func (g *gauge) view(v map[string]any) {
	if raw, err := json.Marshal(v); err == nil && len(raw) > maxViewBytes {
		g.code = "view_too_large"
		g.wrong("view", "has %d bytes, and Slack takes %d", len(raw), maxViewBytes)
	}
	g.code, g.blockIDs = "invalid_arguments", map[string]bool{}
	g.object("view", "view", v)
}

// each measures the items of a list that stands in the named field. Elements of one block have ids of their own.
func (g *gauge) each(at, field string, items []any) {
	actions := map[string]bool{}
	for i, item := range items {
		here := at + "/" + strconv.Itoa(i)
		switch v := item.(type) {
		case []any: // a row
			g.list(here, len(v), maxColumns)
			g.each(here, field, v)
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

// object measures one object that stands in the named field.
func (g *gauge) object(at, field string, o map[string]any) {
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
		g.markdown += width(s)
	}
}

// field measures what stands in a field.
func (g *gauge) field(at, key string, v any, most int, limited bool) {
	switch v := v.(type) {
	case string:
		if limited {
			g.text(at, v, most)
		}
		if key == "text" && v == "" {
			g.wrong(at, "is empty")
		}
	case float64:
		if limited && v > float64(most) {
			g.wrong(at, "is %v, and Slack takes %d", v, most)
		}
	case []any:
		if limited {
			g.list(at, len(v), most)
		}
		g.each(at, key, v)
	case map[string]any:
		if text, ok := v["text"].(string); ok && limited {
			g.text(at, text, most)
		}
		g.object(at, key, v)
	}
}

// textObject measures a text. The limit of the field that it stands in was held against it already.
func (g *gauge) textObject(at, field string, o map[string]any) {
	text, _ := o["text"].(string)
	if text == "" {
		g.wrong(at, "is empty")
	}
	most := maxText
	if m, ok := partSizes[field]["text"]; ok { // the items of fields are texts themselves
		most = m
	}
	g.text(at, text, most)
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
				n += width(s)
				continue
			}
			n += textWithin(item)
		}
	}
	return n
}
