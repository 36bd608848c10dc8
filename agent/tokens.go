package agent

import (
	openai "github.com/sashabaranov/go-openai"
)

// estimate guesses how many tokens a text is: four bytes of ASCII for one token, as in English, code and JSON; one token for
// each other character, as in Chinese or emoji, which is too many for accented Latin text. It is meant to be too high rather than too
// low; where it is too low the endpoint says so, and the budget shrinks.
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

// What the interface's own format costs, in tokens.
const (
	perMessage = 4
	perCall    = 8
	perTool    = 10
)

func messageTokens(m openai.ChatCompletionMessage) int {
	n := perMessage + estimate(m.Content)
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

func toolsTokens(tools []registered) int {
	n := 0
	for _, t := range tools {
		n += perTool + estimate(t.wire) + estimate(t.Description) + estimate(string(t.params))
	}
	return n
}
