package blockkit

import (
	"encoding/json"
	"slices"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// Choices are the values that a person can choose in an element in addition to the element's own options.
type Choices struct {
	// Offered holds the options that the app sent last for an external select.
	Offered []object
	// Find returns the id of a person or a channel from the name that a person entered. The parameter field is the name
	// of the state's field (see ValueField).
	Find func(field, name string) (string, bool)
}

// Choose returns the state of an element after a person entered a value. The value is a string, a list of strings, a
// number, or the state as Slack writes it. Choose returns false if the element's widget cannot produce the value.
func Choose(e object, value any, among Choices) (object, bool) {
	kind, _ := e["type"].(string)
	field, list := ValueField(kind)
	out := object{"type": kind}
	if state, ok := value.(object); ok {
		inner, has := state[field]
		if !has {
			return nil, false
		}
		value = inner
	}
	if value == nil || value == "" {
		out[field] = nil
		if list {
			out[field] = []any{}
		}
		return out, true
	}
	if !list {
		if items, ok := value.([]any); ok && len(items) == 1 {
			value = items[0]
		}
		v, ok := chooseOne(e, kind, field, value, among)
		out[field] = v
		return out, ok
	}
	items, ok := value.([]any)
	if !ok {
		items = []any{value}
	}
	if most, limited := wire.Whole(e["max_selected_items"]); limited && len(items) > most {
		return nil, false
	}
	chosen := []any{}
	for _, item := range items {
		v, ok := chooseOne(e, kind, field, item, among)
		if !ok {
			return nil, false
		}
		chosen = append(chosen, v)
	}
	out[field] = chosen
	return out, true
}

// chooseOne returns one value in the form that it has in the state.
func chooseOne(e object, kind, field string, v any, among Choices) (any, bool) {
	switch field {
	case "selected_option", "selected_options":
		return chosenOption(e, kind, v, among.Offered)
	case "selected_date_time":
		if text, ok := v.(string); ok {
			v = json.Number(text)
		}
		return valid(wire.Whole(v))
	case "rich_text_value":
		return chosenRichText(v)
	case "files":
		if o, ok := v.(object); ok {
			return o, true
		}
	}
	switch v := v.(type) {
	case string:
		return chosenText(kind, field, v, among)
	case json.Number:
		return chosenText(kind, field, v.String(), among)
	}
	return nil, false
}

// chosenText checks a text. Names of people and channels are replaced by their ids.
func chosenText(kind, field, v string, among Choices) (any, bool) {
	switch {
	case strings.HasPrefix(field, "selected_user"), strings.HasPrefix(field, "selected_channel"), strings.HasPrefix(field, "selected_conversation"):
		return valid(among.Find(field, v))
	case kind == "datepicker":
		return valid(v, isDate(v))
	case kind == "timepicker":
		return valid(v, isTime(v))
	}
	return v, true
}

// valid returns v if ok is true, and nil otherwise.
func valid[T any](v T, ok bool) (any, bool) {
	if !ok {
		return nil, false
	}
	return v, true
}

func chosenRichText(v any) (any, bool) {
	switch v := v.(type) {
	case object:
		return v, true
	case string:
		return RichText(v), true
	}
	return nil, false
}

// chosenOption finds an option by its value or its text.
func chosenOption(e object, kind string, v any, offered []object) (any, bool) {
	options := Options(e)
	if strings.Contains(kind, "external") {
		options = append(slices.Clip(offered), initialOptions(e)...)
	}
	wanted := v
	if o, ok := v.(object); ok {
		wanted = o["value"]
	}
	for _, o := range options {
		if o["value"] == wanted {
			return o, true
		}
	}
	for _, o := range options {
		if text, ok := o["text"].(object); ok && text["text"] == wanted {
			return o, true
		}
	}
	return nil, false
}

func initialOptions(e object) []object {
	return append(objects([]any{e["initial_option"]}), objects(e["initial_options"])...)
}
