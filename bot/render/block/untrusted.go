package block

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"countersign/internal/visible"
)

// All text of people, models and tools passes through this file on its way to Slack.

// Visible shows invisible and direction-changing characters as ⟨…⟩. Line feeds stay unchanged.
func Visible(s string) string { return visible.Text(s) }

// OneLine is like Visible, but also replaces line breaks.
func OneLine(s string) string {
	return strings.ReplaceAll(Visible(strings.TrimSpace(s)), "\n", " ⏎ ")
}

// Clip cuts a text to at most n characters. The end of a cut text says how many characters are missing.
func Clip(s string, n int) string {
	total := utf8.RuneCountInString(s)
	if total <= n {
		return s
	}
	keep := max(0, n-len(" … (cut: 1234567 more characters)"))
	return string([]rune(s)[:keep]) + fmt.Sprintf(" … (cut: %d more characters)", total-keep)
}

// clipMarked is Clip for mrkdwn. clipMarked does not cut in the middle of a mention, a date, a link or an escape.
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

// Shorten cuts a name and appends "…". Clip is not suitable for names, because the note that Clip adds would be longer
// than a name.
func Shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Name returns a name for display: on one line, of limited length.
func Name(s string) string {
	if s = Shorten(OneLine(s), MaxNameShown); s == "" {
		return "(no name)"
	}
	return s
}

// Escape escapes text for mrkdwn. Unescaped text could mention people or make links. In mrkdwn, stars, backticks and
// underscores can't be escaped, but they only change the style.
func Escape(s string) string {
	return mrkdwnEscapes.Replace(s)
}

var mrkdwnEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Findings returns sentences about everything in a text that could mislead the reader. If nothing is misleading,
// Findings returns nil.
func Findings(s string) []string {
	var out []string
	_, did := visible.Counted(s)
	out = counted(out, did.Unseen, "character that can't be seen is", "characters that can't be seen are", "⟨…⟩")
	out = counted(out, did.Runs, "long run of spaces is", "long runs of spaces are", "⟨… spaces⟩")
	out = counted(out, did.Brackets, "bracket of the text itself is", "brackets of the text itself are", "⟨U+27E8⟩ or ⟨U+27E9⟩")
	out = counted(out, did.Piled, "accent piled on others is", "accents piled on others are", "⟨…⟩")
	if words := MixedWords(s); len(words) > 0 {
		out = append(out, "Letters that can look like others: "+strings.Join(words, ", ")+".")
	}
	return out
}

func counted(out []string, n int, one, more, how string) []string {
	if n == 1 {
		return append(out, "1 "+one+" shown as "+how+".")
	}
	if n > 1 {
		return append(out, fmt.Sprintf("%d %s shown as %s.", n, more, how))
	}
	return out
}

// CountHidden counts the characters that Visible escapes.
func CountHidden(s string) int {
	_, did := visible.Counted(s)
	return did.Unseen + did.Runs + did.Brackets + did.Piled
}

// lookalikes lists alphabets with letters that are easily confused with each other.
var lookalikes = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic}

// MixedWords returns words, addresses and links that mix lookalike alphabets, use styled letters or look Latin (see
// disguised). If there are more than five, the list ends with "and more".
func MixedWords(s string) []string {
	var out []string
	alike := disguised(s)
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"',;()[]{}`, r) }) {
		if !mixed(word) && !alike(word) {
			continue
		}
		word = "“" + Shorten(Visible(word), 40) + "”"
		if slices.Contains(out, word) {
			continue
		}
		if len(out) == 5 {
			return append(out, "and more")
		}
		out = append(out, word)
	}
	return out
}

// twins has letters of other alphabets that look like Latin letters.
const twins = "аеорсухѕіјһԁԛԝӏАВЕКМНОРСТХУІЅЈԌԚԜ" + "οραικνυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"

// disguised returns a test for words of at least two letters. The test finds a word if all of its letters are Cyrillic
// or Greek letters that look Latin, such as раураӏ. Such words are normal in a Russian or Greek text, so the test finds
// no words in such a text. The text s counts as Russian or Greek if it has more typical words than Latin words. A
// typical word has a Cyrillic or Greek letter that does not look Latin.
func disguised(s string) func(word string) bool {
	own := func(r rune) bool {
		return (unicode.Is(unicode.Cyrillic, r) || unicode.Is(unicode.Greek, r)) && !strings.ContainsRune(twins, r)
	}
	theirs, latin := 0, 0
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) }) {
		switch {
		case strings.ContainsFunc(word, own):
			theirs++
		case strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Latin, r) }):
			latin++
		}
	}
	if theirs > latin {
		return func(string) bool { return false }
	}
	return func(word string) bool {
		n := 0
		for _, r := range word {
			if strings.ContainsRune(twins, r) {
				n++
			} else if unicode.IsLetter(r) {
				return false
			}
		}
		return n >= 2
	}
}

// styled reports whether a character is a variant of a common character, such as 𝐚, ａ, ⅼ, Ⓐ or the dot ․.
func styled(r rune) bool {
	if r < utf8.RuneSelf || r == 'ª' || r == 'º' { // these characters are used in Spanish and Portuguese
		return false
	}
	plain := norm.NFKC.String(string(r))
	return len(plain) == 1 && plain != string(r) && (unicode.IsLetter(rune(plain[0])) || strings.Contains("./:@-_", plain))
}

func mixed(word string) bool {
	if utf8.RuneCountInString(word) == len(word) {
		return false // ASCII only
	}
	found := -1
	for _, r := range word {
		if styled(r) {
			return true
		}
		i := slices.IndexFunc(lookalikes, func(t *unicode.RangeTable) bool { return unicode.Is(t, r) })
		if i < 0 {
			continue
		}
		if found >= 0 && found != i {
			return true
		}
		found = i
	}
	return false
}

// Plural returns a number and a noun, with an s for all numbers except 1.
func Plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// Width returns the number of characters in s.
func Width(s string) int { return utf8.RuneCountInString(s) }
