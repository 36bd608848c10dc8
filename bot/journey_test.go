package bot

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/retention"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

const refundCall = `@bot call issue_refund {"order_id":"ORD-123","amount":49.990,"currency":"USD"}`

// A mention leads to a card for the approver. A click on Approve runs the call with the exact bytes of the request, and
// every outbox message is updated.
func TestApprove(t *testing.T) { inBothWays(t, testApprove) }

func testApprove(t *testing.T, h *harness) {
	root := h.says("sam", "#support", "@bot\n"+strings.TrimPrefix(refundCall, "@bot "))
	card := h.finds("teo", "#support-approvals", "", "Refund for order ORD-123", "Waits for Team Lead")
	step := h.finds("sam", "#support", root, "Waits for", "Team Lead")
	h.until("the thread links to the card", func() bool {
		return strings.Contains(h.finds("sam", "#support", root, "Waits for").raw, "See the card")
	})
	if !card.has(control.ActApprove) || !card.has(control.ActReject) || !card.has(control.ActModify) || !step.has(control.ActWithdraw) {
		t.Fatalf("buttons are missing:\n%s\n%s", card.raw, step.raw)
	}
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
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

// A finished request with its messages, cards and history takes a limited number of bytes in the store. When retention
// erases conversations, only the bytes of the history stay in use. When retention removes audit records, nearly all
// bytes become free for new rows.
func TestSizeOfARequest(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	const (
		first         = 40 // requests before the measurement
		requests      = 20
		atMost        = 20 << 10
		withoutTexts  = 6 << 10
		withoutChains = 3 << 10
	)
	h := newHarness(t, func(h *harness) { h.once = true })
	finish := func(n int) int64 {
		for range n {
			root := h.says("sam", "#support", refundCall)
			h.clicks("teo", "#support-approvals", h.finds("teo", "#support-approvals", "", "Waits for Team Lead"), control.ActApprove)
			h.finds("sam", "#support", root, "results: executed")
			h.unseen("teo", "#support-approvals", "", "Waits for Team Lead")
		}
		h.quiet()
		h.stop()
		return usedBytes(t, h.path)
	}
	before := finish(first)
	h.start()
	after := finish(requests)
	got := (after - before) / requests
	t.Logf("a finished request takes %d bytes", got)
	if got > atMost {
		t.Errorf("a finished request takes %d bytes, want at most %d", got, atMost)
	}
	for _, erase := range []struct {
		what   string
		later  time.Duration
		policy approvers.Retention
		atMost int64
	}{
		{"when its conversation is erased", 2 * time.Hour, approvers.Retention{Conversations: time.Hour}, withoutTexts},
		{"when its records are removed, too", 4 * time.Hour, approvers.Retention{Conversations: time.Hour, Records: time.Hour}, withoutChains},
	} {
		retain(t, h.path, erase.policy, erase.later)
		left := (usedBytes(t, h.path) - emptyStore(t)) / (first + requests)
		t.Logf("%s, %d bytes of it are left", erase.what, left)
		if left > erase.atMost {
			t.Errorf("%s, %d bytes of it are left, want at most %d", erase.what, left, erase.atMost)
		}
	}
	h.start()
}

// retain runs retention on a store, as if the given time had passed.
func retain(t *testing.T, path string, keep approvers.Retention, later time.Duration) {
	t.Helper()
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wf := workflow.New(workflow.Config{
		Store: s, Policy: func() *approvers.Policy { return &approvers.Policy{Retention: keep} },
		Now: func() time.Time { return time.Now().Add(later) }, Log: slog.New(slog.DiscardHandler),
	})
	_, err = retention.Enforce(t.Context(), wf)
	if err == nil {
		err = s.Update(t.Context(), func(tx store.Tx) error {
			_, err := tx.ForgetInbox(time.Now().Add(time.Hour), 1000)
			return err
		})
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
}

func emptyStore(t *testing.T) int64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "empty.db")
	s, err := bolt.Open(path, bolt.Options{})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return usedBytes(t, path)
}

// usedBytes returns the size of the used pages in a store's file.
func usedBytes(t *testing.T, path string) int64 {
	t.Helper()
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	used, err := s.Copy(t.Context(), io.Discard)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	_, _, err = bolt.Compact(t.Context(), path, func(u bolt.Usage) error {
		used -= u.Free
		return enough
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	return used
}

// Reject… asks for a reason. The reason is shown in the requester's thread and given to the agent.
func TestReject(t *testing.T) { inBothWays(t, testReject) }

func testReject(t *testing.T, h *harness) {
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActReject)
	form := h.opened("teo", control.ActReject)
	out := h.submits("teo", form, map[string]any{control.FieldReason: "   "})
	if out["error"] != "view_errors" {
		t.Fatalf("a blank reason was accepted: %v", out)
	}
	if out := h.submits("teo", form, map[string]any{control.FieldReason: "refunded already"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("teo", "#support-approvals", "", "Rejected by", "refunded already")
	h.finds("sam", "#support", root, "Rejected by", "refunded already")
	h.finds("sam", "#support", root, `results: rejected`, `"decided_by":"Team Lead"`)
	if got := h.runs(); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
}

// Details… shows the claims of a tool server as claims of this server. The claims do not change the risk that the
// policy sets.
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
	h.clicks("teo", "#support-approvals", card, control.ActArguments)
	details := fmt.Sprint(h.opened("teo", control.ActArguments))
	for _, want := range []string{"Sends a letter.", "Declared by the tool's server, not verified: not read-only, destructive, not idempotent, reaches outside systems."} {
		if !strings.Contains(details, want) {
			t.Errorf("the details lack %q: %s", want, details)
		}
	}
}
