package render

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"countersign/bot/slackapi"

	"github.com/go-json-experiment/json/jsontext"
)

// asChoice makes the field a menu, if every value is a word or a number that fits in one.
func (f field) asChoice(values []json.RawMessage, titles []string) field {
	f.kind = fieldChoice
	if !f.offer(values, titles) {
		return f.asJSON()
	}
	for i, v := range values {
		if f.present && sameValue(v, f.stored) {
			f.initial = strconv.Itoa(i)
		}
	}
	if f.present && f.initial == "" {
		return f.asJSON()
	}
	return f
}

// menued reports whether the field is a menu.
func (f field) menued() bool { return f.kind == fieldChoice || f.kind == fieldMany }

// offer sets the options of a menu. It reports whether each value is a word or a number that fits.
func (f *field) offer(values []json.RawMessage, titles []string) bool {
	if len(values) == 0 || len(values) > slackapi.MaxOptions {
		return false
	}
	f.choices = values
	if len(titles) == len(values) {
		f.titles = titles
	}
	for i, v := range values {
		if c := f.choice(i); choiceText(v) == "" || Width(c) > slackapi.MaxOptionText || v[0] == '{' || v[0] == '[' {
			return false
		}
	}
	return true
}

// choice returns the label of an option: its title in the schema, and the value that is sent.
func (f field) choice(i int) string {
	value := choiceText(f.choices[i])
	if f.titles == nil || f.titles[i] == "" || OneLine(f.titles[i]) == value {
		return value
	}
	return OneLine(f.titles[i]) + " (" + value + ")"
}

// consts returns the values of a list of alternatives, or nil if an alternative is more than a single value.
func consts(alternatives json.RawMessage) (values []json.RawMessage, titles []string) {
	var list []struct {
		Const json.RawMessage `json:"const"`
		Title string          `json:"title"`
	}
	if json.Unmarshal(alternatives, &list) != nil {
		return nil, nil
	}
	for _, one := range list {
		if one.Const == nil {
			return nil, nil
		}
		values, titles = append(values, one.Const), append(titles, one.Title)
	}
	return values, titles
}

// asMany makes the field a menu with several choices, if the items of the list have such values.
func (f field) asMany(items json.RawMessage) field {
	var p property
	if json.Unmarshal(items, &p) != nil {
		return f.asJSON()
	}
	values, titles := p.Enum, p.EnumNames
	if values == nil && p.OneOf != nil {
		values, titles = consts(p.OneOf)
	} else if values == nil && p.AnyOf != nil {
		values, titles = consts(p.AnyOf)
	}
	f.kind = fieldMany
	if !f.offer(values, titles) {
		return f.asJSON()
	}
	var stored []json.RawMessage
	if f.present && json.Unmarshal(f.stored, &stored) != nil {
		return f.asJSON()
	}
	var chosen []string
	for i, v := range values {
		if slices.ContainsFunc(stored, func(s json.RawMessage) bool { return sameValue(s, v) }) {
			chosen = append(chosen, strconv.Itoa(i))
		}
	}
	if len(chosen) != len(stored) {
		return f.asJSON() // the stored list has another value, or a duplicate
	}
	f.initial = strings.Join(chosen, ",")
	return f
}

func sameValue(a, b []byte) bool {
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	return x.Canonicalize() == nil && y.Canonicalize() == nil && bytes.Equal(x, y)
}

// choiceText returns a menu value as text.
func choiceText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return Visible(s)
	}
	return Visible(string(v))
}
