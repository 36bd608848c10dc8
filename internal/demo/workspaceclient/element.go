package workspaceclient

import (
	"encoding/json"
	"strings"
)

// Element is an element of a block that a person can click or fill in.
type Element struct {
	Type     string `json:"type"`
	ActionID string `json:"action_id"`
	BlockID  string `json:"-"`
	Value    string `json:"value"`
	Text     struct{ Text string }
	Label    string `json:"-"` // an input's label
	Optional bool   `json:"-"` // an input that may stay empty
}

// Elements lists the buttons and inputs of blocks, in order.
func Elements(blocks json.RawMessage) []Element {
	var list []struct {
		Type      string
		BlockID   string            `json:"block_id"`
		Elements  []json.RawMessage `json:"elements"`
		Accessory json.RawMessage   `json:"accessory"`
		Element   json.RawMessage   `json:"element"`
		Label     struct{ Text string }
		Optional  bool
	}
	if len(blocks) == 0 || json.Unmarshal(blocks, &list) != nil {
		return nil
	}
	var out []Element
	for _, b := range list {
		found := b.Elements
		if b.Type != "actions" {
			found = nil
		}
		found = append(found, b.Accessory, b.Element)
		for _, raw := range found {
			var e Element
			if len(raw) == 0 || json.Unmarshal(raw, &e) != nil || e.ActionID == "" {
				continue
			}
			e.BlockID, e.Label, e.Optional = b.BlockID, b.Label.Text, b.Optional
			out = append(out, e)
		}
	}
	return out
}

// Button finds a button by the start of its label.
func Button(blocks json.RawMessage, label string) (Element, bool) {
	for _, e := range Elements(blocks) {
		if e.Type == "button" && strings.HasPrefix(e.Text.Text, label) {
			return e, true
		}
	}
	return Element{}, false
}

// Input finds an input whose label or block id starts with name.
func Input(blocks json.RawMessage, name string) (Element, bool) {
	for _, e := range Elements(blocks) {
		if e.Type != "button" && (strings.HasPrefix(strings.ToLower(e.Label), strings.ToLower(name)) || strings.HasPrefix(e.BlockID, name)) {
			return e, true
		}
	}
	return Element{}, false
}
