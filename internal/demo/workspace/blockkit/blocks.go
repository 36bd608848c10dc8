package blockkit

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// surface is a set of places where blocks are shown.
type surface int

const (
	onMessage surface = 1 << iota
	onModal
	onHome

	anywhere = onMessage | onModal | onHome
)

// blockRule defines where a block is allowed, which fields it has and how they are checked. If a rule has no check, the
// block may have any fields. The checker refuses a kind of block without a rule, such as "file", because only Slack
// itself posts such blocks.
type blockRule struct {
	on     surface
	fields []string
	check  func(c *checker, at string, b object)
}

var blockRules map[string]blockRule

func init() { // set in init, because an initial value would be a cyclic reference: tasks contain rich text blocks
	blockRules = map[string]blockRule{
		"section":         {anywhere, []string{"text", "fields", "accessory", "expand"}, (*checker).section},
		"divider":         {anywhere, []string{}, func(*checker, string, object) {}},
		"header":          {anywhere, []string{"text", "level"}, (*checker).header},
		"context":         {anywhere, []string{"elements"}, (*checker).contextBlock},
		"actions":         {anywhere, []string{"elements"}, (*checker).actionsBlock},
		"image":           {anywhere, []string{"image_url", "alt_text", "title", "slack_file"}, (*checker).imageBlock},
		"input":           {anywhere, []string{"label", "element", "hint", "optional", "dispatch_action"}, (*checker).inputBlock},
		"rich_text":       {anywhere, []string{"elements"}, (*checker).richText},
		"markdown":        {onMessage, []string{"text"}, (*checker).markdownBlock},
		"table":           {onMessage, []string{"rows", "column_settings"}, (*checker).tableBlock},
		"context_actions": {onMessage, []string{"elements"}, (*checker).contextActions},
		"task_card":       {onMessage, []string{"task_id", "title", "status", "details", "output", "sources", "hide_title"}, (*checker).taskCard},
		"plan":            {onMessage, []string{"title", "tasks"}, (*checker).plan},

		// The page shows only the text of these blocks.
		"alert":              {on: onModal},
		"auth_provider":      {on: anywhere},
		"call":               {on: onMessage},
		"card":               {on: onMessage},
		"carousel":           {on: onMessage},
		"container":          {on: anywhere},
		"data_table":         {on: onMessage},
		"data_visualization": {on: onMessage},
		"layout":             {on: anywhere},
		"video":              {on: anywhere},
	}
}

// The method "blocks" checks a list of blocks.
func (c *checker) blocks(at string, list []any, most int) {
	if len(list) > most {
		c.report(at, "no more than %d items allowed", most)
		return
	}
	c.blockIDs = map[string]bool{}
	for i, item := range list {
		pointer := fmt.Sprintf("%s/%d", at, i)
		b, ok := item.(object)
		if !ok {
			c.report(pointer, "must be an object")
			continue
		}
		c.block(pointer, b)
	}
}

func (c *checker) block(at string, b object) {
	kind, _ := b["type"].(string)
	rule, known := blockRules[kind]
	switch {
	case kind == "":
		c.report(at+"/type", "missing required field: type")
		return
	case !known || rule.on&c.surface == 0:
		c.report(at+"/type", "unsupported type: %s", kind)
		return
	}
	if id := c.name(at+"/block_id", b["block_id"]); id != "" {
		if c.blockIDs[id] {
			c.report(at+"/block_id", "`block_id` already exists: %s", id)
		}
		c.blockIDs[id] = true
	}
	c.actionIDs = map[string]bool{}
	if rule.check != nil {
		c.only(at, b, append([]string{"type", "block_id"}, rule.fields...))
		rule.check(c, at, b)
	}
}

func (c *checker) section(at string, b object) {
	text, fields := b["text"], b["fields"]
	if text == nil && fields == nil {
		c.report(at, "missing required field: text")
	}
	if text != nil {
		c.textObject(at+"/text", text, maxSectionText)
	}
	if fields != nil {
		for i, f := range c.list(at+"/fields", fields, 1, maxSectionFields) {
			c.textObject(fmt.Sprintf("%s/fields/%d", at, i), f, maxFieldText)
		}
	}
	if accessory := b["accessory"]; accessory != nil {
		c.element(at+"/accessory", accessory, inSection)
	}
}

// header checks a heading. The level of the heading is 1 to 4, as in HTML's h1 to h4.
func (c *checker) header(at string, b object) {
	c.plain(at+"/text", b["text"], maxHeaderText, true)
	c.whole(at+"/level", b["level"], 1, 4)
}

func (c *checker) contextBlock(at string, b object) {
	for i, item := range c.list(at+"/elements", b["elements"], 1, maxContextElements) {
		pointer := fmt.Sprintf("%s/elements/%d", at, i)
		element, _ := item.(object)
		switch element["type"] {
		case "image":
			c.image(pointer, element)
		case "plain_text", "mrkdwn":
			c.textObject(pointer, element, maxSectionText)
		default:
			c.report(pointer, "unsupported type: %v", element["type"])
		}
	}
}

func (c *checker) actionsBlock(at string, b object) {
	for i, e := range c.list(at+"/elements", b["elements"], 1, maxActionElements) {
		c.element(fmt.Sprintf("%s/elements/%d", at, i), e, inActions)
	}
}

func (c *checker) contextActions(at string, b object) {
	for i, e := range c.list(at+"/elements", b["elements"], 1, maxContextActions) {
		c.element(fmt.Sprintf("%s/elements/%d", at, i), e, inContextActions)
	}
}

func (c *checker) inputBlock(at string, b object) {
	c.plain(at+"/label", b["label"], maxLabel, true)
	c.plain(at+"/hint", b["hint"], maxLabel, false)
	c.element(at+"/element", b["element"], inInput)
}

func (c *checker) imageBlock(at string, b object) {
	c.image(at, b)
	c.plain(at+"/title", b["title"], maxAltText, false)
}

// image checks the fields that image blocks and image elements share.
func (c *checker) image(at string, o object) {
	if o["image_url"] == nil && o["slack_file"] == nil {
		c.report(at, "missing required field: image_url")
	}
	c.str(at+"/image_url", o["image_url"], maxURL, false)
	c.str(at+"/alt_text", o["alt_text"], maxAltText, true)
}

// markdownBlock checks a markdown block. The limit applies to the sum of all markdown blocks of a message.
func (c *checker) markdownBlock(at string, b object) {
	text := c.str(at+"/text", b["text"], MaxMarkdownText, true)
	before := c.markdown
	c.markdown += utf8.RuneCountInString(text)
	if before > 0 && before <= MaxMarkdownText && c.markdown > MaxMarkdownText {
		c.report(at+"/text", "markdown blocks of one message must be less than %d characters together", MaxMarkdownText+1)
	}
}

// TaskStatus reports whether a task can have this status.
func TaskStatus(status string) bool {
	return slices.Contains([]string{"pending", "in_progress", "complete", "error"}, status)
}

func (c *checker) taskCard(at string, b object) {
	c.str(at+"/task_id", b["task_id"], maxIdentifier, true)
	c.str(at+"/title", b["title"], maxSectionText, true)
	if status, given := b["status"]; given && !TaskStatus(fmt.Sprint(status)) {
		c.report(at+"/status", "must be one of pending, in_progress, complete, error")
	}
	for _, name := range []string{"details", "output"} {
		if b[name] == nil {
			continue
		}
		text := c.object(at+"/"+name, b[name])
		if text["type"] != "rich_text" {
			c.report(at+"/"+name+"/type", "must be rich_text")
			continue
		}
		c.richText(at+"/"+name, text)
	}
	if b["sources"] == nil {
		return
	}
	for i, v := range c.list(at+"/sources", b["sources"], 0, -1) {
		pointer := fmt.Sprintf("%s/sources/%d", at, i)
		source := c.object(pointer, v)
		if source["type"] != "url" {
			c.report(pointer+"/type", "must be url")
		}
		c.str(pointer+"/url", source["url"], maxURL, true)
		c.str(pointer+"/text", source["text"], maxSectionText, true)
	}
}

func (c *checker) plan(at string, b object) {
	c.str(at+"/title", b["title"], maxSectionText, true)
	if b["tasks"] == nil {
		return
	}
	for i, item := range c.list(at+"/tasks", b["tasks"], 0, MaxMessageBlocks) {
		pointer := fmt.Sprintf("%s/tasks/%d", at, i)
		if task, ok := item.(object); ok {
			c.taskCard(pointer, task)
		} else {
			c.report(pointer, "must be an object")
		}
	}
}

// TooMuchText reports whether a message's blocks show more text than Slack accepts. A data_table does not count,
// because it has its own limit.
func TooMuchText(blocks []any) bool {
	total := 0
	for _, b := range objects(blocks) {
		if b["type"] != "data_table" {
			total += textLength(b)
		}
	}
	return total > maxBlocksText
}

// textLength counts the characters of all fields "text" in a JSON value.
func textLength(v any) int {
	total := 0
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			total += textLength(item)
		}
	case object:
		for key, value := range v {
			if text, ok := value.(string); ok {
				if key == "text" {
					total += utf8.RuneCountInString(text)
				}
				continue
			}
			total += textLength(value)
		}
	}
	return total
}
