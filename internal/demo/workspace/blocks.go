package workspace

import "fmt"

// surface is where blocks are shown. Some blocks are not allowed on every surface.
type surface int

const (
	onMessage surface = 1 << iota
	onModal
	onHome

	anywhere = onMessage | onModal | onHome
	inViews  = onModal | onHome
)

// blockRule says where a block is allowed, which fields it has and how it is checked.
type blockRule struct {
	on     surface
	fields []string
	check  func(c *checker, at string, b object)
}

var blockRules map[string]blockRule

func init() { // an initializer would be cyclic: blocks contain blocks

	blockRules = map[string]blockRule{
		"section":            {anywhere, []string{"text", "fields", "accessory", "expand"}, (*checker).section},
		"divider":            {anywhere, []string{}, nil},
		"header":             {anywhere, []string{"text", "level"}, (*checker).header},
		"context":            {anywhere, []string{"elements"}, (*checker).contextBlock},
		"actions":            {anywhere, []string{"elements"}, (*checker).actionsBlock},
		"image":              {anywhere, []string{"image_url", "alt_text", "title", "slack_file"}, (*checker).imageBlock},
		"input":              {anywhere, []string{"label", "element", "hint", "optional", "dispatch_action"}, (*checker).inputBlock},
		"rich_text":          {anywhere, []string{"elements"}, (*checker).richText},
		"video":              {anywhere, []string{"video_url", "thumbnail_url", "alt_text", "title", "title_url", "description", "author_name", "provider_name", "provider_icon_url"}, (*checker).video},
		"markdown":           {onMessage, []string{"text"}, (*checker).markdownBlock},
		"table":              {onMessage, []string{"rows", "column_settings"}, (*checker).tableBlock},
		"context_actions":    {onMessage, []string{"elements"}, (*checker).contextActions},
		"task_card":          {onMessage, []string{"task_id", "title", "status", "details", "output", "sources", "hide_title"}, (*checker).taskCard},
		"plan":               {onMessage, []string{"title", "tasks"}, (*checker).plan},
		"file":               {onMessage, nil, func(c *checker, at string, _ object) { c.report(at, "file blocks cannot be posted by apps") }},
		"call":               {onMessage, []string{"call_id", "call", "api_decoration_available"}, func(c *checker, at string, b object) { c.str(at+"/call_id", b["call_id"], maxIdentifier, true) }},
		"card":               {onMessage, []string{"hero_image", "icon", "slack_icon", "title", "subtitle", "body", "subtext", "actions"}, (*checker).card},
		"carousel":           {onMessage, []string{"elements"}, (*checker).carousel},
		"container":          {anywhere, []string{"title", "rich_text_title", "subtitle", "icon", "width", "is_collapsible", "default_collapsed", "has_header_divider", "child_blocks"}, (*checker).container},
		"layout":             {anywhere, []string{"label", "rows", "is_label_visible", "grid_lines", "fallback"}, (*checker).layout},
		"alert":              {onModal, []string{"text", "level"}, (*checker).alert},
		"data_table":         {onMessage, []string{"caption", "rows", "page_size", "row_header_column_index"}, (*checker).dataTable},
		"data_visualization": {onMessage, []string{"title", "chart"}, (*checker).dataVisualization},
		"auth_provider":      {anywhere, []string{"value", "name", "is_connected", "description", "icon_url", "auth_url", "disconnect_url", "connected_identity", "connected_context", "accessory", "fallback"}, (*checker).authProvider},
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
