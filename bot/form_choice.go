package bot

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// asChoice is a menu, where every value is a word or a number that fits in one.
func (f field) asChoice(values []json.RawMessage, titles []string) field {
	f.kind = fieldChoice
	if !f.offer(values, titles) {
		return f.asJSON()
	}
	for i, v := range values {
		if f.present && sameValue(v, f.stored) {
			f.initial = itoa(i)
		}
	}
	if f.present && f.initial == "" {
		return f.asJSON()
	}
	return f
}

// menued reports whether a field is a menu.
func (f field) menued() bool { return f.kind == fieldChoice || f.kind == fieldMany }

// offer makes values what a menu offers. It reports whether each of them is a word or a number that fits in one.
func (f *field) offer(values []json.RawMessage, titles []string) bool {
	if len(values) == 0 || len(values) > maxOptions {
		return false
	}
	f.choices = values
	if len(titles) == len(values) {
		f.titles = titles
	}
	for i, v := range values {
		if c := f.choice(i); choiceText(v) == "" || width(c) > maxOptionText || v[0] == '{' || v[0] == '[' {
			return false
		}
	}
	return true
}

// choice is a value of a menu as it is shown: what the schema calls it, and the value itself, which is what is sent.
func (f field) choice(i int) string {
	value := choiceText(f.choices[i])
	if f.titles == nil || f.titles[i] == "" || oneLine(f.titles[i]) == value {
		return value
	}
	return oneLine(f.titles[i]) + " (" + value + ")"
}

// consts are the values of a list of alternatives, where each is one value; nil: they are more than that.
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

// asMany is a menu of which several can be chosen, where the items of a list are such values.
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
			chosen = append(chosen, itoa(i))
		}
	}
	if len(chosen) != len(stored) {
		return f.asJSON() // it holds others, or one twice
	}
	f.initial = strings.Join(chosen, ",")
	return f
}

func sameValue(a, b []byte) bool {
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	return x.Canonicalize() == nil && y.Canonicalize() == nil && bytes.Equal(x, y)
}

// choiceText is a value of a menu as it is shown.
func choiceText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return Visible(s)
	}
	return Visible(string(v))
}
