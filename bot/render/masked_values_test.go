package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
)

func TestMaskedForms(t *testing.T) {
	r := bottest.Request(bottest.SecretArgs)
	r.Secrets = []string{"card.number", "note", "pin"}
	seen := r
	seen.Revealed = []approvers.Reveal{{By: teo, Digest: r.Digest, Secrets: r.Secrets}}
	s := bottest.ViewModel(r)
	t.Run("card", func(t *testing.T) { bottest.Golden(t, "card_masked", drawn(t, s).Messages[0]) })
	for name, v := range map[string]slack.ModalViewRequest{
		"modal_reveal":             form.Reveal(r, testToken(r)),
		"modal_modify_masked":      modifyForm(seen, bottest.Tool("charge_card", bottest.SecretSchema, approvers.Unprotected)),
		"modal_modify_masked_json": modifyForm(seen, bottest.Tool("charge_card", `{"oneOf":[{}]}`, approvers.Unprotected)),
	} {
		t.Run(name, func(t *testing.T) {
			viewWithin(t, v)
			bottest.Golden(t, name, v)
		})
	}
	many := r
	many.Args = json.RawMessage(`{"pin":"` + strings.Repeat("𝕏", 20000) + `"}`)
	pages := 0
	for f, last := testToken(many), false; !last; f.Page++ {
		v := form.Reveal(many, f)
		viewWithin(t, v)
		pages, last = pages+1, form.LastPage(v)
	}
	if pages != 3 {
		t.Errorf("20000 characters are shown on %d pages", pages)
	}
	var warned []string
	many.Secrets = nil
	for n := range 50 {
		name := fmt.Sprintf("pin%d", n)
		many.Secrets = append(many.Secrets, name)
		warned = append(warned, fmt.Sprintf("%q:%q", name, "раypal ⟨x⟩"+strings.Repeat(" ", 30)+"\u202e a"+strings.Repeat("\u0301", 9)))
	}
	many.Args = json.RawMessage("{" + strings.Join(warned, ",") + "}")
	said := ""
	for f, last := testToken(many), false; !last; f.Page++ {
		v := form.Reveal(many, f)
		viewWithin(t, v)
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		said, last = said+string(raw), form.LastPage(v)
	}
	if n := strings.Count(said, "Letters that can look like others"); n != 50 || !strings.Contains(said, `"pin49"`) {
		t.Errorf("%d of 50 values have their warnings", n)
	}
}

// If a person must reveal values before an approval, this person's copy has no Approve button until the values are
// revealed. A card in a channel has the Approve button from the start, because another reader may have revealed the
// values.
func TestApproveAfterReveal(t *testing.T) {
	r := bottest.Request(bottest.SecretArgs)
	r.Secrets = []string{"card.number", "pin"}
	seen := r
	seen.Revealed = []approvers.Reveal{{By: teo, Digest: r.Digest, Secrets: r.Secrets}}
	for name, c := range map[string]struct {
		r       approvers.Request
		to      string
		actions []string // the first action has the primary button
	}{
		"in a channel":       {r, "channel:#support-approvals", []string{control.ActReveal, control.ActApprove, control.ActReject, control.ActArguments}},
		"own copy":           {r, "user:U0002", []string{control.ActReveal, control.ActReject, control.ActArguments}},
		"own copy, revealed": {seen, "user:U0002", []string{control.ActApprove, control.ActReject, control.ActModify, control.ActArguments}},
	} {
		s := bottest.ViewModel(c.r)
		s.Message.To = c.to
		d := drawn(t, s)
		if got := actionsOf(d); !slices.Equal(got, c.actions) {
			t.Errorf("%s: the buttons are %q, want %q", name, got, c.actions)
		}
		row := d.Messages[0].Blocks[len(d.Messages[0].Blocks)-1].(*slack.ActionBlock)
		for i, e := range row.Elements.ElementSet {
			if b := e.(*slack.ButtonBlockElement); (b.Style == slack.StylePrimary) != (i == 0) {
				t.Errorf("%s: %s has the style %q", name, b.Text.Text, b.Style)
			}
		}
		if said := strings.Contains(d.Messages[0].Text, "Reveal them first, then you can approve."); said != (c.actions[0] == control.ActReveal) {
			t.Errorf("%s: it is said that values must be revealed first: %v", name, said)
		}
	}
	r.Secrets = []string{"pin"}
	s := bottest.ViewModel(r)
	if text := drawn(t, s).Messages[0].Text; !strings.Contains(text, "1 value is hidden: pin. Reveal it first, then you can approve.") {
		t.Errorf("about one value the card says\n%s", text)
	}
}
