package mcp

import (
	"strings"
	"unicode"

	"countersign/internal/redact"
)

// maxLine is how much of a line of a server is written down, in bytes.
const maxLine = 500

// line is a server's text as one line for a log: without secrets, without what can't be seen, and not longer than maxLine.
func line(text string) string {
	text = redact.Text(cut(text, 4*maxLine))
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
	return cut(strings.TrimSpace(text), maxLine)
}

// cut shortens a text to n bytes, and leaves no half character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
