package bot

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file is the one place through which other people's text passes on its way to Slack.

// Visible makes everything in a text seen that a screen would hide or turn around: control, bidirectional, zero-width, tag and
// variation characters, blank letters, undecodable bytes and long runs of spaces become ⟨…⟩. Line feeds stay. The
// bracket itself is escaped, so that a text cannot pretend to hold an escape.
func Visible(s string) string {
	text, _ := shown(s)
	return text
}

// escapes counts, by reason, what Visible shows as ⟨…⟩.
type escapes struct {
	unseen   int // can't be seen, or changes how others are
	runs     int // spaces in a row, many enough to push text out of sight
	brackets int // can be seen, but is what an escape is written with
	piled    int // accents upon accents
}

// shown is a visible text, and what had to be escaped in it.
func shown(s string) (string, escapes) {
	var b strings.Builder
	var prev rune
	var did escapes
	marks := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, "⟨byte %02X⟩", s[i])
			did.unseen++
			i, prev, marks = i+1, 0, 0
			continue
		}
		if n := spaces(s[i:]); n >= longRun {
			fmt.Fprintf(&b, "⟨%d spaces⟩", n)
			did.runs++
			i, prev, marks = i+n, ' ', 0
			continue
		}
		next, _ := utf8.DecodeRuneInString(s[i+size:])
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		escaped := true
		switch {
		case r == '⟨' || r == '⟩':
			did.brackets++
		case hidden(r, prev, next):
			did.unseen++
		case marks > maxMarks:
			did.piled++
		default:
			escaped = false
		}
		if escaped {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
		prev, i = r, i+size
	}
	return b.String(), did
}

const (
	longRun  = 16 // spaces in a row that could push text out of sight
	maxMarks = 3  // combining marks on one letter; more of them paint over the lines around it
)

// spaces counts the spaces at the start of s.
func spaces(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// hidden reports whether a character can't be seen, or changes how others are.
func hidden(r, prev, next rune) bool {
	switch {
	case r == '\n':
		return false
	case r == 0x200D: // joins emoji, as in a family; elsewhere it hides
		return !pictograph(prev) || !pictograph(next)
	case r == 0xFE0F || r == 0xFE0E: // picks a picture or a letter form for the character before it
		return !pictograph(prev) && !keycap(prev)
	case blankLetters[r], unicode.Is(unicode.Variation_Selector, r):
		return true
	case r == 0xA0 || r == 0x202F || r == 0x3000: // spaces that look like spaces, in everyday use
		return false
	}
	return r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Zs, r) && r != ' '
}

// blankLetters are letters, marks and symbols that are drawn as nothing.
var blankLetters = map[rune]bool{
	0x034F: true, 0x115F: true, 0x1160: true, 0x17B4: true, 0x17B5: true, 0x2800: true, 0x3164: true, 0xFFA0: true, 0xFFFC: true, 0x1D159: true,
}

func pictograph(r rune) bool {
	return unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) && r > 0x1F000 || r == 0xFE0F || r == '♀' || r == '♂'
}

func keycap(r rune) bool { return r >= '0' && r <= '9' || r == '#' || r == '*' }

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
