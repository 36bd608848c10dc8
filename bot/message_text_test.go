package bot

import (
	"strings"
	"testing"

	"countersign/bot/render"
)

func TestReadableText(t *testing.T) {
	called := func(user string) string { return map[string]string{"U2": "Teo"}[user] }
	for in, want := range map[string]string{
		"<@UBOT> refund ORD-1 please":               "refund ORD-1 please",
		"<@UBOT|countersign> hi":                    "hi",
		"ask <@U2> and <@U3|kim>":                   "ask @Teo and @kim",
		"in <#C1|support> or <#C2>":                 "in #support or #C2",
		"<!here> <!subteam^S1|@support> <!channel>": "@here @support @channel",
		"1 &lt; 2 &amp;&amp; 3 &gt; 2":              "1 < 2 && 3 > 2",
		"&lt;@U2&gt; typed, not a mention":          "<@U2> typed, not a mention",
		"see <https://x.example/a?b=1&amp;c=2>":     "see https://x.example/a?b=1&c=2",
		"see <https://x.example|x.example>":         "see https://x.example",
		"see <https://evil.example|bank.example>":   "see bank.example (https://evil.example)",
		"mail <mailto:a@b.example|a@b.example>":     "mail a@b.example",
		"on <!date^1^{date}|1 Jan 1970>":            "on 1 Jan 1970",
		"a < b and c > d":                           "a < b and c > d",
		"<@UBOT>":                                   "",
	} {
		if got := readableText(in, "UBOT", called); got != want {
			t.Errorf("%q reads %q, want %q", in, got, want)
		}
	}
}

// What people type is read as they typed it: Slack escapes it, and only its own markup is changed.
func FuzzReadableText(f *testing.F) {
	for _, s := range []string{"<@UBOT> hi", "<<a|b>|c>", "<!date^", "&lt;@UBOT&gt;", "<|>", "a & b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := readableText("<@UBOT> "+render.Escape(s), "UBOT", strings.ToLower); got != strings.TrimSpace(s) {
			t.Errorf("typed %q, read %q", s, got)
		}
		readableText(s, "UBOT", strings.ToLower)
	})
}

func TestStartsAnew(t *testing.T) {
	for text, want := range map[string]bool{"Start over": true, "start over.": true, "new conversation": true, "don't start over": false, "": false} {
		if startsAnew(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
