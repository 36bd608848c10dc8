package workspace

import (
	"encoding/json"
	"slices"
	"strings"
)

// choices is what somebody can choose beyond an element's own options.
type choices struct {
	offered []object                                // what an external select was last given
	find    func(field, name string) (string, bool) // the id of a person or channel, as who chooses may name them
}

// choose turns what a person entered into the element's state. value is a string, a
// list of strings, a number, or the state as Slack writes it.
func choose(e object, value any, among choices) (object, *apiError) {
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
	if !list {
		if items, ok := value.([]any); ok && len(items) == 1 {
			value = items[0]
		}
		v, failed := chooseOne(e, kind, field, value, among)
		out[field] = v
		return out, failed
	}
	items, ok := value.([]any)
	if !ok {
		items = []any{value}
	}
	if most, limited := wholeNumber(e["max_selected_items"]); limited && len(items) > most {
		return nil, refuse("invalid_value")
	}
	chosen := []any{}
	for _, item := range items {
		v, failed := chooseOne(e, kind, field, item, among)
		if failed != nil {
			return nil, failed
		}
		chosen = append(chosen, v)
	}
	out[field] = chosen
	return out, nil
}

// chooseOne is one value of an element, as its state has it.
func chooseOne(e object, kind, field string, v any, among choices) (any, *apiError) {
	switch field {
	case "selected_option", "selected_options":
		return chosenOption(e, kind, v, among.offered)
	case "selected_date_time":
		if n, ok := wholeNumber(numberOf(v)); ok {
			return n, nil
		}
		return nil, refuse("invalid_value")
	case "rich_text_value":
		return chosenRichText(v)
	case "files":
		if o, ok := v.(object); ok {
			return o, nil
		}
	}
	switch v := v.(type) {
	case string:
		return chosenText(kind, field, v, among)
	case json.Number:
		return chosenText(kind, field, v.String(), among)
	}
	return nil, refuse("invalid_value")
}

// chosenText refuses what the widget of such an element cannot produce; people and
// channels become their ids.
func chosenText(kind, field, v string, among choices) (any, *apiError) {
	id, ok := v, true
	switch {
	case strings.HasPrefix(field, "selected_user"), strings.HasPrefix(field, "selected_channel"), strings.HasPrefix(field, "selected_conversation"):
		id, ok = among.find(field, v)
	case kind == "datepicker":
		ok = isDate(v)
	case kind == "timepicker":
		ok = isTime(v)
	}
	if !ok {
		return nil, refuse("invalid_value")
	}
	return id, nil
}

func chosenRichText(v any) (any, *apiError) {
	switch v := v.(type) {
	case object:
		return v, nil
	case string:
		return richText(v), nil
	}
	return nil, refuse("invalid_value")
}

// choicesOf is what a person can choose in an element: of people everybody who has an
// account that works, of channels those that they see.
func (s *Server) choicesOf(u *user, where acted, target placed) choices {
	return choices{offered: s.offered[offerKey(u.ID, where, target)], find: func(field, name string) (string, bool) {
		if strings.HasPrefix(field, "selected_user") {
			other, failed := s.anyone(name)
			if failed != nil || other.Deleted {
				return "", false
			}
			return other.ID, true
		}
		ch := s.channels[name]
		if ch == nil {
			ch = s.channelNamed(strings.TrimPrefix(name, "#"))
		}
		if ch == nil || !s.sees(u, ch) || (strings.HasPrefix(field, "selected_channel") && ch.kind() != "channel") {
			return "", false
		}
		return ch.ID, true
	}}
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
