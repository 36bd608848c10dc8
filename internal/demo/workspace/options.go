package workspace

import (
	"fmt"
	"reflect"
	"slices"
)

// choiceList checks checkboxes and radio buttons.
func (c *checker) choiceList(at string, e object) {
	c.options(at+"/options", e["options"], maxChoices, inChoices)
	c.initial(at, e, optionsOf(e))
}

// initial checks that what is chosen at first can be chosen at all: it is one of the
// options, down to its text.
func (c *checker) initial(at string, e object, options []object) {
	offered := func(v any) bool {
		return slices.ContainsFunc(options, func(o object) bool { return reflect.DeepEqual(any(o), v) })
	}
	if first := e["initial_option"]; first != nil && !offered(first) {
		c.report(at+"/initial_option", "initial_option must match one of the options")
	}
	if e["initial_options"] == nil {
		return
	}
	for i, first := range c.list(at+"/initial_options", e["initial_options"], 1, -1) {
		if !offered(first) {
			c.report(fmt.Sprintf("%s/initial_options/%d", at, i), "initial_options must match the options")
		}
	}
}

// optionPlace is where options stand. Those of checkboxes and radio buttons may be
// mrkdwn, those of an overflow menu may lead to a web page.
type optionPlace int

const (
	inSelect optionPlace = iota
	inMenu
	inChoices
)

// options checks a list of options.
func (c *checker) options(at string, v any, most int, where optionPlace) {
	fields := []string{"text", "value", "description"}
	if where == inMenu {
		fields = append(fields, "url")
	}
	for i, item := range c.list(at, v, 1, most) {
		pointer := fmt.Sprintf("%s/%d", at, i)
		o, ok := item.(object)
		if !ok {
			c.report(pointer, "must be an object")
			continue
		}
		c.only(pointer, o, fields)
		c.optionText(pointer+"/text", o["text"], where, true)
		c.optionText(pointer+"/description", o["description"], where, false)
		c.str(pointer+"/value", o["value"], maxOptionValue, true)
		c.str(pointer+"/url", o["url"], maxURL, false)
	}
}

func (c *checker) optionText(at string, v any, where optionPlace, required bool) {
	if where == inChoices && v != nil {
		c.textObject(at, v, maxOptionText)
		return
	}
	c.plain(at, v, maxOptionText, required)
}

// optionsOf are all options of a select, groups flattened.
func optionsOf(e object) []object {
	var out []object
	add := func(list any) {
		items, _ := list.([]any)
		for _, item := range items {
			if o, ok := item.(object); ok {
				out = append(out, o)
			}
		}
	}
	add(e["options"])
	groups, _ := e["option_groups"].([]any)
	for _, g := range groups {
		if group, ok := g.(object); ok {
			add(group["options"])
		}
	}
	return out
}
