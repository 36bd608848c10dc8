package visible_test

import (
	"slices"
	"testing"

	"countersign/internal/visible"
)

func TestText(t *testing.T) {
	tests := map[string]string{
		"plain\nlines":              "plain\nlines",
		"a\u200bb":                  "a⟨U+200B⟩b",
		"tag\U000E0041":             "tag⟨U+E0041⟩",
		"turn\u202eed":              "turn⟨U+202E⟩ed",
		"byte\xff":                  "byte⟨byte FF⟩",
		"far                 off":   "far⟨17 spaces⟩off",
		"⟨U+200B⟩":                  "⟨U+27E8⟩U+200B⟨U+27E9⟩", // a text can't contain a fake escape
		"e\u0301\u0301\u0301\u0301": "e\u0301\u0301\u0301⟨U+0301⟩",
		"👩\u200d💻 ☎\ufe0f":          "👩\u200d💻 ☎\ufe0f",
	}
	for in, want := range tests {
		if got := visible.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
	if _, n := visible.Counted("⟨\u200b                 "); n != (visible.Escapes{Unseen: 1, Runs: 1, Brackets: 1}) {
		t.Errorf("counted %+v", n)
	}
}

func TestUnseen(t *testing.T) {
	if got := visible.Unseen("a\u202eb\u200bc\u202e\td\n⟨👩\u200d💻"); !slices.Equal(got, []string{"⟨U+202E⟩", "⟨U+200B⟩"}) {
		t.Errorf("unseen %q", got)
	}
	for text, want := range map[string]bool{"": true, " \t\n\u00a0": true, "\u3164": true, "\u200b \u202e\u2800": true, "a\u3164": false, "ㅤ.": false, "👍": false} {
		if got := visible.Blank(text); got != want {
			t.Errorf("Blank(%q) = %t", text, got)
		}
	}
}

// Joiners and selectors of a form that have a visible effect are not hidden. All others are.
func TestJoinersAndSelectors(t *testing.T) {
	shown := map[string]string{
		"Persian":                        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u062e\u0627\u0646\u0647\u200c\u0647\u0627",
		"Persian with a vowel sign":      "\u0645\u06cc\u0650\u200c\u062e\u0648\u0627\u0647\u0645",
		"Persian abbreviation":           "\u06f1\u06f4\u06f0\u06f5 \u0647\u200d.\u0634",
		"Persian at the end":             "\u0647\u200d",
		"Hindi half form":                "\u0930\u0915\u094d\u200d\u0937\u093e",
		"Hindi without ligature":         "\u0930\u0915\u094d\u200c\u0937\u093e",
		"Marathi nukta":                  "\u0930\u093c\u094d\u200d\u092f",
		"Sinhala":                        "\u0dc1\u0dca\u200d\u0dbb\u0dd3",
		"Malayalam chillu":               "\u0d05\u0d35\u0d28\u0d4d\u200d",
		"Bengali ya-phalaa after ra":     "\u09b0\u200d\u09cd\u09af\u09be\u09ac",
		"emoji forms":                    "a ↔\ufe0f b, ℹ\ufe0f, ‼\ufe0f, ⁉\ufe0f, ⤴\ufe0f, 〰\ufe0f, ◾\ufe0e, ❤\ufe0f, ©\ufe0f",
		"keycaps":                        "1\ufe0f\u20e3 #\ufe0f\u20e3",
		"heart on fire, shaken head":     "❤\ufe0f\u200d🔥 🙂\u200d↔\ufe0f",
		"family with a skin tone, pilot": "👩🏽\u200d👧 👨\u200d✈\ufe0f",
	}
	for name, text := range shown {
		if got := visible.Unseen(text); len(got) > 0 {
			t.Errorf("%s: %q hides %q", name, text, got)
		}
		if got := visible.Text(text); got != text {
			t.Errorf("%s: %q is shown as %q", name, text, got)
		}
	}
	hidden := map[string]string{
		"in ASCII":                              "pay\u200cpal",
		"joiner in ASCII":                       "pay\u200dpal",
		"in a number":                           "1\u200c0",
		"selector in ASCII":                     "a\ufe0fb",
		"selector after a digit":                "1\ufe0f00",
		"selector after a digit, key elsewhere": "1\ufe0fa\u20e3",
		"two selectors":                         "❤\ufe0f\ufe0f",
		"selectors that spell bits":             "❤\ufe0e\ufe0f",
		"other selectors":                       "❤\ufe01",
		"two non-joiners":                       "\u0645\u06cc\u200c\u200c\u062e",
		"two joiners":                           "\u0915\u094d\u200d\u200d\u0937",
		"where letters would not join":          "\u0627\u200c\u0628",
		"Persian before a space":                "\u0645\u06cc\u200c \u062e",
		"Persian before ASCII":                  "\u0645\u06cc\u200ca",
		"joiner between letters that join":      "\u0645\u200d\u06cc",
		"virama of another script":              "a\u094d\u200db",
		"virama before ASCII":                   "\u0915\u094d\u200cb",
		"joiner before a vowel sign":            "\u0915\u094d\u200d\u093e",
		"no virama":                             "\u0915\u200c\u0937",
		"joiner before a virama of another":     "\u09b0\u200d\u094d",
		"many marks":                            "\u0645\u06cc\u0650\u0650\u0650\u0650\u0650\u200c\u062e",
		"emoji and ASCII":                       "👩\u200da",
		"bidirectional in Persian":              "\u0645\u200f\u06cc\u202e",
		"at the start":                          "\u200c\u062e",
		"at the end":                            "a\u200d",
	}
	for name, text := range hidden {
		if got := visible.Unseen(text); len(got) == 0 {
			t.Errorf("%s: %q hides nothing", name, text)
		}
		if _, did := visible.Counted(text); did.Unseen == 0 {
			t.Errorf("%s: %q is shown without escapes", name, text)
		}
	}
}
