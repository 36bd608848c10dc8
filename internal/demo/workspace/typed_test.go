package workspace

import (
	"strings"
	"testing"
)

// FuzzTyped checks that a typed text reaches the app without a raw < or > outside of mentions, channels and links.
// Therefore people can't type other notation that an app would parse.
func FuzzTyped(f *testing.F) {
	srv, err := New(Config{Seed: OpenSeed()})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"@sam `<b>` a@b.c http://x/?a&b", "<@U0100|x> <!here", "```<``` &amp; <https://a|b>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rest := reference.ReplaceAllString(srv.notation.typed(text), "")
		if strings.ContainsAny(rest, "<>") {
			t.Errorf("%q became %q", text, srv.notation.typed(text))
		}
	})
}
