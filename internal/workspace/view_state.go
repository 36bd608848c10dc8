package workspace

import (
	"encoding/json"
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

// choose turns what a person entered into the element's state. value is a string, a
// list of strings, a number, or the state as Slack writes it. offered are the options
// of an external select.
func choose(e object, value any, offered []object) (object, *apiError) {
	kind, _ := e["type"].(string)
	field, list := valueField(kind)
	out := object{"type": kind}
	if state, ok := value.(object); ok {
		inner, has := state[field]
		if !has {
			return nil, refuse("invalid_value")
		}
		value = inner
	}
	if value == nil || value == "" {
		out[field] = nil
		if list {
			out[field] = []any{}
		}
		return out, nil
	}
	one := func(v any) (any, *apiError) {
		switch field {
		case "selected_option", "selected_options":
			return chosenOption(e, kind, v, offered)
		case "selected_date_time":
			if n, ok := wholeNumber(numberOf(v)); ok {
				return n, nil
			}
			return nil, refuse("invalid_value")
		case "rich_text_value":
			if o, ok := v.(object); ok {
				return o, nil
			}
			text, ok := v.(string)
			if !ok {
				return nil, refuse("invalid_value")
			}
			return richText(text), nil
		case "files":
			if o, ok := v.(object); ok {
				return o, nil
			}
		}
		switch v := v.(type) {
		case string:
			return v, checkEntered(kind, v)
		case json.Number:
			return v.String(), checkEntered(kind, v.String())
		}
		return nil, refuse("invalid_value")
	}
	if !list {
		if items, ok := value.([]any); ok && len(items) == 1 {
			value = items[0]
		}
		v, failed := one(value)
		out[field] = v
		return out, failed
	}
	items, ok := value.([]any)
	if !ok {
		items = []any{value}
	}
	chosen := []any{}
	for _, item := range items {
		v, failed := one(item)
		if failed != nil {
			return nil, failed
		}
		chosen = append(chosen, v)
	}
	out[field] = chosen
	return out, nil
}

// chosenOption finds the option that has the value, or the text, that a person gave.
func chosenOption(e object, kind string, v any, offered []object) (any, *apiError) {
	options := optionsOf(e)
	if strings.Contains(kind, "external") {
		options = offered
		for _, first := range initialOptions(e) {
			options = append(slices.Clip(options), first)
		}
	}
	wanted := v
	if o, ok := v.(object); ok {
		wanted = o["value"]
	}
	for _, o := range options {
		if o["value"] == wanted {
			return o, nil
		}
	}
	for _, o := range options {
		if text, ok := o["text"].(object); ok && text["text"] == wanted {
			return o, nil
		}
	}
	return nil, refuse("invalid_value")
}

func initialOptions(e object) []object {
	var out []object
	if o, ok := e["initial_option"].(object); ok {
		out = append(out, o)
	}
	list, _ := e["initial_options"].([]any)
	for _, item := range list {
		if o, ok := item.(object); ok {
			out = append(out, o)
		}
	}
	return out
}

// checkEntered refuses what the widget of such an element cannot produce.
func checkEntered(kind, v string) *apiError {
	ok := true
	switch kind {
	case "datepicker":
		ok = isDate(v)
	case "timepicker":
		ok = isTime(v)
	}
	if !ok {
		return refuse("invalid_value")
	}
	return nil
}

func numberOf(v any) any {
	if text, ok := v.(string); ok {
		return json.Number(text)
	}
	return v
}

// richText is a rich text block with one plain paragraph.
func richText(text string) object {
	return object{"type": "rich_text", "elements": []any{object{
		"type": "rich_text_section", "elements": []any{object{"type": "text", "text": text}},
	}}}
}
