package blockkit

import (
	"testing"

	"countersign/internal/demo/workspace/wire"
)

// FuzzBlocks checks that blocks from an app are either refused, or can be given ids, filled in, searched and encoded.
// No input may cause a panic.
func FuzzBlocks(f *testing.F) {
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
		decoded, err := wire.Decode([]byte(raw))
		blocks, ok := decoded.([]any)
		if err != nil || !ok {
			return
		}
		known := func(what, id string) bool { return what == "user" && id == "U0001" }
		if len(CheckBlocks(blocks, known)) > 0 {
			return
		}
		AssignIDs(blocks)
		Incomplete(blocks, NewState(blocks, nil))
		for _, p := range Interactive(blocks) {
			if value, ok := Choose(p.Element, action, Choices{Find: func(_, name string) (string, bool) { return name, true }}); ok {
				NewState(blocks, nil).Set(p, value)
			}
		}
		Find(blocks, action, "")
		wire.Encode(blocks)
	})
}
