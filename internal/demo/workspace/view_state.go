package workspace

import (
	"slices"
	"strings"
)

// fill sets the state of every input: what was entered before where it still fits, and
// the initial value otherwise.
func (v *view) fill(before map[string]map[string]object) {
	v.state = map[string]map[string]object{}
	for _, p := range interactive(v.Blocks) {
		action, _ := p.element["action_id"].(string)
		kind, _ := p.element["type"].(string)
		if !stateful(kind) {
			continue
		}
		state := before[p.blockID][action]
		if state == nil || state["type"] != kind {
			state = initialState(p.element)
		}
		v.set(p.blockID, action, state)
	}
}

func (v *view) set(block, action string, state object) {
	if v.state[block] == nil {
		v.state[block] = map[string]object{}
	}
	v.state[block][action] = state
}

// stateful tells elements that hold a value from those that are only pressed.
func stateful(kind string) bool {
	return !slices.Contains([]string{"button", "workflow_button", "overflow", "image", "feedback_buttons", "icon_button"}, kind)
}

// valueField is where an element's state keeps its value; list tells whether it is one.
func valueField(kind string) (field string, list bool) {
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

// initialState is the state of an element that nobody has touched.
func initialState(e object) object {
	kind, _ := e["type"].(string)
	field, list := valueField(kind)
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
