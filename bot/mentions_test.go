package bot

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/render/control"
	"countersign/internal/demo/workspace"
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

// If Slack refuses to name the members of user groups, the members of a role that the policy names by id can still
// decide. A member of the group is refused, and the reply names the group.
func TestDecisionWithoutUserGroups(t *testing.T) {
	t.Parallel()
	tap := new(recordingTransport)
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Timeout: 10 * time.Second, Transport: tap} })
	for _, method := range []string{"usergroups.list", "usergroups.users.list"} {
		tap.answering(method, func(url.Values) string { return `{"ok":false,"error":"missing_scope"}` })
	}
	email := "priya@elsewhere.example" // with her own address, Priya has the role without the group
	if err := h.slack.ChangeUser("U0101", workspace.UserChange{Email: &email}); err != nil {
		t.Fatal(err)
	}
	h.says("sam", "#support", `@bot call update_shipping_address {"order_id":"ORD-123"}`)
	card := h.finds("ada", "#support-approvals", "", "Waits for Support Agent")
	r := h.asked("C0002", card)
	h.clicks("priya", "#support-approvals", card, control.ActApprove)
	h.answered("priya", "#support-approvals", "who is in the user group @support")
	if got := h.denials(r.ID); len(got) != 1 || !strings.HasPrefix(got[0], string(approvers.DeniedUnnamed)+" ") {
		t.Errorf("the denials are %q", got)
	}
	h.clicks("ada", "#support-approvals", card, control.ActApprove)
	h.finds("ada", "#support-approvals", "", "Approved by")
}

// In an enterprise, the policy may name a person by the id in the workspace, and the person's absence has the id in the
// enterprise. The card does not mention the person while the person is away.
func TestCardPassesByAnAbsentPersonWithTwoIDs(t *testing.T) {
	t.Parallel()
	tap := new(recordingTransport)
	tap.answering("auth.test", func(url.Values) string {
		return `{"ok":true,"url":"https://countersign.example/","team":"T","user":"bot","team_id":"T0001","user_id":"U0BOT","bot_id":"B0001","enterprise_id":"E0001"}`
	})
	teo := person(func(u, _ map[string]any) {
		u["id"], u["enterprise_user"] = "U0002", map[string]any{"id": "W0002", "enterprise_id": "E0001"}
	})
	tap.answering("users.info", func(form url.Values) string {
		if user := form.Get("user"); user != "U0002" && user != "W0002" {
			return ""
		}
		return teo(form)
	})
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Timeout: 10 * time.Second, Transport: tap} })
	h.commands("teo", "#general", "away for 3 days")
	h.answered("teo", "#general", "You are away until")
	h.says("sam", "#support", refundCall)
	if card := h.finds("ada", "#support-approvals", "", "Waits for Team Lead"); strings.Contains(card.Text, "<@U0002>") {
		t.Errorf("an absent person is mentioned: %s", card.Text)
	}
}
