package workspace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// place is where an element stands; each kind of element is allowed in some.
type place int

const (
	inSection place = 1 << iota
	inActions
	inInput
	inContextActions
)

// elementRule is blockRule for elements.
type elementRule struct {
	in     place
	fields []string
	check  func(c *checker, at string, e object)
}

// fields that several elements share
const (
	hasPlaceholder = "placeholder"
	hasConfirm     = "confirm"
	hasFocus       = "focus_on_load"
	hasDispatch    = "dispatch_action_config"
)

var selectFields = []string{
	hasPlaceholder, hasConfirm, hasFocus, "options", "option_groups", "initial_option", "initial_options", "initial_user",
	"initial_users", "initial_conversation", "initial_conversations", "initial_channel", "initial_channels",
	"default_to_current_conversation", "response_url_enabled", "filter", "min_query_length", "max_selected_items",
}

var elementRules = map[string]elementRule{
	"button":          {inSection | inActions, []string{"text", "url", "value", "style", hasConfirm, "accessibility_label", "agent_prompt", "agent_prompt_display", "visible_to_user_ids"}, (*checker).button},
	"workflow_button": {inSection | inActions, nil, func(c *checker, at string, e object) { c.plain(at+"/text", e["text"], maxButtonText, true) }},
	"overflow": {inSection | inActions, []string{"options", hasConfirm}, func(c *checker, at string, e object) {
		c.options(at+"/options", e["options"], 1, maxOverflowOptions, true)
	}},
	"image": {inSection, []string{"image_url", "alt_text", "slack_file"}, func(c *checker, at string, e object) { c.image(at, e) }},
	"datepicker": {inSection | inActions | inInput, []string{hasPlaceholder, hasConfirm, hasFocus, "initial_date"}, func(c *checker, at string, e object) {
		c.format(at+"/initial_date", e["initial_date"], isDate, "YYYY-MM-DD")
	}},
	"timepicker": {inSection | inActions | inInput, []string{hasPlaceholder, hasConfirm, hasFocus, "initial_time", "timezone"}, func(c *checker, at string, e object) {
		c.format(at+"/initial_time", e["initial_time"], isTime, "HH:mm")
	}},
	"datetimepicker":   {inActions | inInput, []string{hasConfirm, hasFocus, "initial_date_time"}, nil},
	"checkboxes":       {inSection | inActions | inInput, []string{"options", "initial_options", hasConfirm, hasFocus, "visible_to_user_ids"}, func(c *checker, at string, e object) { c.options(at+"/options", e["options"], 1, maxChoices, false) }},
	"radio_buttons":    {inSection | inActions | inInput, []string{"options", "initial_option", hasConfirm, hasFocus}, func(c *checker, at string, e object) { c.options(at+"/options", e["options"], 1, maxChoices, false) }},
	"plain_text_input": {inInput, []string{hasPlaceholder, hasFocus, hasDispatch, "initial_value", "multiline", "min_length", "max_length"}, (*checker).textInput},
	"rich_text_input":  {inInput, []string{hasPlaceholder, hasFocus, hasDispatch, "initial_value", "min_lines", "max_lines"}, nil},
	"email_text_input": {inInput, []string{hasPlaceholder, hasFocus, hasDispatch, "initial_value"}, nil},
	"url_text_input":   {inInput, []string{hasPlaceholder, hasFocus, hasDispatch, "initial_value"}, nil},
	"number_input":     {inInput, []string{hasPlaceholder, hasFocus, hasDispatch, "initial_value", "is_decimal_allowed", "min_value", "max_value"}, (*checker).numberInput},
	"file_input":       {inInput, []string{"filetypes", "max_files"}, nil},
	"feedback_buttons": {inContextActions, []string{"positive_button", "negative_button"}, (*checker).feedback},
	"icon_button":      {inContextActions, []string{"icon", "text", "value", hasConfirm, "accessibility_label", "visible_to_user_ids"}, func(c *checker, at string, e object) { c.plain(at+"/text", e["text"], maxButtonText, true) }},
}

func init() {
	for _, source := range []string{"static", "external", "users", "conversations", "channels"} {
		rule := elementRule{in: inSection | inActions | inInput, fields: selectFields}
		if source == "static" {
			rule.check = (*checker).staticSelect
		}
		elementRules[source+"_select"], elementRules["multi_"+source+"_select"] = rule, rule
	}
}

// element checks one element in its place.
func (c *checker) element(at string, v any, where place) {
	e, ok := v.(object)
	if !ok {
		if v == nil {
			c.report(at, "missing required field: %s", lastPart(at))
		} else {
			c.report(at, "must be an object")
		}
		return
	}
	kind, _ := e["type"].(string)
	rule, known := elementRules[kind]
	if !known || rule.in&where == 0 {
		c.report(at+"/type", "unsupported type: %s", kind)
		return
	}
	if rule.fields != nil {
		c.only(at, e, append([]string{"type", "action_id"}, rule.fields...))
	}
	if id := c.name(at+"/action_id", e["action_id"]); id != "" {
		if c.actionIDs[id] {
			c.report(at+"/action_id", "`action_id` \"%s\" already exists for element", id)
		}
		c.actionIDs[id] = true
	}
	c.plain(at+"/placeholder", e["placeholder"], maxPlaceholder, false)
	if confirm := e["confirm"]; confirm != nil {
		c.confirm(at+"/confirm", confirm)
	}
	if e["focus_on_load"] == true {
		if c.focused {
			c.report(at+"/focus_on_load", "only one element can be focused on load")
		}
		c.focused = true
	}
	if rule.check != nil {
		rule.check(c, at, e)
	}
}

func (c *checker) button(at string, e object) {
	c.plain(at+"/text", e["text"], maxButtonText, true)
	c.str(at+"/value", e["value"], maxButtonValue, false)
	c.str(at+"/url", e["url"], maxURL, false)
	c.str(at+"/accessibility_label", e["accessibility_label"], maxButtonText, false)
	if style := e["style"]; style != nil && style != "primary" && style != "danger" {
		c.report(at+"/style", "must be primary or danger")
	}
}

func (c *checker) confirm(at string, v any) {
	o, ok := v.(object)
	if !ok {
		c.report(at, "must be an object")
		return
	}
	c.only(at, o, []string{"title", "text", "confirm", "deny", "style"})
	c.plain(at+"/title", o["title"], maxConfirmTitle, false)
	if o["text"] == nil {
		c.report(at+"/text", "missing required field: text")
	} else {
		c.textObject(at+"/text", o["text"], maxConfirmText)
	}
	c.plain(at+"/confirm", o["confirm"], maxConfirmButton, false)
	c.plain(at+"/deny", o["deny"], maxConfirmButton, false)
	if style := o["style"]; style != nil && style != "primary" && style != "danger" {
		c.report(at+"/style", "must be primary or danger")
	}
}

func (c *checker) feedback(at string, e object) {
	for _, side := range []string{"positive_button", "negative_button"} {
		b, ok := e[side].(object)
		if !ok {
			c.report(at+"/"+side, "missing required field: %s", side)
			continue
		}
		c.plain(at+"/"+side+"/text", b["text"], maxButtonText, true)
		c.str(at+"/"+side+"/value", b["value"], maxButtonValue, true)
	}
}

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

func (c *checker) textInput(at string, e object) {
	c.str(at+"/initial_value", e["initial_value"], maxInputText, false)
	for _, key := range []string{"min_length", "max_length"} {
		if e[key] == nil {
			continue
		}
		if n, ok := wholeNumber(e[key]); !ok || n < 0 || n > maxInputText || (key == "max_length" && n < 1) {
			c.report(at+"/"+key, "must be less than %d", maxInputText+1)
		}
	}
}

func (c *checker) numberInput(at string, e object) {
	if _, ok := e["is_decimal_allowed"].(bool); !ok {
		c.report(at+"/is_decimal_allowed", "missing required field: is_decimal_allowed")
	}
	for _, key := range []string{"initial_value", "min_value", "max_value"} {
		c.format(at+"/"+key, e[key], isNumber, "a number")
	}
}

// format checks an optional string of a certain form.
func (c *checker) format(at string, v any, is func(string) bool, form string) {
	if v == nil || v == "" {
		return
	}
	if text, ok := v.(string); !ok || !is(text) {
		c.report(at, "must be %s", form)
	}
}

func isDate(s string) bool { return matchesLayout("2006-01-02", s) }
func isTime(s string) bool { return matchesLayout("15:04", s) }

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && !strings.ContainsAny(s, "xXpPnN_")
}
