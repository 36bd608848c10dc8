package workspace

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

var elementRules = map[string]elementRule{
	"button":          {inSection | inActions, []string{"text", "url", "value", "style", hasConfirm, "accessibility_label", "agent_prompt", "agent_prompt_display", "visible_to_user_ids"}, (*checker).button},
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
		if n, ok := wholeNumber(e["initial_date_time"]); e["initial_date_time"] != nil && (!ok || n < 1e9 || n > 9999999999) {
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
	if e["visible_to_user_ids"] != nil {
		c.list(at+"/visible_to_user_ids", e["visible_to_user_ids"], 1, maxVisibleTo)
	}
	if rule.check != nil {
		rule.check(c, at, e)
	}
}
