package render

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"countersign/internal/visible"
)

// All text from others passes through this file on its way to Slack.

// Visible shows invisible and direction-changing characters as ⟨…⟩. Line feeds stay.
func Visible(s string) string { return visible.Text(s) }

// OneLine is Visible without line breaks.
func OneLine(s string) string {
	return strings.ReplaceAll(Visible(strings.TrimSpace(s)), "\n", " ⏎ ")
}

// Clip cuts a text to at most n characters and says how many are missing.
func Clip(s string, n int) string {
	total := utf8.RuneCountInString(s)
	if total <= n {
		return s
	}
	keep := max(0, n-len(" … (cut: 1234567 more characters)"))
	return string([]rune(s)[:keep]) + fmt.Sprintf(" … (cut: %d more characters)", total-keep)
}

// clipMarked is Clip for mrkdwn: it does not cut mentions, dates, links or escapes.
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

// short cuts a name and appends "…". Clip's note on the cut would be longer than the name.
func short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Name returns a name for display: on one line, of limited length.
func Name(s string) string {
	if s = short(OneLine(s), MaxNameShown); s == "" {
		return "(no name)"
	}
	return s
}

// Escape escapes text for mrkdwn, where it could otherwise mention people or make links. Stars, backticks and
// underscores can't be escaped there; they only change the style.
func Escape(s string) string {
	return mrkdwnEscapes.Replace(s)
}

var mrkdwnEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
