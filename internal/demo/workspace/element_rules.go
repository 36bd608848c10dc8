package workspace

import (
	"strconv"
	"strings"
)

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

// fileInput checks a field for files, which stands in modals only.
func (c *checker) fileInput(at string, e object) {
	if c.surface != onModal {
		c.report(at+"/type", "unsupported type: file_input")
	}
	if n, ok := wholeNumber(e["max_files"]); e["max_files"] != nil && (!ok || n < 1 || n > maxFiles) {
		c.report(at+"/max_files", "must be from 1 to %d", maxFiles)
	}
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
