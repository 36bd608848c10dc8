package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/jobs"
)

// h.ranks returns the rank, which is the delivery priority, of each kind of outbox message of the given refs.
func (h *harness) ranks(refs ...string) map[store.OutboxKind]store.Rank {
	h.t.Helper()
	out := map[store.OutboxKind]store.Rank{}
	for _, ref := range refs {
		for _, s := range h.messagesOf(ref) {
			if rank, seen := out[s.Kind]; seen && rank != s.Rank {
				h.t.Errorf("outbox messages of kind %s are ranked %q and %q", s.Kind, rank, s.Rank)
			}
			out[s.Kind] = s.Rank
			if _, due := h.timers(s.Rank.Timer())[s.ID]; due != (s.State == store.OutboxWanted) {
				h.t.Errorf("%s is %s; due to be shown: %t", s.Kind, s.State, due)
			}
		}
	}
	return out
}

// TestRanks checks that urgent messages are delivered first, then other cards, then informational messages.
func TestRanks(t *testing.T) {
	const first, plain, last = store.RankFirst, store.RankPlain, store.RankLast
	h := newHarness(t)
	plainOne := h.ask(`issue_refund {"amount":1}`)
	h.say(bob, "and?")
	want := map[store.OutboxKind]store.Rank{store.OutboxCard: plain, store.OutboxStep: last, store.OutboxQueued: last}
	if got := h.ranks(plainOne.ID, plainOne.Turn); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ranks %q; want %q", got, want)
	}
	h.question(lead, plainOne.ID, "which one?")
	h.clock.pass(escalateAfter)
	h.due()
	want = map[store.OutboxKind]store.Rank{store.OutboxCard: plain, store.OutboxQuestion: plain, store.OutboxEscalation: first}
	if got := h.ranks(plainOne.ID); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ranks after the escalation %q; want %q", got, want)
	}

	critical := h.propose(h.sayIn("101.1", alice, "please").Turn, `issue_refund {"amount":501}`)[0].Request
	h.approve(lead, critical)
	if got := h.ranks(critical)[store.OutboxCard]; got != first {
		t.Errorf("a critical card is ranked %q", got)
	}
	for _, s := range h.messagesOf(critical) {
		if s.To == "role:finance-director" {
			h.ok(h.Outbox.Expand(h.ctx(), s.ID, persons("U0003", "U0004")))
		}
	}
	if got := h.ranks(critical)[store.OutboxCard]; got != first {
		t.Errorf("a person's copy of a critical card is ranked %q", got)
	}
	h.approve(fin1, critical)
	h.approve(fin2, critical)
	e := h.request(critical).Execution
	_, _, err := h.Runs.Claim(h.ctx(), e)
	h.ok(err)
	h.ok(h.Runs.MarkUnknown(h.ctx(), e))
	if got := h.ranks(e)[store.OutboxUnknown]; got != first {
		t.Errorf("an unknown outcome is ranked %q", got)
	}
}

// TestRankOfABundle checks that the card of a bundle has the rank of the bundle's most critical request, at any
// position in the bundle.
func TestRankOfABundle(t *testing.T) {
	for _, c := range []struct {
		calls []string
		want  store.Rank
	}{
		{[]string{`issue_refund {"amount":1}`, `issue_refund {"amount":2}`}, store.RankPlain},
		{[]string{`issue_refund {"amount":1}`, `issue_refund {"amount":600}`}, store.RankFirst},
	} {
		h := newHarness(t)
		h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
			p.Tools[3].Rules[0].Stages = nil
			p.Approvers[1].MaxRisk = approvers.Critical // so that both requests are for the same people
		}))
		r := h.bundled(c.calls...)[0]
		if got, ok := h.ranks(r.Turn)[store.OutboxBundle]; got != c.want || !ok {
			t.Errorf("%q: a bundle is ranked %q; want %q", c.calls, got, c.want)
		}
	}
}

// TestManyChangesAreOneDelivery checks a card that changes while it waits for delivery. The changes don't move the card
// in the delivery queue, and one delivery shows all changes.
func TestManyChangesAreOneDelivery(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	card := h.show(h.only(r.ID, store.OutboxCard))
	h.question(lead, r.ID, "which one?")
	waits := h.timers(store.TimerShow)[card.ID]
	waits.Due, waits.Tries = h.clock.Now().Add(20*time.Second), 1 // Slack has asked for a delay
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error { return tx.SetTimer(waits) }))
	for range 5 {
		h.clock.pass(time.Second)
		h.question(lead, r.ID, "and which?")
	}
	if got := h.timers(store.TimerShow)[card.ID]; got != waits {
		t.Errorf("it waits as %+v; want its turn kept: %+v", got, waits)
	}
	if got := h.message(card.ID); got.Revision < card.Revision+6 || h.show(got).State != store.OutboxShown {
		t.Errorf("shown %d of %d after one showing", got.ShownRevision, got.Revision)
	}
	if _, left := h.timers(store.TimerShow)[card.ID]; left {
		t.Error("it is due to be shown again")
	}
}

// TestYielding checks messages to the same address whose order does not matter. If Slack asks the bot to delay one
// message, the other messages are delivered first. If a message failed for another reason, the other messages wait.
func TestYielding(t *testing.T) {
	for _, c := range []struct {
		yields bool
		cause  error
		want   string
	}{{true, later(time.Minute), "b"}, {false, later(time.Minute), ""}, {true, errors.New("Slack is down"), ""}} {
		inFakedTime(t, func(t *testing.T, w *workingHarness) {
			var l log
			w.put("a@lane", "b@lane")
			w.work(map[store.TimerKind]jobs.Worker{store.TimerInbox: {Concurrency: 2, Yields: c.yields, Handle: func(ctx context.Context, timer store.Timer) error {
				if timer.Ref == "a" {
					return c.cause
				}
				l.add("%s", timer.Ref)
				return w.Intake.Done(ctx, timer.Ref, "")
			}}})
			w.pass(time.Second)
			if got := l.String(); got != c.want {
				t.Errorf("after %v, yielding %t: %q was handled; want %q", c.cause, c.yields, got, c.want)
			}
		})
	}
}

// TestFirstIsNotBehindTheRest checks that many informational messages don't delay messages of higher ranks, even
// if all workers for informational messages are busy.
func TestFirstIsNotBehindTheRest(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		clear := func(ctx context.Context, timer store.Timer) error {
			return w.store.Update(ctx, func(tx store.Tx) error { return tx.ClearTimer(timer.Kind, timer.Ref) })
		}
		slow := func(ctx context.Context, timer store.Timer) error {
			<-time.After(time.Second)
			return clear(ctx, timer)
		}
		workers := map[store.TimerKind]jobs.Worker{
			store.TimerShowFirst: {Concurrency: 2, Handle: clear}, store.TimerShow: {Concurrency: 2, Handle: clear},
			store.TimerShowAnswer: {Concurrency: 2, Handle: clear}, store.TimerShowLast: {Concurrency: 2, Handle: slow},
		}
		put := func(kind store.TimerKind, n int) {
			w.ok(w.store.Update(w.ctx(), func(tx store.Tx) error {
				for i := range n {
					if err := tx.SetTimer(store.Timer{Kind: kind, Ref: fmt.Sprint(kind, i), Due: time.Now(), Lane: fmt.Sprint("lane", i%100)}); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		put(store.TimerShowLast, 300)
		w.work(workers)
		w.pass(time.Second)
		put(store.TimerShowFirst, 3)
		put(store.TimerShow, 3)
		put(store.TimerShowAnswer, 3)
		w.Wake()
		w.pass(time.Millisecond)
		if n := len(w.timers(store.TimerShowFirst, store.TimerShow, store.TimerShowAnswer)); n != 0 {
			t.Errorf("%d cards and answers wait behind %d others", n, len(w.timers(store.TimerShowLast)))
		}
		w.pass(10 * time.Minute)
		if n := len(w.timers(store.ShowTimers...)); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

// The transactions of deliveries have a low priority, and other transactions do not.
func TestDeliveriesHaveLowPriority(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		low := map[store.TimerKind]bool{}
		workers := map[store.TimerKind]jobs.Worker{}
		for _, kind := range append([]store.TimerKind{store.TimerInbox, store.TimerRun}, store.ShowTimers...) {
			workers[kind] = jobs.Worker{Concurrency: 1, Handle: func(ctx context.Context, timer store.Timer) error {
				w.mu.Lock()
				low[kind] = store.HasLowPriority(ctx)
				w.mu.Unlock()
				return w.store.Update(ctx, func(tx store.Tx) error { return tx.ClearTimer(kind, timer.Ref) })
			}}
			w.ok(w.store.Update(w.ctx(), func(tx store.Tx) error {
				return tx.SetTimer(store.Timer{Kind: kind, Ref: "x", Due: time.Now()})
			}))
		}
		w.work(workers)
		w.pass(time.Second)
		want := map[store.TimerKind]bool{store.TimerInbox: false, store.TimerRun: false}
		for _, kind := range store.ShowTimers {
			want[kind] = true
		}
		if !maps.Equal(low, want) {
			t.Errorf("low priority: %v, want %v", low, want)
		}
	})
}
