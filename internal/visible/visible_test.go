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
