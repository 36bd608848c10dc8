package bot

import (
	"strings"
	"testing"
)

const refundCall = `@bot call issue_refund {"order_id":"ORD-123","amount":49.990,"currency":"USD"}`

// A mention becomes a card at the approver; Approve runs the exact bytes, and every surface follows.
func TestApprove(t *testing.T) { inBothWays(t, testApprove) }

func testApprove(t *testing.T, w *workbench) {
	root := w.says("sam", "#support", "@bot\n"+strings.TrimPrefix(refundCall, "@bot "))
	card := w.finds("teo", "#support-approvals", "", "Refund for order ORD-123", "Waits for Team Lead")
	step := w.finds("sam", "#support", root, "Waits for", "Team Lead")
	w.until("the thread links to the card", func() bool {
		return strings.Contains(w.finds("sam", "#support", root, "Waits for").raw, "See the card")
	})
	if !card.has(actApprove) || !card.has(actReject) || !card.has(actModify) || !step.has(actWithdraw) {
		t.Fatalf("buttons are missing:\n%s\n%s", card.raw, step.raw)
	}
	w.clicks("teo", "#support-approvals", card, actApprove)
	done := w.finds("teo", "#support-approvals", "", "Approved by", "It ran")
	if done.TS != card.TS || strings.Contains(done.raw, `"button"`) {
		t.Errorf("the card should be the same message without buttons: %s", done.raw)
	}
	w.finds("sam", "#support", root, "Approved by", "Done.")
	w.finds("sam", "#support", root, "results: executed")
	if got := w.runs(); len(got) != 1 || got[0] != `issue_refund {"order_id":"ORD-123","amount":49.990,"currency":"USD"}` {
		t.Errorf("ran %q", got)
	}
}

// Reject… asks for a reason, which reaches the asker's thread and the agent.
func TestReject(t *testing.T) { inBothWays(t, testReject) }

func testReject(t *testing.T, w *workbench) {
	root := w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("teo", "#support-approvals", card, actReject)
	form := w.opened("teo", actReject)
	out := w.submits("teo", form, map[string]any{fieldReason: "   "})
	if out["error"] != "view_errors" {
		t.Fatalf("a blank reason was taken: %v", out)
	}
	if out := w.submits("teo", form, map[string]any{fieldReason: "refunded already"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("teo", "#support-approvals", "", "Rejected by", "refunded already")
	w.finds("sam", "#support", root, "Rejected by", "refunded already")
	w.finds("sam", "#support", root, `results: rejected`, `"decided_by":"Team Lead"`)
	if got := w.runs(); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
}
