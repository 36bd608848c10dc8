package block

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":               {"Refund of $49.99 — naïve café", "Refund of $49.99 — naïve café"},
		"line feed stays":     {"a\nb", "a\nb"},
		"bidi":                {"a\u202eb\u2066c", "a⟨U+202E⟩b⟨U+2066⟩c"},
		"zero width":          {"a\u200bb\ufeffc", "a⟨U+200B⟩b⟨U+FEFF⟩c"},
		"tags":                {"a\U000E0041\U000E007F", "a⟨U+E0041⟩⟨U+E007F⟩"},
		"control":             {"a\x00\x1b[31m\r\u0085", "a⟨U+0000⟩⟨U+001B⟩[31m⟨U+000D⟩⟨U+0085⟩"},
		"tab":                 {"a\tb", "a⇥ b"},
		"arrow":               {"a⇥b", "a⟨U+21E5⟩b"},
		"separators":          {"a\u2028b\u2029", "a⟨U+2028⟩b⟨U+2029⟩"},
		"blank letters":       {"a\u3164b\u115f\u2800", "a⟨U+3164⟩b⟨U+115F⟩⟨U+2800⟩"},
		"smuggled selectors":  {"a\U000E0100\ufe01", "a⟨U+E0100⟩⟨U+FE01⟩"},
		"undecodable":         {"a\xffb", "a⟨byte FF⟩b"},
		"its own brackets":    {"⟨U+202E⟩", "⟨U+27E8⟩U+202E⟨U+27E9⟩"}, // text can't contain a fake escape
		"family emoji":        {"👩\u200d💻 ok ❤\ufe0f 1\ufe0f\u20e3", "👩\u200d💻 ok ❤\ufe0f 1\ufe0f\u20e3"},
		"flags":               {england + scotland + wales, england + scotland + wales},
		"flag of a state":     {"🏴\U000E0075\U000E0073\U000E0074\U000E0078\U000E007F", "🏴⟨U+E0075⟩⟨U+E0073⟩⟨U+E0074⟩⟨U+E0078⟩⟨U+E007F⟩"},
		"flag without an end": {england[:len(england)-4] + "x", "🏴⟨U+E0067⟩⟨U+E0062⟩⟨U+E0065⟩⟨U+E006E⟩⟨U+E0067⟩x"},
		"tags after a flag":   {wales + "\U000E0067\U000E007F", wales + "⟨U+E0067⟩⟨U+E007F⟩"},
		"flag without a flag": {england[4:], "⟨U+E0067⟩⟨U+E0062⟩⟨U+E0065⟩⟨U+E006E⟩⟨U+E0067⟩⟨U+E007F⟩"},
		"joiner in a word":    {"pay\u200dpal", "pay⟨U+200D⟩pal"},
		"accents":             {"e\u0301", "e\u0301"},
		"piled accents":       {"e" + strings.Repeat("\u0301", 5), "e\u0301\u0301\u0301⟨U+0301⟩⟨U+0301⟩"},
		"spaces out of view":  {"a" + strings.Repeat(" ", 40) + "b", "a⟨40 spaces⟩b"},
		"odd space":           {"a\u2009b\u00a0c", "a⟨U+2009⟩b\u00a0c"},
		"private use":         {"\ue000", "⟨U+E000⟩"},
	} {
		if got := Visible(c.in); got != c.want {
			t.Errorf("%s: Visible(%q) = %q, want %q", name, c.in, got, c.want)
		}
	}
}

// Warnings distinguish invisible characters from characters that are escaped for another reason.
func TestFindingsSayWhatIsEscaped(t *testing.T) {
	for in, want := range map[string][]string{
		"a\u200bb":                               {"1 character that can't be seen is shown as ⟨…⟩."},
		"a" + strings.Repeat(" ", 20) + "\u200b": {"1 character that can't be seen is shown as ⟨…⟩.", "1 long run of spaces is shown as ⟨… spaces⟩."},
		"⟨x":                                     {"1 bracket of the text itself is shown as ⟨U+27E8⟩ or ⟨U+27E9⟩."},
		"⟨U+202E⟩":                               {"2 brackets of the text itself are shown as ⟨U+27E8⟩ or ⟨U+27E9⟩."},
		"cafe\u0301":                             nil,
		"e" + strings.Repeat("\u0301", 5):        {"2 accents piled on others are shown as ⟨…⟩."},
	} {
		if got := Findings(in); !slices.Equal(got, want) {
			t.Errorf("findings(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFindings(t *testing.T) {
	for in, want := range map[string]int{
		"nothing odd here, 50 µm at 20 °C": 0,
		"日本語 mixed with English":           0,
		"Москва and Berlin":                0, // each word has letters of only one alphabet
		"ann@pаypal.com":                   1, // the first а of “pаypal” is Cyrillic
		"ραypal":                           1,
		"𝐩𝐚𝐲":                              1,
		"pay раураӏ now":                   1, // all letters of “раураӏ” are Cyrillic
		"ΒΑΝΚ of ACME":                     1, // all letters of “ΒΑΝΚ” are Greek
		"ура, рос сор":                     1, // words of two or more letters that all look Latin
		"Это сор":                          0, // the text is Russian
		"α is an angle":                    0,
		"Log in with раураӏ. ж":            1, // one letter does not make the text Russian
		"payⅼpal":                          1, // ⅼ is a Roman numeral
		"paypal․com":                       1, // the dot is not the ASCII dot
		"Ⓐdmin":                            1,
		"1º de maio, 1ª vez, ﬁne™ …":       0,
		"a\U0001D159b":                     1, // a musical sign that is not drawn
		"ｐａｙ":                              1,
		"pay\u200bpal":                     1,
		"pаy\u200b":                        2,
	} {
		if got := Findings(in); len(got) != want {
			t.Errorf("findings(%q) = %q, want %d", in, got, want)
		}
	}
}

// These flags are the only emoji that contain tags.
const (
	england  = "🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F"
	scotland = "🏴\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F"
	wales    = "🏴\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F"
)

var withoutFlags = strings.NewReplacer(england, "", scotland, "", wales, "")

// For any text, Visible returns a text without invisible characters, and different results for different texts.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "a\u202eb", "⟨U+202E⟩", "\xff", "👩\u200d💻", strings.Repeat(" ", 20), "e\u0301\u0301\u0301\u0301", "<!channel>`*_~", england + "a" + wales[:20]} {
		f.Add(s, "other")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		shown := Visible(a)
		if !utf8.ValidString(shown) {
			t.Fatalf("%q is not valid UTF-8", shown)
		}
		for _, r := range withoutFlags.Replace(shown) {
			switch {
			case r == '\n' || r == 0x200D || r == 0xFE0F || r == 0xFE0E || unicode.IsGraphic(r):
			default:
				t.Fatalf("Visible(%q) holds U+%04X", a, r)
			}
			if unicode.Is(unicode.Bidi_Control, r) || r >= 0xE0000 && r <= 0xE01EF {
				t.Fatalf("Visible(%q) holds U+%04X", a, r)
			}
		}
		if a != b && shown == Visible(b) {
			t.Fatalf("%q and %q are both shown as %q", a, b, shown)
		}
		if e := Escape(a); strings.ContainsAny(e, "<>") {
			t.Fatalf("escape(%q) = %q", a, e)
		}
	})
}

func TestClip(t *testing.T) {
	if got := Clip("short", 100); got != "short" {
		t.Error(got)
	}
	long := strings.Repeat("界", 500)
	got := Clip(long, 100)
	if Width(got) > 100 || !strings.Contains(got, "more characters)") {
		t.Errorf("%d characters: %s", Width(got), got)
	}
}
