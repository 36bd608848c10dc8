package blockkit

import "fmt"

// richInline maps each kind of rich text piece to its required field.
var richInline = map[string]string{
	"text": "text", "link": "url", "user": "user_id", "usergroup": "usergroup_id", "channel": "channel_id",
	"emoji": "name", "broadcast": "range", "date": "timestamp", "color": "value", "team": "team_id",
	"citation": "url",
}

// RichText returns a rich text block with one plain paragraph.
func RichText(text string) object {
	return object{"type": "rich_text", "elements": []any{object{
		"type": "rich_text_section", "elements": []any{object{"type": "text", "text": text}},
	}}}
}

// richText checks the parts of a rich_text block and their pieces. Required fields may not be empty.
func (c *checker) richText(at string, b object) {
	for i, item := range c.list(at+"/elements", b["elements"], 0, -1) {
		pointer := fmt.Sprintf("%s/elements/%d", at, i)
		part, ok := item.(object)
		if !ok {
			c.report(pointer, "must be an object")
			continue
		}
		switch part["type"] {
		case "rich_text_section", "rich_text_quote":
			c.richPieces(pointer, part, false)
		case "rich_text_preformatted":
			c.richPieces(pointer, part, true)
		case "rich_text_list":
			c.richList(pointer, part)
		default:
			c.report(pointer+"/type", "unsupported type: %v", part["type"])
		}
	}
}

func (c *checker) richList(at string, part object) {
	if part["style"] != "bullet" && part["style"] != "ordered" {
		c.report(at+"/style", "must be bullet or ordered")
	}
	for i, item := range c.list(at+"/elements", part["elements"], 1, -1) {
		pointer := fmt.Sprintf("%s/elements/%d", at, i)
		section, ok := item.(object)
		if !ok || section["type"] != "rich_text_section" {
			c.report(pointer+"/type", "must be rich_text_section")
			continue
		}
		c.richPieces(pointer, section, false)
	}
}

// richPieces checks the pieces of a section. Preformatted text consists of text and links only.
func (c *checker) richPieces(at string, part object, preformatted bool) {
	for i, item := range c.list(at+"/elements", part["elements"], 0, -1) {
		pointer := fmt.Sprintf("%s/elements/%d", at, i)
		piece, _ := item.(object)
		kind, _ := piece["type"].(string)
		field, known := richInline[kind]
		switch {
		case !known, preformatted && kind != "text" && kind != "link":
			c.report(pointer+"/type", "unsupported type: %s", kind)
		case piece[field] == nil:
			c.report(pointer+"/"+field, "missing required field: %s", field)
		case piece[field] == "":
			c.report(pointer+"/"+field, "must be more than 0 characters")
		}
	}
}
