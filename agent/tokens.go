package agent

import (
	openai "github.com/sashabaranov/go-openai"
)

// estimate estimates the number of tokens of a text. It counts one token for four bytes of ASCII (English, code,
// JSON), and one token for each other character (Chinese, emoji). For Latin text with accents, the estimate is too
// high, which is harmless. If an estimate is too low, the endpoint refuses the request, and the agent reduces the
// budget.
func estimate(s string) int {
	ascii, other := 0, 0
	for _, r := range s {
		if r < 0x80 {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+3)/4 + other
}

// Tokens that the API's format adds.
const (
	perMessage = 4
	perCall    = 8
	perTool    = 10
)

func messageTokens(m openai.ChatCompletionMessage) int {
	n := perMessage + estimate(m.Content) + estimate(m.ReasoningContent)
	for _, c := range m.ToolCalls {
		n += perCall + estimate(c.ID) + estimate(c.Function.Name) + estimate(c.Function.Arguments)
	}
	if m.ToolCallID != "" {
		n += estimate(m.ToolCallID)
	}
	return n
}

func messagesTokens(all []openai.ChatCompletionMessage) int {
	n := 0
	for _, m := range all {
		n += messageTokens(m)
	}
	return n
}

// addedTokens counts the JSON that the endpoint had added to calls.
func addedTokens(added map[string]string) int {
	n := 0
	for _, json := range added {
		n += estimate(json)
	}
	return n
}

func toolsTokens(tools []registered) int {
	n := 0
	for _, t := range tools {
		n += perTool + estimate(t.wire) + estimate(t.Description) + estimate(string(t.params))
	}
	return n
}
