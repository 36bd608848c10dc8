package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// h.counts records the workflow's events. Each event is recorded as one or two words.
func (h *harness) counts() *[]string {
	var out []string
	h.Count = func(_ context.Context, e workflow.Event) {
		word := e.Tool + " " + string(e.Ended) + string(e.Ran)
		switch {
		case e.Turn == "", e.At.IsZero():
			h.t.Errorf("the event lacks its turn or its time: %+v", e)
		case e.Began != nil:
			word = "a turn began"
		case e.Over != nil:
			word = "a turn is " + string(e.Over.State)
		case e.Asked:
			word += "asked"
		case e.Approved:
			word += "approved"
		case e.Decision != nil:
			word += fmt.Sprintf("%s by %s", e.Decision.Kind, e.Decision.Role)
		}
		out = append(out, word)
	}
	return &out
}

func wantEvents(t *testing.T, got *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*got, want) {
		t.Errorf("events %q\nwant   %q", *got, want)
	}
	*got = nil
}

// TestEvents checks that each decision, each end of a request and each end of a run is reported once, even though the
// closure of every transaction runs twice.
func TestEvents(t *testing.T) {
	h := newHarness(t)
	got := h.counts()
	r := h.ask(`issue_refund {"amount":600}`)
	wantEvents(t, got, "a turn began", "issue_refund asked")
	h.approve(lead, r.ID)
	wantEvents(t, got, "issue_refund approve by team-lead")
	_, err := h.Requests.Say(h.ctx(), h.clickOn(fin1, "", r.ID), approvers.Comment)
	h.ok(err)
	wantEvents(t, got)
	_, err = h.Requests.Decide(h.ctx(), h.clickOn(lead, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedNotMember)
	wantEvents(t, got)
	h.approve(fin1, r.ID)
	h.approve(fin2, r.ID)
	wantEvents(t, got, "issue_refund approve by finance-director", "issue_refund approve by finance-director", "issue_refund approved")
	h.run(r.Execution, "ok")
	wantEvents(t, got, "issue_refund consumed", "issue_refund succeeded")

	h = newHarness(t)
	got = h.counts()
	h.reject(fin1, h.ask(`cancel_account {}`).ID)
	wantEvents(t, got, "a turn began", "cancel_account asked", "cancel_account reject by finance-director", "cancel_account rejected")

	h = newHarness(t)
	got = h.counts()
	r = h.ask(`apply_discount {"amount":1}`)
	_, err = h.Requests.Decide(h.ctx(), h.edit(support, r.ID, `{"amount":2}`))
	h.ok(err)
	wantEvents(t, got, "a turn began", "apply_discount asked", "apply_discount modify by support-agent", "apply_discount approved")
	_, _, err = h.Runs.Claim(h.ctx(), h.request(r.ID).Execution)
	h.ok(err)
	h.ok(h.Runs.MarkUnknown(h.ctx(), h.request(r.ID).Execution))
	wantEvents(t, got, "apply_discount consumed", "apply_discount unknown")

	h = newHarness(t)
	got = h.counts()
	h.ask(`apply_discount {}`)
	h.clock.pass(expiresAfter + time.Second)
	h.due()
	wantEvents(t, got, "a turn began", "apply_discount asked", "apply_discount expired")

	h = newHarness(t)
	got = h.counts()
	turn := h.say(alice, "please").Turn
	call := h.propose(turn, `search_orders {}`)[0]
	h.run(call.Execution, "ok")
	h.say(alice, "and this") // waits for the end of the turn, and begins the next one
	h.answer(turn)
	wantEvents(t, got, "a turn began", "search_orders succeeded", "a turn is answered", "a turn began")
}

// uncommitted is a store whose transactions run the closure, but fail before the commit.
type uncommitted struct{ store.Store }

var errFull = errors.New("the disk is full")

func (s uncommitted) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(t store.Tx) error { return errors.Join(fn(t), errFull) })
}

// TestEventsAreCommitted checks that a transaction that fails before its commit reports no events.
func TestEventsAreCommitted(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	c := h.clickOn(support, approvers.Approve, r.ID)
	got := h.counts()
	h.Store = uncommitted{h.store}
	if _, err := h.Requests.Decide(h.ctx(), c); !errors.Is(err, errFull) {
		t.Fatalf("%v", err)
	}
	wantEvents(t, got)
	h.Store = h.store
	_, err := h.Requests.Decide(h.ctx(), c)
	h.ok(err)
	wantEvents(t, got, "apply_discount approve by support-agent", "apply_discount approved")
}
