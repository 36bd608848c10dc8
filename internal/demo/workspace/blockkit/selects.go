package blockkit

import (
	"fmt"
	"reflect"
	"slices"

	"countersign/internal/demo/workspace/wire"
)

// selectFields are the fields of select menus for one choice and for several choices, without the fields that all menus
// share.
var selectFields = map[string]struct{ one, several []string }{
	"static":   {[]string{"options", "option_groups", "initial_option"}, []string{"options", "option_groups", "initial_options"}},
	"external": {[]string{"min_query_length", "initial_option"}, []string{"min_query_length", "initial_options"}},
	"users":    {[]string{"initial_user"}, []string{"initial_users"}},
	"channels": {[]string{"initial_channel", "response_url_enabled"}, []string{"initial_channels"}},
	"conversations": {
		[]string{"initial_conversation", "default_to_current_conversation", "response_url_enabled", "filter"},
		[]string{"initial_conversations", "default_to_current_conversation", "filter"},
	},
}

func init() {
	shared := []string{hasPlaceholder, hasConfirm, hasFocus}
	for source, fields := range selectFields {
		check := (*checker).selectMenu
		if source == "static" {
			check = (*checker).staticSelect
		}
		where := inSection | inActions | inInput
		elementRules[source+"_select"] = elementRule{where, append(fields.one, shared...), check}
		elementRules["multi_"+source+"_select"] = elementRule{where, append(append(fields.several, "max_selected_items"), shared...), check}
	}
}

// staticSelect checks a select with a fixed list of options.
func (c *checker) staticSelect(at string, e object) {
	c.selectMenu(at, e)
	groups, grouped := e["option_groups"]
	if !grouped {
		c.options(at+"/options", e["options"], maxOptions, inSelect)
		c.initial(at, e, Options(e))
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
		c.options(pointer+"/options", group["options"], maxOptions, inSelect)
	}
	c.initial(at, e, Options(e))
}

// selectMenu checks the fields that all selects share: the maximum number of choices, and the initial choices, which
// must exist.
func (c *checker) selectMenu(at string, e object) {
	most, limited := wire.Whole(e["max_selected_items"])
	if e["max_selected_items"] != nil && (!limited || most < 1) {
		c.report(at+"/max_selected_items", "must be greater than or equal to 1")
		limited = false
	}
	for _, what := range []string{"user", "channel", "conversation"} {
		if first := e["initial_"+what]; first != nil {
			c.exists(at+"/initial_"+what, what, first)
		}
		if e["initial_"+what+"s"] == nil {
			continue
		}
		list := c.list(at+"/initial_"+what+"s", e["initial_"+what+"s"], 0, -1)
		if limited && len(list) > most {
			c.report(at+"/initial_"+what+"s", "no more than %d items allowed", most)
		}
		for i, first := range list {
			c.exists(fmt.Sprintf("%s/initial_%ss/%d", at, what, i), what, first)
		}
	}
	if first, _ := e["initial_options"].([]any); limited && len(first) > most {
		c.report(at+"/initial_options", "no more than %d items allowed", most)
	}
}

// exists checks the id of a user, a channel or a conversation.
func (c *checker) exists(at, what string, v any) {
	id, ok := v.(string)
	if !ok {
		c.report(at, "must be a string")
	} else if !c.known(what, id) {
		c.report(at, "invalid %s: %s", what, id)
	}
}

// choiceList checks checkboxes and radio buttons.
func (c *checker) choiceList(at string, e object) {
	c.options(at+"/options", e["options"], maxChoices, inChoices)
	c.initial(at, e, Options(e))
}

// initial checks that the initial choice equals one of the options, including its text.
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

// optionPlace is the kind of element that has the options. Options may have mrkdwn only in checkboxes and radio
// buttons, and a URL only in overflow menus.
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

// CheckSuggestions returns the problems of an app's answer to an external select: options, or option_groups.
func CheckSuggestions(answer object) []string {
	c := checker{surface: onModal | onHome}
	if groups, given := answer["option_groups"]; given {
		c.staticSelect("", object{"option_groups": groups})
	} else if list, given := answer["options"]; given {
		if items, _ := list.([]any); len(items) > 0 { // an empty list is allowed here
			c.options("/options", list, maxOptions, inSelect)
		}
	}
	return c.problems
}

// Options returns all options of an element, including options in groups.
func Options(e object) []object {
	out := objects(e["options"])
	for _, group := range objects(e["option_groups"]) {
		out = append(out, objects(group["options"])...)
	}
	return out
}
