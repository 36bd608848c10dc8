package workflow_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"countersign/approvers/workflow"
	"countersign/store"
)

// leftover creates an outbox message with a leftover, which is a Slack message that Slack refused to delete. leftover
// returns the id of the outbox message.
func (h *harness) leftover() (message string) {
	h.t.Helper()
	r := h.requestIn(h.say(alice, "one").Turn, `issue_refund {"amount":1}`)
	s := h.only(r.ID, store.OutboxCard)
	s.Channel, s.TS = "C", "1.0"
	h.ok(h.Outbox.Delivered(h.ctx(), s, h.posted(s)))
	h.ok(h.Outbox.Replace(h.ctx(), h.message(s.ID)))
	if got := h.message(s.ID); got.ReplacedTS != "1.0" {
		h.t.Fatalf("it replaces %q", got.ReplacedTS)
	}
	for range 2 { // a handler may be called again
		h.ok(h.Outbox.LeftOver(h.ctx(), s.ID, "C", "1.0", "cant_delete_message"))
	}
	return s.ID
}

// tryLeftovers records the results of the due deletions. The parameter refused is Slack's reason for refusing the
// deletions. If this parameter is "", the deletions succeed. tryLeftovers returns the number of deletions.
func (h *harness) tryLeftovers(message, refused string) (n int) {
	h.t.Helper()
	for range h.dueOf(store.TimerLeftover) {
		list, err := h.Views.Leftovers(h.ctx(), message)
		h.ok(err)
		var tried []workflow.TriedDeletion
		for _, l := range list {
			if !l.Next.After(h.clock.Now()) {
				tried = append(tried, workflow.TriedDeletion{Leftover: l, Refused: refused})
			}
		}
		h.ok(h.Outbox.TriedLeftovers(h.ctx(), message, tried))
		n += len(tried)
	}
	return n
}

func (h *harness) dueOf(kind store.TimerKind) []store.Timer {
	h.t.Helper()
	return readStore(h, func(r store.Reader) ([]store.Timer, error) { return r.DueTimers(kind, h.clock.Now(), 10) })
}

// TestLeftoverIsGivenUp checks that the bot tries the deletion of a leftover again and again. The delay doubles up to
// six hours, and a restart does not change it. After three days, the bot stops trying.
func TestLeftoverIsGivenUp(t *testing.T) {
	h := newHarness(t)
	var log bytes.Buffer
	message := h.leftover()
	began := h.clock.Now()
	if got := h.message(message); len(got.Leftovers) != 1 || got.ReplacedTS != "" || got.Leftovers[0].TS != "1.0" {
		t.Fatalf("leftovers %+v", got.Leftovers)
	}
	for i, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute} {
		h.clock.pass(pause - time.Second)
		if n := h.tryLeftovers(message, "cant_delete_message"); n != 0 {
			t.Fatalf("%d: tried too early", i)
		}
		h.clock.pass(time.Second)
		if i == 1 {
			h.reopen()
			h.Log = slog.New(slog.NewTextHandler(&log, nil))
		}
		if n := h.tryLeftovers(message, "cant_delete_message"); n != 1 {
			t.Fatalf("%d: tried %d times", i, n)
		}
		h.invariants()
	}
	tries := 0
	for len(h.timers(store.TimerLeftover)) > 0 {
		next := h.timers(store.TimerLeftover)[message].Due
		if pause := next.Sub(h.clock.Now()); pause > 6*time.Hour {
			t.Fatalf("a pause of %s", pause)
		}
		h.clock.pass(next.Sub(h.clock.Now()))
		tries += h.tryLeftovers(message, "cant_delete_message")
	}
	if lasted := h.clock.Now().Sub(began); lasted != 3*24*time.Hour || tries > 20 {
		t.Errorf("given up after %s and %d more tries", lasted, tries)
	}
	if got := h.message(message); len(got.Leftovers) != 0 {
		t.Errorf("leftovers %+v", got.Leftovers)
	}
	if n := strings.Count(log.String(), "it stays, and its buttons do nothing"); n != 1 {
		t.Errorf("the operator was told %d times:\n%s", n, log.String())
	}
	h.invariants()
}

// TestLeftoversOfOneMessage checks an outbox message with several leftovers. The bot tries to delete each leftover at
// its own times. A deleted leftover is removed from the list.
func TestLeftoversOfOneMessage(t *testing.T) {
	h := newHarness(t)
	message := h.leftover()
	h.clock.pass(30 * time.Second)
	h.ok(h.Outbox.LeftOver(h.ctx(), message, "C", "2.0", "cant_delete_message"))
	h.clock.pass(30 * time.Second)
	if n := h.tryLeftovers(message, "cant_delete_message"); n != 1 {
		t.Fatalf("tried %d", n)
	}
	h.clock.pass(30 * time.Second)
	if n := h.tryLeftovers(message, ""); n != 1 {
		t.Fatalf("tried %d", n)
	}
	if got := h.message(message).Leftovers; len(got) != 1 || got[0].TS != "1.0" {
		t.Errorf("leftovers %+v", got)
	}
	h.invariants()
	u, err := h.Views.Undelivered(h.ctx())
	h.ok(err)
	if len(u.Leftovers) != 1 || u.Leftovers[0].TS != "1.0" || len(u.Refused) != 0 || u.Deferred.Count != 0 {
		t.Errorf("undelivered: %+v", u)
	}
}
