package workspace

import "time"

func matchesLayout(layout, s string) bool {
	_, err := time.Parse(layout, s)
	return err == nil
}

// placed is an interactive element with the block that holds it.
type placed struct {
	block   object
	blockID string
	element object
}

// interactive lists the elements of blocks that people can act on, in order, wherever
// they are nested.
func interactive(blocks []any) []placed {
	var out []placed
	for _, item := range blocks {
		if b, ok := item.(object); ok {
			collect(b, b, &out)
		}
	}
	return out
}

// containers are the fields under which blocks keep elements or further blocks, in the
// order in which they are shown.
var containers = []string{"accessory", "element", "elements", "actions", "rows", "items", "block", "child_blocks", "fallback"}

func collect(block, holder object, out *[]placed) {
	for _, field := range containers {
		switch v := holder[field].(type) {
		case object:
			collectOne(block, v, out)
		case []any:
			for _, item := range v {
				if o, ok := item.(object); ok {
					collectOne(block, o, out)
				}
			}
		}
	}
}

func collectOne(block, o object, out *[]placed) {
	kind, _ := o["type"].(string)
	if rule, known := elementRules[kind]; known && rule.in != 0 && (kind != "image" || o["action_id"] != nil) {
		id, _ := block["block_id"].(string)
		*out = append(*out, placed{block: block, blockID: id, element: o})
		return
	}
	if _, isBlock := blockRules[kind]; isBlock {
		block = o
	}
	collect(block, o, out)
}

// assignIDs names the blocks and elements that the app left nameless, as Slack does.
// The blocks are still the caller's own.
func assignIDs(blocks []any) {
	for _, item := range blocks {
		if b, ok := item.(object); ok {
			nameBlock(b)
		}
	}
	for _, p := range interactive(blocks) {
		if id, _ := p.element["action_id"].(string); id == "" {
			p.element["action_id"] = newID("")[:5]
		}
	}
}

func nameBlock(b object) {
	if id, _ := b["block_id"].(string); id == "" {
		b["block_id"] = newID("")[:5]
	}
	for _, inner := range within(b) {
		nameBlock(inner)
	}
}

// within are the blocks that a block holds.
func within(b object) []object {
	var out []object
	add := func(list any) {
		items, _ := list.([]any)
		for _, item := range items {
			if o, ok := item.(object); ok {
				out = append(out, o)
			}
		}
	}
	switch b["type"] {
	case "carousel":
		add(b["elements"])
	case "container":
		add(b["child_blocks"])
	case "layout":
		rows, _ := b["rows"].([]any)
		for _, row := range rows {
			r, _ := row.(object)
			items, _ := r["items"].([]any)
			for _, item := range items {
				i, _ := item.(object)
				add([]any{i["block"]})
			}
		}
	}
	return out
}

// elementNamed finds the element that an action names. Two elements may share an
// action_id in different blocks; then the block must be named too.
func elementNamed(blocks []any, actionID, blockID string) (placed, bool) {
	for _, p := range interactive(blocks) {
		if p.element["action_id"] == actionID && (blockID == "" || p.blockID == blockID) {
			return p, true
		}
	}
	return placed{}, false
}
