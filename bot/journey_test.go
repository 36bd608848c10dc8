package bot

import (
	"strings"
	"testing"

	"countersign/bot/render"
)

const refundCall = `@bot call issue_refund {"order_id":"ORD-123","amount":49.990,"currency":"USD"}`

// A mention becomes a card at the approver; Approve runs the exact bytes, and every outbox message follows.
func TestApprove(t *testing.T) { inBothWays(t, testApprove) }

func testApprove(t *testing.T, h *harness) {
	root := h.says("sam", "#support", "@bot\n"+strings.TrimPrefix(refundCall, "@bot "))
	card := h.finds("teo", "#support-approvals", "", "Refund for order ORD-123", "Waits for Team Lead")
	step := h.finds("sam", "#support", root, "Waits for", "Team Lead")
	h.until("the thread links to the card", func() bool {
		return strings.Contains(h.finds("sam", "#support", root, "Waits for").raw, "See the card")
	})
	if !card.has(render.ActApprove) || !card.has(render.ActReject) || !card.has(render.ActModify) || !step.has(render.ActWithdraw) {
		t.Fatalf("buttons are missing:\n%s\n%s", card.raw, step.raw)
	}
	h.clicks("teo", "#support-approvals", card, render.ActApprove)
	done := h.finds("teo", "#support-approvals", "", "Approved by", "It ran")
	if done.TS != card.TS || strings.Contains(done.raw, `"button"`) {
		t.Errorf("the card should be the same message without buttons: %s", done.raw)
	}
	h.finds("sam", "#support", root, "Approved by", "Done.")
	h.finds("sam", "#support", root, "results: executed")
	if got := h.runs(); len(got) != 1 || got[0] != `issue_refund {"order_id":"ORD-123","amount":49.990,"currency":"USD"}` {
		t.Errorf("ran %q", got)
	}
}

// Reject… asks for a reason, which reaches the asker's thread and the agent.
func TestReject(t *testing.T) { inBothWays(t, testReject) }

func testReject(t *testing.T, h *harness) {
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, render.ActReject)
	form := h.opened("teo", render.ActReject)
	out := h.submits("teo", form, map[string]any{render.FieldReason: "   "})
	if out["error"] != "view_errors" {
		t.Fatalf("a blank reason was taken: %v", out)
	}
	if out := h.submits("teo", form, map[string]any{render.FieldReason: "refunded already"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("teo", "#support-approvals", "", "Rejected by", "refunded already")
	h.finds("sam", "#support", root, "Rejected by", "refunded already")
	h.finds("sam", "#support", root, `results: rejected`, `"decided_by":"Team Lead"`)
	if got := h.runs(); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
}
