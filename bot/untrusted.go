package bot

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"countersign/internal/visible"
)

// This file is the one place through which other people's text passes on its way to Slack.

// Visible makes everything in a text seen that a screen would hide or turn around, as ⟨…⟩. Line feeds stay.
func Visible(s string) string { return visible.Text(s) }

// oneLine is visible text without line breaks.
func oneLine(s string) string {
	return strings.ReplaceAll(Visible(strings.TrimSpace(s)), "\n", " ⏎ ")
}

// clip cuts a text to at most n characters and says how much is missing.
func clip(s string, n int) string {
	total := utf8.RuneCountInString(s)
	if total <= n {
		return s
	}
	keep := max(0, n-len(" … (cut: 1234567 more characters)"))
	return string([]rune(s)[:keep]) + fmt.Sprintf(" … (cut: %d more characters)", total-keep)
}

// clipMarked is clip for mrkdwn: it cuts through no mention, date, link or escape.
func clipMarked(s string, n int) string {
	total := utf8.RuneCountInString(s)
	if total <= n {
		return s
	}
	kept := string([]rune(s)[:max(0, n-len(" … (cut: 1234567 more characters)"))])
	if open := strings.LastIndexByte(kept, '<'); open > strings.LastIndexByte(kept, '>') {
		kept = kept[:open]
	}
	if open := strings.LastIndexByte(kept, '&'); open > strings.LastIndexByte(kept, ';') {
		kept = kept[:open]
	}
	return kept + fmt.Sprintf(" … (cut: %d more characters)", total-utf8.RuneCountInString(kept))
}

// short cuts a name, where a note on the cut would be longer than the name.
func short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// name is somebody's or something's name as shown: on one line, of bounded length.
func name(s string) string {
	if s = short(oneLine(s), maxNameShown); s == "" {
		return "(no name)"
	}
	return s
}

// escape protects a text in mrkdwn, where it could otherwise mention people or make links. Stars, ticks and underscores
// can't be escaped there and only change how it looks.
func escape(s string) string {
	return mrkdwnEscapes.Replace(s)
}

var mrkdwnEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
