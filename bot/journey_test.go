package bot

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render"
	"countersign/store/bolt"
)

const refundCall = `@bot call issue_refund {"order_id":"ORD-123","amount":49.990,"currency":"USD"}`

// A mention leads to a card for the approver. Approve runs the exact bytes, and every outbox message is updated.
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
	if done.TS != card.TS || done.live() {
		t.Errorf("the card should be the same message without buttons that act: %s", done.raw)
	}
	h.finds("sam", "#support", root, "Approved by", "Done.")
	h.finds("sam", "#support", root, "results: executed")
	if got := h.runs(); len(got) != 1 || got[0] != `issue_refund {"order_id":"ORD-123","amount":49.990,"currency":"USD"}` {
		t.Errorf("ran %q", got)
	}
}

// A finished request with its messages, cards and history takes at most 36 KiB of the store's pages.
func TestSizeOfARequest(t *testing.T) {
	t.Parallel()
	const requests, atMost = 20, 36 << 10
	h := newHarness(t, func(h *harness) { h.once = true })
	size := func() int64 {
		for range requests {
			root := h.says("sam", "#support", refundCall)
			h.clicks("teo", "#support-approvals", h.finds("teo", "#support-approvals", "", "Waits for Team Lead"), render.ActApprove)
			h.finds("sam", "#support", root, "results: executed")
			h.unseen("teo", "#support-approvals", "", "Waits for Team Lead")
		}
		h.quiet()
		h.stop()
		s, err := bolt.Open(h.path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		used, err := s.Copy(t.Context(), io.Discard)
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		enough := errors.New("enough")
		_, _, err = bolt.Compact(t.Context(), h.path, func(u bolt.Usage) error {
			used -= u.Free
			return enough
		})
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
		h.start()
		return used
	}
	before := size()
	got := (size() - before) / requests
	t.Logf("a finished request takes %d bytes", got)
	if got > atMost {
		t.Errorf("a finished request takes %d bytes, want at most %d", got, atMost)
	}
}

// Reject… asks for a reason, which is shown in the requester's thread and given to the agent.
func TestReject(t *testing.T) { inBothWays(t, testReject) }

func testReject(t *testing.T, h *harness) {
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, render.ActReject)
	form := h.opened("teo", render.ActReject)
	out := h.submits("teo", form, map[string]any{render.FieldReason: "   "})
	if out["error"] != "view_errors" {
		t.Fatalf("a blank reason was accepted: %v", out)
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

// A tool server's claims appear in the details as its own, and do not affect the policy's risk.
func TestClaims(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(h *harness) {
		remote := bottest.Tool("crm.send", `{"type":"object","properties":{"to":{"type":"string"}}}`, approvers.Unprotected)
		remote.Description, remote.Claims = "Sends a letter.", bottest.EveryClaim()
		h.tools["crm.send"] = remote
		h.policy.Tools = append(h.policy.Tools, approvers.ToolPolicy{Name: "crm.send", Risk: approvers.High, Confirm: true})
		h.policy.Approvers[1].CanApprove = append(h.policy.Approvers[1].CanApprove, "crm.send")
	})
	h.says("sam", "#support", "@bot please\ncall crm.send {\"to\":\"Ann\"}")
	card := h.finds("teo", "#support-approvals", "", "Look something up: to Ann", "High risk · can't be undone")
	h.clicks("teo", "#support-approvals", card, render.ActArguments)
	details := fmt.Sprint(h.opened("teo", render.ActArguments))
	for _, want := range []string{"Sends a letter.", "Declared by the tool's server, not verified: not read-only, destructive, not idempotent, reaches outside systems."} {
		if !strings.Contains(details, want) {
			t.Errorf("the details lack %q: %s", want, details)
		}
	}
}
