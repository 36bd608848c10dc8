package blockkit

import "countersign/internal/demo/workspace/wire"

// Placed is an interactive element and the block that holds it.
type Placed struct {
	Block   object
	BlockID string
	Element object
}

// Kind returns the element's type.
func (p Placed) Kind() string { kind, _ := p.Element["type"].(string); return kind }

// ActionID returns the element's action_id.
func (p Placed) ActionID() string { id, _ := p.Element["action_id"].(string); return id }

// Interactive lists the elements that people can act on, in the order in which they are shown.
func Interactive(blocks []any) []Placed {
	var out []Placed
	for _, b := range objects(blocks) {
		id, _ := b["block_id"].(string)
		elements, _ := b["elements"].([]any)
		inside := append([]any{b["accessory"], b["element"]}, elements...)
		for _, e := range objects(inside) {
			kind, _ := e["type"].(string)
			if _, known := elementRules[kind]; known && (kind != "image" || e["action_id"] != nil) {
				out = append(out, Placed{Block: b, BlockID: id, Element: e})
			}
		}
	}
	return out
}

// WithElements returns the blocks that have elements on which people can act.
func WithElements(blocks []any) []any {
	var out []any
	for _, b := range blocks {
		if len(Interactive([]any{b})) > 0 {
			out = append(out, b)
		}
	}
	return out
}

// Find returns the element that an action names. If two blocks have elements with the same action_id, blockID selects
// the block.
func Find(blocks []any, actionID, blockID string) (Placed, bool) {
	for _, p := range Interactive(blocks) {
		if p.Element["action_id"] == actionID && (blockID == "" || p.BlockID == blockID) {
			return p, true
		}
	}
	return Placed{}, false
}

// If a block or an element has no id, AssignIDs gives it an id, as Slack does. AssignIDs changes the blocks.
func AssignIDs(blocks []any) {
	for _, b := range objects(blocks) {
		if id, _ := b["block_id"].(string); id == "" {
			b["block_id"] = wire.NewID("")[:5]
		}
	}
	for _, p := range Interactive(blocks) {
		if p.ActionID() == "" {
			p.Element["action_id"] = wire.NewID("")[:5]
		}
	}
}
