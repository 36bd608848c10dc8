package blockkit

import (
	"maps"
	"slices"
	"strings"
)

// State is the current value of each input, by block_id and action_id, as Slack writes it in state.values.
type State map[string]map[string]object

// NewState returns the state of all inputs of blocks. If the parameter "before" has a value for an input of the same
// kind, the input keeps this value. Otherwise the input has its initial value.
func NewState(blocks []any, before State) State {
	out := State{}
	for _, p := range Interactive(blocks) {
		if !Stateful(p.Kind()) {
			continue
		}
		value := before[p.BlockID][p.ActionID()]
		if value == nil || value["type"] != p.Kind() {
			value = initialState(p.Element)
		}
		out.Set(p, value)
	}
	return out
}

// Set changes the value of one input.
func (s State) Set(p Placed, value object) {
	if s[p.BlockID] == nil {
		s[p.BlockID] = map[string]object{}
	}
	s[p.BlockID][p.ActionID()] = value
}

// Clone returns a copy. Later calls to Set do not change the copy.
func (s State) Clone() State {
	out := make(State, len(s))
	for block, actions := range s {
		out[block] = maps.Clone(actions)
	}
	return out
}

// Stateful reports whether a kind of element has a value. People can only press an element without a value.
func Stateful(kind string) bool {
	return !slices.Contains([]string{"button", "workflow_button", "overflow", "image", "feedback_buttons", "icon_button"}, kind)
}

// The state of an element holds the element's value in one field. ValueField returns the name of this field for a kind
// of element. The result list is true if the value is a list.
func ValueField(kind string) (field string, list bool) {
	switch kind {
	case "static_select", "external_select", "radio_buttons", "overflow":
		return "selected_option", false
	case "multi_static_select", "multi_external_select", "checkboxes":
		return "selected_options", true
	case "users_select":
		return "selected_user", false
	case "multi_users_select":
		return "selected_users", true
	case "conversations_select":
		return "selected_conversation", false
	case "multi_conversations_select":
		return "selected_conversations", true
	case "channels_select":
		return "selected_channel", false
	case "multi_channels_select":
		return "selected_channels", true
	case "datepicker":
		return "selected_date", false
	case "timepicker":
		return "selected_time", false
	case "datetimepicker":
		return "selected_date_time", false
	case "rich_text_input":
		return "rich_text_value", false
	case "file_input":
		return "files", true
	}
	return "value", false
}

// initialState returns the state of an untouched element.
func initialState(e object) object {
	kind, _ := e["type"].(string)
	field, list := ValueField(kind)
	out := object{"type": kind}
	first := e["initial_"+strings.TrimPrefix(field, "selected_")]
	if first == nil && list {
		first = []any{}
	}
	out[field] = first
	if kind == "timepicker" && e["timezone"] != nil {
		out["timezone"] = e["timezone"]
	}
	return out
}
