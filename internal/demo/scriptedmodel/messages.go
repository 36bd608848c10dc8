package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// message is a message as received.
type message struct {
	Role       string            `json:"role"`
	Content    json.RawMessage   `json:"content"`
	Name       string            `json:"name"`
	ToolCalls  []json.RawMessage `json:"tool_calls"`
	ToolCallID string            `json:"tool_call_id"`
	Refusal    *string           `json:"refusal"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function *struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL *struct {
		URL    string `json:"url"`
		Detail string `json:"detail"`
	} `json:"image_url"`
}

// The limits of the service.
const (
	mostMessages  = 2048
	longestCallID = 40
)

var speakerName = regexp.MustCompile(`^[^\s<|\\/>]{1,64}$`)

func parseMessages(raw []json.RawMessage) ([]Message, *apiError) {
	if raw == nil {
		return nil, invalid("messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	}
	if len(raw) == 0 {
		return nil, invalid("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	if len(raw) > mostMessages {
		return nil, invalid("messages", "array_above_max_length", "Invalid 'messages': array too long. Expected an array with maximum length %d, but got %d instead.", mostMessages, len(raw))
	}
	messages := make([]Message, len(raw))
	for i, data := range raw {
		m, fault := parseMessage(data, fmt.Sprintf("messages[%d]", i))
		if fault != nil {
			return nil, fault
		}
		messages[i] = m
	}
	return messages, checkPairs(messages)
}

func parseMessage(data json.RawMessage, at string) (Message, *apiError) {
	var m message
	if fault := decodeStrictly(data, &m, at); fault != nil {
		return Message{}, fault
	}
	roles := []string{"system", "developer", "user", "assistant", "tool"}
	if !slices.Contains(roles, m.Role) {
		return Message{}, invalid(at+".role", "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", m.Role, strings.Join(roles, "', '"))
	}
	if m.Name != "" && !speakerName.MatchString(m.Name) {
		return Message{}, invalid(at+".name", "invalid_value", `Invalid '%s.name': string does not match pattern. Expected a string of at most 64 characters that matches the pattern '^[^\s<|\\/>]+$'.`, at)
	}
	result := Message{Role: m.Role, Name: m.Name, ToolCallID: m.ToolCallID}
	if m.ToolCalls != nil && m.Role != "assistant" {
		return result, invalid(at+".tool_calls", "", "Invalid parameter: 'tool_calls' is only allowed in messages with role 'assistant', not '%s'.", m.Role)
	}
	if (m.ToolCallID != "") != (m.Role == "tool") {
		if m.Role == "tool" {
			return result, invalid(at+".tool_call_id", "missing_required_parameter", "Missing required parameter: '%s.tool_call_id'.", at)
		}
		return result, invalid(at+".tool_call_id", "", "Invalid parameter: 'tool_call_id' is only allowed in messages with role 'tool', not '%s'.", m.Role)
	}
	if m.ToolCalls != nil {
		var fault *apiError
		if result.ToolCalls, fault = parseCalls(m.ToolCalls, at); fault != nil {
			return result, fault
		}
	}
	text, given, fault := parseContent(m, at)
	result.Content = text
	if fault == nil && !given && len(result.ToolCalls) == 0 && m.Refusal == nil {
		// The real service accepts an empty string from a user. The scripted model refuses an empty string, because
		// other services refuse it, and no client sends it on purpose.
		fault = invalid(at+".content", "", "Invalid value for 'content': expected a string that is not empty, got an empty or no value.")
	}
	return result, fault
}

// parseContent joins the parts of a message's text. If the message has no text, given is false.
func parseContent(m message, at string) (text string, given bool, fault *apiError) {
	if len(m.Content) == 0 || string(m.Content) == "null" {
		return "", false, nil
	}
	if json.Unmarshal(m.Content, &text) == nil {
		return text, text != "", nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(m.Content, &parts) != nil {
		return "", false, invalid(at+".content", "invalid_type", "Invalid type for '%s.content': expected one of a string or array of objects.", at)
	}
	var texts []string
	for i, data := range parts {
		var p part
		where := fmt.Sprintf("%s.content[%d]", at, i)
		if fault := decodeStrictly(data, &p, where); fault != nil {
			return "", false, fault
		}
		switch {
		case p.Type == "text" && p.Text != "":
			texts = append(texts, p.Text)
		case p.Type == "image_url" && p.ImageURL != nil && m.Role == "user":
			texts = append(texts, "[image]")
		case p.Type == "refusal" && m.Role == "assistant":
			texts = append(texts, p.Refusal)
		default:
			return "", false, invalid(where, "invalid_value", "Invalid content part of type '%s' in a message with role '%s'.", p.Type, m.Role)
		}
	}
	return strings.Join(texts, "\n"), len(texts) > 0, nil
}

func parseCalls(raw []json.RawMessage, at string) ([]Call, *apiError) {
	if len(raw) == 0 {
		return nil, invalid(at+".tool_calls", "empty_array", "Invalid '%s.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.", at)
	}
	calls := make([]Call, len(raw))
	seen := map[string]bool{}
	for i, data := range raw {
		var c toolCall
		where := fmt.Sprintf("%s.tool_calls[%d]", at, i)
		if fault := decodeStrictly(data, &c, where); fault != nil {
			return nil, fault
		}
		switch {
		case c.ID == "":
			return nil, invalid(where+".id", "missing_required_parameter", "Missing required parameter: '%s.id'.", where)
		case len(c.ID) > longestCallID:
			return nil, invalid(where+".id", "string_above_max_length", "Invalid '%s.id': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", where, longestCallID, len(c.ID))
		case seen[c.ID]:
			return nil, invalid(where+".id", "", "Duplicate value for 'tool_call_id' of '%s' in %s.", c.ID, at)
		case c.Type != "function":
			return nil, invalid(where+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function'.", c.Type)
		case c.Function == nil:
			return nil, invalid(where+".function", "missing_required_parameter", "Missing required parameter: '%s.function'.", where)
		case !toolName.MatchString(c.Function.Name):
			return nil, invalid(where+".function.name", "invalid_value", "Invalid '%s.function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]{1,64}$'.", where)
		case c.Function.Arguments == nil:
			return nil, invalid(where+".function.arguments", "missing_required_parameter", "Missing required parameter: '%s.function.arguments'.", where)
		}
		seen[c.ID] = true
		calls[i] = Call{ID: c.ID, Name: c.Function.Name, Arguments: *c.Function.Arguments}
	}
	return calls, nil
}

// checkPairs checks the rule that matters most to an agent: a step with calls is directly followed by exactly one
// result for each call.
func checkPairs(messages []Message) *apiError {
	open := map[string]bool{} // by call id: true if the call still lacks its result
	answerable, step := false, 0
	for i, m := range messages {
		at := fmt.Sprintf("messages[%d]", i)
		if m.Role == "tool" {
			waiting, known := open[m.ToolCallID]
			switch {
			case !answerable:
				return invalid(at+".role", "", "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
			case !known:
				return invalid(at+".tool_call_id", "", "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", m.ToolCallID)
			case !waiting:
				return invalid(at+".tool_call_id", "", "Duplicate value for 'tool_call_id' of '%s' in message[%d]: each call has exactly one result.", m.ToolCallID, i)
			}
			open[m.ToolCallID] = false
			continue
		}
		if fault := checkAnswered(messages[step].ToolCalls, open, step); fault != nil {
			return fault
		}
		clear(open)
		answerable, step = len(m.ToolCalls) > 0, i
		for _, call := range m.ToolCalls {
			open[call.ID] = true
		}
	}
	return checkAnswered(messages[step].ToolCalls, open, step)
}

func checkAnswered(calls []Call, open map[string]bool, step int) *apiError {
	var missing []string
	for _, call := range calls {
		if open[call.ID] {
			missing = append(missing, call.ID)
		}
	}
	if missing == nil {
		return nil
	}
	return invalid(fmt.Sprintf("messages[%d].role", step), "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(missing, ", "))
}
