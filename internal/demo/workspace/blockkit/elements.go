package blockkit

import (
	"strconv"
	"strings"
	"time"

	"countersign/internal/demo/workspace/wire"
)

// place is the kind of block that holds an element.
type place int

const (
	inSection place = 1 << iota
	inActions
	inInput
	inContextActions
)

// elementRule defines where an element is allowed, which fields it has and how they are checked.
type elementRule struct {
	in     place
	fields []string
	check  func(c *checker, at string, e object)
}

// Fields that several kinds of elements have.
const (
	hasPlaceholder = "placeholder"
	hasConfirm     = "confirm"
	hasFocus       = "focus_on_load"
	hasDispatch    = "dispatch_action_config"
)

var elementRules = map[string]elementRule{
	"button": {inSection | inActions, []string{
		"text", "url", "value", "style", hasConfirm, "accessibility_label", "agent_prompt", "agent_prompt_display", "visible_to_user_ids",
	}, (*checker).button},
	"workflow_button": {inSection | inActions, nil, func(c *checker, at string, e object) { c.plain(at+"/text", e["text"], maxButtonText, true) }},
	"overflow": {inSection | inActions, []string{"options", hasConfirm}, func(c *checker, at string, e object) {
		c.options(at+"/options", e["options"], maxOverflowOptions, inMenu)
	}},
	"image": {inSection, []string{"image_url", "alt_text", "slack_file"}, func(c *checker, at string, e object) { c.image(at, e) }},
	"datepicker": {inSection | inActions | inInput, []string{hasPlaceholder, hasConfirm, hasFocus, "initial_date"}, func(c *checker, at string, e object) {
		c.format(at+"/initial_date", e["initial_date"], isDate, "YYYY-MM-DD")
	}},
	"timepicker": {inSection | inActions | inInput, []string{hasPlaceholder, hasConfirm, hasFocus, "initial_time", "timezone"}, func(c *checker, at string, e object) {
		c.format(at+"/initial_time", e["initial_time"], isTime, "HH:mm")
	}},
	"datetimepicker": {inActions | inInput, []string{hasConfirm, hasFocus, "initial_date_time"}, func(c *checker, at string, e object) {
		if n, ok := wire.Whole(e["initial_date_time"]); e["initial_date_time"] != nil && (!ok || n < 1e9 || n > 9999999999) {
			c.report(at+"/initial_date_time", "must be a Unix timestamp of 10 digits")
		}
	}},
	"checkboxes":       {inSection | inActions | inInput, []string{"options", "initial_options", hasConfirm, hasFocus, "visible_to_user_ids"}, (*checker).choiceList},
	"radio_buttons":    {inSection | inActions | inInput, []string{"options", "initial_option", hasConfirm, hasFocus}, (*checker).choiceList},
	"plain_text_input": {inInput, []string{hasPlaceholder, hasFocus, hasDispatch, "initial_value", "multiline", "min_length", "max_length"}, (*checker).textInput},
	"rich_text_input":  {inInput, []string{hasPlaceholder, hasFocus, hasDispatch, "initial_value", "min_lines", "max_lines"}, nil},
	"email_text_input": {inInput, []string{hasPlaceholder, hasFocus, hasDispatch, "initial_value"}, nil},
	"url_text_input":   {inInput, []string{hasPlaceholder, hasFocus, hasDispatch, "initial_value"}, nil},
	"number_input":     {inInput, []string{hasPlaceholder, hasFocus, hasDispatch, "initial_value", "is_decimal_allowed", "min_value", "max_value"}, (*checker).numberInput},
	"file_input":       {inInput, []string{"filetypes", "max_files"}, (*checker).fileInput},
	"feedback_buttons": {inContextActions, []string{"positive_button", "negative_button"}, (*checker).feedback},
	"icon_button":      {inContextActions, []string{"icon", "text", "value", hasConfirm, "accessibility_label", "visible_to_user_ids"}, (*checker).iconButton},
}

// element checks one element. The parameter where is the kind of block that contains the element.
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
	if e["visible_to_user_ids"] != nil {
		c.list(at+"/visible_to_user_ids", e["visible_to_user_ids"], 1, maxVisibleTo)
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
	c.style(at+"/style", e["style"])
}

func (c *checker) style(at string, v any) {
	if v != nil && v != "primary" && v != "danger" {
		c.report(at, "must be primary or danger")
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
	c.style(at+"/style", o["style"])
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
		c.str(at+"/"+side+"/accessibility_label", b["accessibility_label"], maxButtonText, false)
	}
}

func (c *checker) iconButton(at string, e object) {
	c.plain(at+"/text", e["text"], maxButtonText, true)
	c.str(at+"/value", e["value"], maxButtonValue, false)
	c.str(at+"/accessibility_label", e["accessibility_label"], maxButtonText, false)
	if e["icon"] != "trash" {
		c.report(at+"/icon", "must be trash")
	}
}

// fileInput checks a file input, which only modals may have.
func (c *checker) fileInput(at string, e object) {
	if c.surface != onModal {
		c.report(at+"/type", "unsupported type: file_input")
	}
	c.whole(at+"/max_files", e["max_files"], 1, maxFiles)
}

func (c *checker) textInput(at string, e object) {
	c.str(at+"/initial_value", e["initial_value"], maxInputText, false)
	for _, key := range []string{"min_length", "max_length"} {
		if e[key] == nil {
			continue
		}
		if n, ok := wire.Whole(e[key]); !ok || n < 0 || n > maxInputText || (key == "max_length" && n < 1) {
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

func hasLayout(layout, s string) bool {
	_, err := time.Parse(layout, s)
	return err == nil
}

func isDate(s string) bool { return hasLayout("2006-01-02", s) }

func isTime(s string) bool { return hasLayout("15:04", s) }

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && !strings.ContainsAny(s, "xXpPnN_")
}
