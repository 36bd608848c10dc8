// Package visible makes hidden characters in untrusted text visible before a person reads the text on a card, in a
// terminal or in a log.
package visible

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text writes ⟨…⟩ in place of everything that a screen would hide or reorder: control, bidirectional, zero-width, tag
// and variation characters, blank letters, undecodable bytes and long runs of spaces. Line feeds stay unchanged. A tab
// becomes ⇥, because source code is full of tabs. The brackets and the arrow themselves are escaped, so a text can't
// fake an escape.
func Text(s string) string {
	text, _ := Counted(s)
	return text
}

// Line returns the visible text on one line, without surrounding space. A line feed becomes ⏎.
func Line(s string) string {
	return strings.ReplaceAll(Text(strings.TrimSpace(s)), "\n", " ⏎ ")
}

// Escapes counts the escapes of Text by reason.
type Escapes struct {
	Unseen   int // characters that are invisible, or that change how other characters are shown
	Runs     int // runs of spaces that could push text out of sight
	Brackets int // visible characters that the escapes themselves use
	Piled    int // accents beyond maxMarks on one letter
}

// Counted returns the visible text, and the number of escapes in it.
func Counted(s string) (string, Escapes) {
	var b strings.Builder
	var did Escapes
	marks := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, "⟨byte %02X⟩", s[i])
			did.Unseen++
			i, marks = i+1, 0
			continue
		}
		if n := spaces(s[i:]); n >= longRun {
			fmt.Fprintf(&b, "⟨%d spaces⟩", n)
			did.Runs++
			i, marks = i+n, 0
			continue
		}
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		escaped := true
		switch {
		case r == '\t':
			b.WriteString(tab)
			i += size
			continue
		case r == '⟨' || r == '⟩' || r == '⇥':
			did.Brackets++
		case Hidden(s[:i], r, s[i+size:]):
			did.Unseen++
		case marks > maxMarks:
			did.Piled++
		default:
			escaped = false
		}
		if escaped {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
		i += size
	}
	return b.String(), did
}

// Unseen lists the escapes that Text writes for invisible characters, such as ⟨U+202E⟩. Each escape is listed once.
func Unseen(s string) (escapes []string) {
	for i, r := range s {
		if r == '\t' || !Hidden(s[:i], r, s[i+size(s[i:]):]) {
			continue
		}
		if escape := fmt.Sprintf("⟨U+%04X⟩", r); !slices.Contains(escapes, escape) {
			escapes = append(escapes, escape)
		}
	}
	return escapes
}

// Blank reports whether a text has no visible character.
func Blank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsSpace(r) && !Hidden("", r, "") })
}

const (
	tab      = "⇥ "
	longRun  = 16 // spaces in a row that could push text out of sight
	maxMarks = 3  // combining marks on one letter; more would overwrite adjacent lines
)

// The function "spaces" counts the spaces at the start of s.
func spaces(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// size returns the length of the first character of s in bytes.
func size(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// Hidden reports whether a character is invisible, or changes how other characters are shown. before and after are the
// texts around the character. A joiner, a selector of the emoji form, or a tag is not hidden where Unicode gives it a
// visible effect.
func Hidden(before string, r rune, after string) bool {
	switch {
	case r == '\n':
		return false
	case r == zwj || r == zwnj:
		return (r == zwnj || !joinsEmoji(before, after)) && !shapesLetters(before, r, after)
	case r == emojiForm || r == textForm:
		return !selects(before, after)
	case r >= firstTag && r <= cancelTag:
		return !inFlag(before, r, after)
	case blankLetters[r], unicode.Is(unicode.Variation_Selector, r):
		return true
	case r == 0xA0 || r == 0x202F || r == 0x3000: // visible spaces in common use
		return false
	}
	return r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Zs, r) && r != ' '
}

// blankLetters lists letters, marks and symbols without a visible shape.
var blankLetters = map[rune]bool{
	0x034F: true, 0x115F: true, 0x1160: true, 0x17B4: true, 0x17B5: true, 0x2800: true, 0x3164: true, 0xFFA0: true, 0xFFFC: true, 0x1D159: true,
}
