package workspace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// surface is where blocks are shown. Not every block may be everywhere.
type surface int

const (
	onMessage surface = 1 << iota
	onModal
	onHome

	anywhere = onMessage | onModal | onHome
	inViews  = onModal | onHome
)

// checker finds what Slack would refuse in blocks and views. Problems are worded and
// pointed at as Slack does it.
type checker struct {
	surface  surface
	problems []string

	blockIDs  map[string]bool
	actionIDs map[string]bool // of the block under check
	focused   bool
	markdown  int
	tables    int
}

func (c *checker) report(pointer, format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...)+" [json-pointer:"+pointer+"]")
}

// blockRule says where a block may be, which fields it may have and how it is checked.
// A rule without fields leaves them open: newer blocks, which Slack changes often.
type blockRule struct {
	on     surface
	fields []string
	check  func(c *checker, at string, b object)
}

var blockRules map[string]blockRule

func init() { // an initialiser would be a cycle: blocks hold blocks
	blockRules = map[string]blockRule{
		"section":            {anywhere, []string{"text", "fields", "accessory", "expand"}, (*checker).section},
		"divider":            {anywhere, []string{}, nil},
		"header":             {anywhere, []string{"text", "level"}, func(c *checker, at string, b object) { c.plain(at+"/text", b["text"], maxHeaderText, true) }},
		"context":            {anywhere, []string{"elements"}, (*checker).contextBlock},
		"actions":            {anywhere, []string{"elements"}, (*checker).actionsBlock},
		"image":              {anywhere, []string{"image_url", "alt_text", "title", "slack_file"}, (*checker).imageBlock},
		"input":              {anywhere, []string{"label", "element", "hint", "optional", "dispatch_action"}, (*checker).inputBlock},
		"rich_text":          {anywhere, []string{"elements"}, func(c *checker, at string, b object) { c.list(at+"/elements", b["elements"], 0, -1) }},
		"video":              {anywhere, nil, nil},
		"markdown":           {onMessage, []string{"text"}, (*checker).markdownBlock},
		"table":              {onMessage, []string{"rows", "column_settings"}, (*checker).tableBlock},
		"context_actions":    {onMessage, []string{"elements"}, (*checker).contextActions},
		"task_card":          {onMessage, []string{"task_id", "title", "status", "details", "output", "sources", "hide_title"}, (*checker).taskCard},
		"plan":               {onMessage, []string{"title", "tasks"}, (*checker).plan},
		"file":               {onMessage, nil, func(c *checker, at string, _ object) { c.report(at, "file blocks cannot be posted by apps") }},
		"call":               {onMessage, nil, nil},
		"card":               {onMessage, nil, nil},
		"carousel":           {onMessage, nil, nil},
		"container":          {anywhere, nil, nil},
		"layout":             {anywhere, nil, nil},
		"alert":              {anywhere, nil, nil},
		"data_table":         {anywhere, nil, nil},
		"data_visualization": {anywhere, nil, nil},
		"auth_provider":      {anywhere, nil, nil},
	}
}

// blocks checks a list of blocks with its names.
func (c *checker) blocks(at string, list []any, most int) {
	if len(list) > most {
		c.report(at, "no more than %d items allowed", most)
		return
	}
	if c.blockIDs == nil {
		c.blockIDs = map[string]bool{}
	}
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
	if rule.fields != nil {
		c.only(at, b, append([]string{"type", "block_id"}, rule.fields...))
	}
	if rule.check != nil {
		rule.check(c, at, b)
	}
}

// only reports fields that Slack doesn't know.
func (c *checker) only(at string, o object, fields []string) {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(fields, key) {
			c.report(at+"/"+key, "invalid additional property: %s", key)
		}
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
