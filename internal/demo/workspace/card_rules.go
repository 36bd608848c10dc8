package workspace

import (
	"fmt"
	"slices"
)

func (c *checker) card(at string, b object) {
	if b["hero_image"] == nil && b["title"] == nil && b["actions"] == nil && b["body"] == nil {
		c.report(at, "must have at least one of hero_image, title, actions, body")
	}
	if b["icon"] != nil && b["slack_icon"] != nil {
		c.report(at, "icon and slack_icon cannot be used together")
	}
	c.imageElement(at+"/hero_image", b["hero_image"])
	c.imageElement(at+"/icon", b["icon"])
	if b["slack_icon"] != nil {
		o := c.object(at+"/slack_icon", b["slack_icon"])
		c.only(at+"/slack_icon", o, []string{"type", "name"})
		c.str(at+"/slack_icon/name", o["name"], maxIdentifier, true)
	}
	for name, most := range map[string]int{"title": maxCardTitle, "subtitle": maxCardTitle, "body": maxCardText, "subtext": maxCardText} {
		if b[name] != nil {
			c.textObject(at+"/"+name, b[name], most)
		}
	}
	if b["actions"] == nil {
		return
	}
	for i, item := range c.list(at+"/actions", b["actions"], 1, maxCardActions) {
		pointer := fmt.Sprintf("%s/actions/%d", at, i)
		if e, ok := item.(object); ok && e["type"] != "button" {
			c.report(pointer+"/type", "unsupported type: %v", e["type"])
			continue
		}
		c.element(pointer, item, inActions)
	}
}

func (c *checker) carousel(at string, b object) {
	for i, item := range c.list(at+"/elements", b["elements"], 1, maxCarouselCards) {
		c.child(fmt.Sprintf("%s/elements/%d", at, i), item, []string{"card"})
	}
}

func (c *checker) alert(at string, b object) {
	if b["text"] == nil {
		c.report(at+"/text", "missing required field: text")
	} else {
		c.textObject(at+"/text", b["text"], maxAlertText)
	}
	c.oneOf(at+"/level", b["level"], "default", "info", "warning", "error", "success")
}

// stable are the blocks allowed in a layout's fallback, and also in layouts and containers.
var (
	stable     = []string{"context", "divider", "header", "image", "rich_text", "section", "table", "video"}
	childKinds = append(slices.Clone(stable), "actions", "alert", "card", "carousel", "container", "data_table", "data_visualization", "file", "input", "layout")
)

func (c *checker) container(at string, b object) {
	if b["title"] == nil && b["rich_text_title"] == nil {
		c.report(at, "missing required field: title")
	}
	c.plain(at+"/title", b["title"], maxCardTitle, false)
	if b["rich_text_title"] != nil {
		c.richText(at+"/rich_text_title", c.object(at+"/rich_text_title", b["rich_text_title"]))
	}
	if b["subtitle"] != nil {
		c.textObject(at+"/subtitle", b["subtitle"], maxCardTitle)
	}
	c.imageElement(at+"/icon", b["icon"])
	c.oneOf(at+"/width", b["width"], "narrow", "standard", "wide", "full")
	if b["has_header_divider"] == true && b["is_collapsible"] == true {
		c.report(at+"/has_header_divider", "cannot be used with is_collapsible")
	}
	if b["default_collapsed"] == true && b["is_collapsible"] != true {
		c.report(at+"/default_collapsed", "needs is_collapsible")
	}
	for i, item := range c.list(at+"/child_blocks", b["child_blocks"], 1, maxChildBlocks) {
		c.child(fmt.Sprintf("%s/child_blocks/%d", at, i), item, childKinds)
	}
}

func (c *checker) layout(at string, b object) {
	c.str(at+"/label", b["label"], maxCardTitle, true)
	c.oneOf(at+"/grid_lines", b["grid_lines"], "none", "rows", "outer")
	for i, row := range c.list(at+"/rows", b["rows"], 1, maxLayoutRows) {
		pointer := fmt.Sprintf("%s/rows/%d", at, i)
		for j, v := range c.list(pointer+"/items", c.object(pointer, row)["items"], 1, maxLayoutItems) {
			item := c.object(fmt.Sprintf("%s/items/%d", pointer, j), v)
			place := fmt.Sprintf("%s/items/%d", pointer, j)
			c.only(place, item, []string{"block", "width", "horizontal_alignment"})
			c.oneOf(place+"/width", item["width"], "narrow", "standard", "wide")
			c.oneOf(place+"/horizontal_alignment", item["horizontal_alignment"], "start", "center", "end")
			c.child(place+"/block", item["block"], childKinds)
		}
	}
	c.fallback(at, b)
}

func (c *checker) authProvider(at string, b object) {
	c.str(at+"/value", b["value"], maxButtonValue, true)
	c.plain(at+"/name", b["name"], maxCardTitle, true)
	if _, ok := b["is_connected"].(bool); !ok {
		c.report(at+"/is_connected", "missing required field: is_connected")
	}
	for _, name := range []string{"description", "connected_identity", "connected_context"} {
		if b[name] != nil {
			c.textObject(at+"/"+name, b[name], maxSectionText)
		}
	}
	for _, name := range []string{"icon_url", "auth_url", "disconnect_url"} {
		c.str(at+"/"+name, b[name], maxURL, false)
	}
	if e, ok := b["accessory"].(object); ok && e["type"] != "overflow" {
		c.report(at+"/accessory/type", "unsupported type: %v", e["type"])
	} else if b["accessory"] != nil {
		c.element(at+"/accessory", b["accessory"], inSection)
	}
	c.fallback(at, b)
}

// fallback checks the blocks shown where a newer block is not supported.
func (c *checker) fallback(at string, b object) {
	if b["fallback"] == nil {
		return
	}
	for i, item := range c.list(at+"/fallback", b["fallback"], 0, maxMessageBlocks) {
		c.child(fmt.Sprintf("%s/fallback/%d", at, i), item, stable)
	}
}

// child checks a block inside another one. Layouts and containers may be nested once.
func (c *checker) child(at string, v any, kinds []string) {
	b, ok := v.(object)
	kind, _ := b["type"].(string)
	nests := kind == "container" || kind == "layout"
	switch {
	case !ok:
		c.report(at, "must be an object")
	case !slices.Contains(kinds, kind), nests && c.depth > 0:
		c.report(at+"/type", "unsupported type: %s", kind)
	default:
		if nests {
			c.depth++
			defer func() { c.depth-- }()
		}
		c.block(at, b)
	}
}

// object checks that v is an object and returns it.
func (c *checker) object(at string, v any) object {
	o, ok := v.(object)
	if !ok {
		c.report(at, "must be an object")
	}
	return o
}

// imageElement checks an optional image of a block.
func (c *checker) imageElement(at string, v any) {
	if v == nil {
		return
	}
	e := c.object(at, v)
	c.only(at, e, []string{"type", "image_url", "alt_text", "slack_file"})
	c.image(at, e)
}

// oneOf checks a field with a fixed set of values.
func (c *checker) oneOf(at string, v any, names ...string) {
	if text, ok := v.(string); v != nil && (!ok || !slices.Contains(names, text)) {
		c.report(at, "must be one of %v", names)
	}
}
