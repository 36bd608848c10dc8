package workspace

import (
	"fmt"
	"slices"
)

func (c *checker) staticSelect(at string, e object) {
	groups, grouped := e["option_groups"]
	if !grouped {
		c.options(at+"/options", e["options"], 1, maxOptions, true)
		c.initial(at, e, optionsOf(e))
		return
	}
	if e["options"] != nil {
		c.report(at, "options and option_groups cannot be used together")
	}
	for i, g := range c.list(at+"/option_groups", groups, 1, maxOptions) {
		pointer := fmt.Sprintf("%s/option_groups/%d", at, i)
		group, ok := g.(object)
		if !ok {
			c.report(pointer, "must be an object")
			continue
		}
		c.plain(pointer+"/label", group["label"], maxOptionText, true)
		c.options(pointer+"/options", group["options"], 1, maxOptions, true)
	}
	c.initial(at, e, optionsOf(e))
}

// initial checks that what is chosen at first can be chosen at all.
func (c *checker) initial(at string, e object, options []object) {
	offered := func(v any) bool {
		chosen, _ := v.(object)
		return slices.ContainsFunc(options, func(o object) bool { return o["value"] == chosen["value"] })
	}
	if first := e["initial_option"]; first != nil && !offered(first) {
		c.report(at+"/initial_option", "initial_option must match one of the options")
	}
	list, _ := e["initial_options"].([]any)
	for i, first := range list {
		if !offered(first) {
			c.report(fmt.Sprintf("%s/initial_options/%d", at, i), "initial_options must match the options")
		}
	}
}

// options checks a list of options. Those of checkboxes and radio buttons may be mrkdwn.
func (c *checker) options(at string, v any, least, most int, plainOnly bool) {
	for i, item := range c.list(at, v, least, most) {
		pointer := fmt.Sprintf("%s/%d", at, i)
		o, ok := item.(object)
		if !ok {
			c.report(pointer, "must be an object")
			continue
		}
		c.only(pointer, o, []string{"text", "value", "description", "url"})
		if plainOnly {
			c.plain(pointer+"/text", o["text"], maxOptionText, true)
		} else if o["text"] == nil {
			c.report(pointer+"/text", "missing required field: text")
		} else {
			c.textObject(pointer+"/text", o["text"], maxOptionText)
		}
		c.str(pointer+"/value", o["value"], maxOptionValue, true)
		if description := o["description"]; description != nil {
			c.textObject(pointer+"/description", description, maxOptionText)
		}
	}
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
