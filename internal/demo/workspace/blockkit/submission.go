package blockkit

import (
	"fmt"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"countersign/internal/demo/workspace/wire"
)

// Incomplete checks the inputs of a form as Slack's client does before it submits the form. Required values must be
// present, and all values must be well-formed. Incomplete returns the messages for the person, by block_id.
func Incomplete(blocks []any, state State) map[string]string {
	out := map[string]string{}
	for _, b := range objects(blocks) {
		if b["type"] != "input" {
			continue
		}
		e, _ := b["element"].(object)
		block, _ := b["block_id"].(string)
		action, _ := e["action_id"].(string)
		kind, _ := e["type"].(string)
		field, _ := ValueField(kind)
		if message := entered(e, kind, state[block][action][field], b["optional"] == true); message != "" {
			out[block] = message
		}
	}
	return out
}

// The function "entered" returns the message about an invalid value, or "".
func entered(e object, kind string, value any, optional bool) string {
	list, isList := value.([]any)
	if value == nil || value == "" || (isList && len(list) == 0) {
		if optional {
			return ""
		}
		return "Please complete this required field."
	}
	text, isText := value.(string)
	if !isText {
		return ""
	}
	switch kind {
	case "plain_text_input":
		return textEntered(e, text)
	case "number_input":
		return numberEntered(e, text)
	case "email_text_input":
		if address, err := mail.ParseAddress(text); err != nil || address.Address != text {
			return "Please enter a valid email address."
		}
	case "url_text_input":
		if u, err := url.Parse(text); err != nil || u.Scheme == "" || u.Host == "" {
			return "Please enter a valid URL."
		}
	}
	return ""
}

func textEntered(e object, text string) string {
	length := utf8.RuneCountInString(text)
	most := maxInputText
	if n, ok := wire.Whole(e["max_length"]); ok {
		most = n
	}
	if length > most {
		return fmt.Sprintf("Please enter at most %d characters.", most)
	}
	if n, ok := wire.Whole(e["min_length"]); ok && length < n {
		return fmt.Sprintf("Please enter at least %d characters.", n)
	}
	return ""
}

func numberEntered(e object, text string) string {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !isNumber(text) {
		return "Please enter a number."
	}
	if e["is_decimal_allowed"] != true && strings.ContainsAny(text, ".eE") {
		return "Please enter a whole number."
	}
	if least, ok := e["min_value"].(string); ok && least != "" {
		if bound, err := strconv.ParseFloat(least, 64); err == nil && n < bound {
			return "Please enter a number of at least " + least + "."
		}
	}
	if most, ok := e["max_value"].(string); ok && most != "" {
		if bound, err := strconv.ParseFloat(most, 64); err == nil && n > bound {
			return "Please enter a number of at most " + most + "."
		}
	}
	return ""
}
