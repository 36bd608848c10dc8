package bot

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// findings says in sentences what in a text could mislead its reader. An empty list means that nothing was found.
func findings(s string) []string {
	var out []string
	_, did := shown(s)
	out = counted(out, did.unseen, "character that can't be seen is", "characters that can't be seen are", "⟨…⟩")
	out = counted(out, did.runs, "long run of spaces is", "long runs of spaces are", "⟨… spaces⟩")
	out = counted(out, did.brackets, "bracket of the text itself is", "brackets of the text itself are", "⟨U+27E8⟩ or ⟨U+27E9⟩")
	out = counted(out, did.piled, "accent piled on others is", "accents piled on others are", "⟨…⟩")
	if words := mixedWords(s); len(words) > 0 {
		out = append(out, "Letters of different alphabets in one word, which can look like another word: "+strings.Join(words, ", ")+".")
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

// countHidden counts what visible shows as escapes, for whatever reason.
func countHidden(s string) int {
	_, did := shown(s)
	return did.unseen + did.runs + did.brackets + did.piled
}

// lookalikes are the alphabets whose letters are easily taken for one another's.
var lookalikes = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic}

// mixedWords lists words, addresses and links that mix lookalike alphabets or use letters styled by other characters, at most five of them.
func mixedWords(s string) []string {
	var out []string
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"',;()[]{}`, r) }) {
		if !mixed(word) {
			continue
		}
		word = "“" + short(visible(word), 40) + "”"
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

func mixed(word string) bool {
	if utf8.RuneCountInString(word) == len(word) {
		return false // ASCII only
	}
	found := -1
	for _, r := range word {
		if r >= 0x1D400 && r <= 0x1D7FF { // letters made bold or script by other code points
			return true
		}
		if r >= 0xFF21 && r <= 0xFF5A { // full-width Latin
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
