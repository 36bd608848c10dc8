package scriptedmodel

import "unicode/utf8"

// bytesPerToken is the usual estimate for English. The number of tokens only needs to be deterministic, and to grow
// with the text.
const bytesPerToken = 4

// perMessage is the overhead of a message in tokens.
const perMessage = 4

func tokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

// promptTokens estimates the number of tokens of a request.
func (r Request) promptTokens() int {
	n := 0
	for _, m := range r.Messages {
		n += perMessage + tokens(m.Content) + tokens(m.Name)
		for _, call := range m.ToolCalls {
			n += perMessage + tokens(call.Name) + tokens(call.Arguments)
		}
	}
	for _, tool := range r.Tools {
		n += perMessage + tokens(tool.Name) + tokens(tool.Description) + tokens(string(tool.Parameters))
	}
	return n
}

func (r Reply) tokens() int {
	n := tokens(r.Content)
	for _, call := range r.Calls {
		n += perMessage + tokens(call.Name) + tokens(call.Arguments)
	}
	return n
}

// firstBytes cuts text to at most n bytes without splitting a character.
func firstBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// The function "pieces" cuts text into parts of about n bytes.
func pieces(text string, n int) []string {
	var parts []string
	for text != "" {
		part := firstBytes(text, n)
		if part == "" { // one character is longer than n
			_, size := utf8.DecodeRuneInString(text)
			part = text[:size]
		}
		parts = append(parts, part)
		text = text[len(part):]
	}
	return parts
}
