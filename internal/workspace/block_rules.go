package workspace

import (
	"fmt"
	"unicode/utf8"
)

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
	for i, e := range c.list(at+"/elements", b["elements"], 1, 5) {
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

// image checks what image blocks and image elements share.
func (c *checker) image(at string, o object) {
	if o["image_url"] == nil && o["slack_file"] == nil {
		c.report(at, "missing required field: image_url")
	}
	c.str(at+"/image_url", o["image_url"], maxURL, false)
	c.str(at+"/alt_text", o["alt_text"], maxAltText, true)
}

func (c *checker) markdownBlock(at string, b object) {
	c.str(at+"/text", b["text"], maxMarkdownText, true)
	text, _ := b["text"].(string)
	before := c.markdown
	c.markdown += utf8.RuneCountInString(text)
	if before <= maxMarkdownText && c.markdown > maxMarkdownText && before > 0 {
		c.report(at+"/text", "markdown blocks of one message must be less than %d characters together", maxMarkdownText+1)
	}
}

func (c *checker) tableBlock(at string, b object) {
	if c.tables++; c.tables > 1 {
		c.report(at, "only one table allowed")
	}
	for i, row := range c.list(at+"/rows", b["rows"], 1, 100) {
		c.list(fmt.Sprintf("%s/rows/%d", at, i), row, 1, 20)
	}
}

func (c *checker) taskCard(at string, b object) {
	c.str(at+"/task_id", b["task_id"], maxIdentifier, true)
	c.str(at+"/title", b["title"], maxSectionText, true)
	if status, given := b["status"]; given && !taskStatuses[fmt.Sprint(status)] {
		c.report(at+"/status", "must be one of pending, in_progress, complete, error")
	}
}

var taskStatuses = map[string]bool{"pending": true, "in_progress": true, "complete": true, "error": true}

func (c *checker) plan(at string, b object) {
	c.str(at+"/title", b["title"], maxSectionText, true)
	if b["tasks"] == nil {
		return
	}
	for i, item := range c.list(at+"/tasks", b["tasks"], 0, maxMessageBlocks) {
		pointer := fmt.Sprintf("%s/tasks/%d", at, i)
		task, ok := item.(object)
		if !ok {
			c.report(pointer, "must be an object")
			continue
		}
		c.taskCard(pointer, task)
	}
}
