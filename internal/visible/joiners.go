package visible

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const (
	zwnj      rune = 0x200C // keeps letters apart that would be joined
	zwj       rune = 0x200D // joins letters, or the emoji of one picture, such as a family
	textForm  rune = 0xFE0E // selects the text form of the character before it
	emojiForm rune = 0xFE0F // selects the emoji form of the character before it
	keycap    rune = 0x20E3 // draws a key around the character before it

	firstTag  rune = 0xE0020 // the tags are invisible copies of ASCII's visible characters
	cancelTag rune = 0xE007F // ends a sequence of tags
)

// flags are the flags of England, Scotland and Wales: a black flag, with the name of the country in tags. No other
// sequence with tags is an emoji (https://unicode.org/Public/emoji/latest/emoji-sequences.txt).
var flags = []string{
	"\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F",
	"\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F",
	"\U0001F3F4\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F",
}

// inFlag reports whether a tag between before and after belongs to one of the flags.
func inFlag(before string, tag rune, after string) bool {
	for _, flag := range flags {
		for i, r := range flag {
			if r == tag && strings.HasSuffix(before, flag[:i]) && strings.HasPrefix(after, flag[i+utf8.RuneLen(r):]) {
				return true
			}
		}
	}
	return false
}

// pictograph reports whether r can be shown as an emoji. The digits, # and * are no pictographs.
func pictograph(r rune) bool {
	return unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) && r > 0x1F000 || strings.ContainsRune("‼⁉ℹ↔◻◼◽◾⤴⤵〰〽", r)
}

// selects reports whether a selector of the emoji or text form between before and after has a visible effect.
func selects(before, after string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	if r >= '0' && r <= '9' || r == '#' || r == '*' {
		next, _ := utf8.DecodeRuneInString(after)
		return next == keycap
	}
	return pictograph(r)
}

// joinsEmoji reports whether a joiner between before and after makes one picture of two emoji.
func joinsEmoji(before, after string) bool {
	prev, n := utf8.DecodeLastRuneInString(before)
	if prev == emojiForm && selects(before[:len(before)-n], "") {
		prev, _ = utf8.DecodeLastRuneInString(before[:len(before)-n])
	}
	next, _ := utf8.DecodeRuneInString(after)
	return pictograph(prev) && pictograph(next)
}

// contextJ checks the context of joiners by the rules of RFC 5892 (A.1 and A.2), which resemble those of UAX #31: a
// joiner or non-joiner may follow a virama, and a non-joiner may follow a letter that joins to the next letter. Package
// idna does not check whether the next letter joins, too. shapesLetters requires a letter of the same script.
var contextJ = idna.New(idna.CheckJoiners(true))

func validJoiner(context string) bool {
	_, err := contextJ.ToUnicode(context)
	return err == nil
}

// maxMarksBetween is the largest number of marks between a letter and a joiner. The limit bounds the work for one
// joiner.
const maxMarksBetween = 4

// shapesLetters reports whether a joiner or non-joiner between before and after changes how the letters around it are
// written, as in Persian and Hindi text. The rules are A1, A2 and B of UAX #31 (section 2.3.1). The joiner has two more
// uses, which the Unicode Standard describes.
func shapesLetters(before string, joiner rune, after string) bool {
	letter, marks, ok := lastLetter(before)
	if !ok {
		return false
	}
	next, n := utf8.DecodeRuneInString(after)
	left := string(letter) + marks + string(joiner)
	switch virama, _ := utf8.DecodeLastRuneInString(marks); {
	case validJoiner(left): // the joiner follows a virama
		if joiner == zwnj { // A2
			following, ok := firstLetter(after)
			return ok && sameScript(letter, virama) && sameScript(letter, following)
		}
		return sameScript(letter, virama) && !unicode.Is(unicode.M, next) // B
	case joiner == zwnj: // A1
		following, ok := firstLetter(after)
		return ok && sameScript(letter, following) && validJoiner(left+string(following))
	case marks == "" && n > 0 && validJoiner(string(letter)+string(next)+string(zwj)): // Bengali ya-phalaa: ra, joiner, virama, ya
		return sameScript(letter, next)
	}
	// A Persian abbreviation: the joiner gives a final letter the form that joins to the next letter.
	return validJoiner(string(letter)+marks+string(zwnj)+"ب") && !unicode.In(next, unicode.L, unicode.M, unicode.Cf)
}

// lastLetter returns the last letter of a text, and the marks after it. ok is false if the text ends otherwise.
func lastLetter(text string) (letter rune, marks string, ok bool) {
	end := len(text)
	for range maxMarksBetween + 1 {
		r, n := utf8.DecodeLastRuneInString(text[:end])
		if !unicode.Is(unicode.M, r) {
			return r, text[end:], unicode.IsLetter(r)
		}
		end -= n
	}
	return 0, "", false
}

// firstLetter returns the first letter of a text that begins with a letter, or with marks and a letter. ok is false if
// the text begins otherwise.
func firstLetter(text string) (letter rune, ok bool) {
	for range maxMarksBetween + 1 {
		r, n := utf8.DecodeRuneInString(text)
		if !unicode.Is(unicode.M, r) {
			return r, unicode.IsLetter(r)
		}
		text = text[n:]
	}
	return 0, false
}

// sameScript reports whether two characters belong to the same script.
func sameScript(a, b rune) bool {
	for _, script := range unicode.Scripts {
		if unicode.Is(script, a) {
			return unicode.Is(script, b)
		}
	}
	return false
}
