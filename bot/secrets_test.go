package bot

import (
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
)

// secrets are values that no message and no log may contain.
var secrets = []string{"4111 1111", "0815-4711", "hunter2"}

func keepingSecrets(h *harness) {
	h.tools["charge_card"] = bottest.Tool("charge_card", bottest.SecretSchema, approvers.Unprotected)
	h.policy.Tools = append(h.policy.Tools, approvers.ToolPolicy{Name: "charge_card", Risk: approvers.High, Confirm: true, Secrets: []string{"note"}, Preview: approvers.Preview{
		Text: "Charge", Render: func(args map[string]any) (string, error) {
			return fmt.Sprintf("Charge %v (%v) for %v", args["card"].(map[string]any)["number"], args["note"], args["order_id"]), nil
		},
	}})
	h.policy.Approvers[1].CanApprove = append(h.policy.Approvers[1].CanApprove, "charge_card")
}

// A secret is shown only to a person who may decide the call and reveals the secret. The secret does not appear on the
// card, in the thread, in forms, on Home tabs, in answers or in the log. The run gets the secret, and the digest covers
// the secret.
func TestSecretsStayMasked(t *testing.T) {
	t.Parallel()
	h := newHarness(t, keepingSecrets)
	root := h.says("sam", "#support", "@bot please\ncall charge_card "+bottest.SecretArgs)
	card := h.finds("teo", "#support-approvals", "", "Charge ", "(masked)", "3 values are hidden: card.number, pin, note. Reveal them first, then you can approve.")
	r := h.asked("C0002", card)
	if r.Digest != approvers.Digest(r.Execution, r.Tool, r.ToolHash, []byte(bottest.SecretArgs)) {
		t.Error("the digest does not cover the exact bytes")
	}
	h.finds("sam", "#support", root, "Waits for", "Team Lead")
	h.looks("teo", "Waits for you: 1", "ends in 4242")
	h.looks("sam", "You asked for: 1")
	h.commands("teo", "#general", "pending")
	h.answered("teo", "#general", "Waits for you")
	seen := func(what string, v any) {
		t.Helper()
		for _, s := range secrets {
			if strings.Contains(fmt.Sprint(v), s) {
				t.Errorf("%s tells %s: %v", what, s, v)
			}
		}
	}
	form := func(user, action string) map[string]any {
		t.Helper()
		h.clicks(user, "#support-approvals", card, action)
		var modal map[string]any
		h.until("the form is there", func() bool {
			views, _ := h.call("GET", "/people/"+user+"/views", nil)["views"].([]any)
			if len(views) == 0 {
				return false
			}
			modal, _ = views[len(views)-1].(map[string]any)
			return !strings.Contains(fmt.Sprint(modal), "One moment")
		})
		h.call("POST", fmt.Sprintf("/people/%s/views/%s/close", user, modal["id"]), map[string]any{"all": true})
		return modal
	}
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.answered("teo", "#support-approvals", "Choose “Reveal…” on the card, and decide then.")
	seen("the form to change it", form("teo", control.ActModify))
	seen("the form to reject it", form("teo", control.ActReject))
	seen("the form that somebody without the role is shown", form("ada", control.ActReveal))
	h.until("it is recorded that somebody tried", func() bool { return len(h.denials(r.ID)) == 2 })
	shown := fmt.Sprint(form("teo", control.ActReveal))
	for _, s := range secrets {
		if !strings.Contains(shown, s) {
			t.Errorf("the revealed values lack %s: %s", s, shown)
		}
	}
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("teo", "#support-approvals", "", "Approved by", "It ran")
	h.quiet()
	for _, where := range []struct{ user, channel, thread string }{{"teo", "#support-approvals", ""}, {"sam", "#support", root}, {"teo", "U0BOT", ""}, {"teo", "#general", ""}} {
		for _, p := range h.sees(where.user, where.channel, where.thread) {
			if p.User == "U0BOT" {
				seen("a message", p.Text+p.raw)
			}
		}
	}
	seen("a Home tab", h.atHome("teo", "Decided lately").raw)
	seen("the log", h.log.String())
	if got := h.runs(); len(got) != 1 || got[0] != "charge_card "+bottest.SecretArgs {
		t.Errorf("ran %q", got)
	}
	chain, err := h.workflow.Views.Chain(t.Context(), r.ID)
	revealed := 0
	for _, a := range chain {
		if a.Kind == approvers.AuditShown && a.Facts["surface"] == control.ActReveal {
			revealed++
			if a.Actor.User() != "U0002" || a.Facts["digest"] != r.Digest {
				t.Errorf("the record of what was revealed: %+v", a)
			}
		}
		seen("a record", a.Facts)
	}
	if err != nil || revealed != 1 {
		t.Errorf("%d records of what was revealed (%v)", revealed, err)
	}
}
