package workspace

import (
	"strings"
	"testing"
)

// Whatever an app sends as blocks is refused or can be shown, named, acted on and
// encoded; nothing panics.
func FuzzBlocks(f *testing.F) {
	srv, err := New(Config{Seed: OpenSeed()})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		`[{"type":"section","text":{"type":"mrkdwn","text":"x"},"accessory":{"type":"button","action_id":"a","text":{"type":"plain_text","text":"Go"}}}]`,
		`[{"type":"card","actions":[{"type":"button"}]},{"type":"container","child_blocks":[{"type":"input","element":{"type":"checkboxes"}}]}]`,
		`[{"type":"rich_text","elements":[{"type":"rich_text_list","style":"bullet","elements":[{"type":"rich_text_section","elements":[]}]}]}]`,
		`[{"type":"actions","elements":[{"type":"static_select","option_groups":[{"label":null,"options":[1]}],"initial_option":3}]}]`,
		`[{"type":"actions","elements":[{"type":"multi_users_select","initial_users":["U0001",2],"max_selected_items":1},{"type":"overflow","options":[{"url":1}]}]}]`,
		`[{"type":"plan","title":"t","tasks":[null]},{"type":"table","rows":[[]]},{"type":"video","title":[]}]`,
	} {
		f.Add(seed, "a")
	}
	f.Fuzz(func(t *testing.T, raw, action string) {
		decoded, err := decodeJSON([]byte(raw))
		if err != nil {
			return
		}
		blocks, failed := srv.readBlocks(decoded)
		if failed != nil {
			return
		}
		v := &view{Type: "modal", Blocks: blocks}
		v.fill(nil)
		v.incomplete()
		for _, p := range interactive(blocks) {
			if _, failed := choose(p.element, action, choices{find: func(_, name string) (string, bool) { return name, true }}); failed == nil {
				initialState(p.element)
			}
		}
		elementNamed(blocks, action, "")
		encode(blocks)
	})
}

// What a person types reaches the app without a raw < or & of its own: nobody can type
// a mention or a link that Slack's notation would not have made.
func FuzzTyped(f *testing.F) {
	srv, err := New(Config{Seed: OpenSeed()})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"@sam `<b>` a@b.c http://x/?a&b", "<@U0100|x> <!here", "```<``` &amp; <https://a|b>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rest := reference.ReplaceAllString(srv.typed(text), "")
		if strings.ContainsAny(rest, "<>") {
			t.Errorf("%q became %q", text, srv.typed(text))
		}
	})
}
