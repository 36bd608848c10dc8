package bot

import (
	"strings"
	"testing"

	"countersign/bot/render/control"
)

// A card in a channel mentions the members of its role by their names in the policy. The card does not mention a member
// who requested the call. A decided card mentions nobody.
func TestCardCallsItsRole(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("priya", "#support", `@bot call update_shipping_address {"order_id":"ORD-1"}`)
	card := h.finds("ada", "#support-approvals", "", "Waits for Support Agent")
	for want, wanted := range map[string]bool{"Support Agent: <@U0001> <!subteam^S0001>": true, "<@U0101> <!": false, "S0001> <@U0101>": false} {
		if strings.Contains(card.Text, want) != wanted {
			t.Errorf("mentions %q: %v, want %v:\n%s", want, !wanted, wanted, card.Text)
		}
	}
	h.clicks("ada", "#support-approvals", card, control.ActApprove)
	if done := h.finds("ada", "#support-approvals", "", "Approved by"); strings.Contains(done.Text, "subteam") {
		t.Errorf("a decided card still calls its role:\n%s", done.Text)
	}
}
