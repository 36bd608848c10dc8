package workspace

import "fmt"

func (c *checker) contextActions(at string, b object) {
	for i, e := range c.list(at+"/elements", b["elements"], 1, maxContextActions) {
		c.element(fmt.Sprintf("%s/elements/%d", at, i), e, inContextActions)
	}
}

func (c *checker) taskCard(at string, b object) {
	c.str(at+"/task_id", b["task_id"], maxIdentifier, true)
	c.str(at+"/title", b["title"], maxSectionText, true)
	if status, given := b["status"]; given && !taskStatuses[fmt.Sprint(status)] {
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
