package mcp

import (
	"strings"
	"unicode"

	"countersign/internal/redact"
)

// maxLine is the maximum length of a logged line of a server, in bytes.
const maxLine = 500

// line converts a server's text to one log line without secrets and invisible characters, and cuts the line after
// maxLine bytes.
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

// cut shortens a text to at most n bytes, without splitting a character, and then appends "…".
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
