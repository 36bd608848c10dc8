package workflow_test

import (
	"context"
	"testing"

	"countersign/store"
	"countersign/store/jobs"
)

// A workflow is idle only when no timer is due and no worker is busy. While a worker handles the last timer, the
// workflow is not idle. If the clock is set forward, Wake makes the workers immediately do the work that is then due.
func TestIdleAndWake(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":10}`)
	at := r.EscalateAt
	idle := func(want bool) {
		t.Helper()
		got, err := h.Idle(h.ctx())
		h.ok(err)
		if got != want {
			t.Errorf("idle: %t, want %t", got, want)
		}
	}
	for _, s := range append(h.messagesOf(r.ID), h.messagesOf(r.Turn)...) {
		h.show(s)
	}
	for _, s := range h.messagesOf(r.Turn) {
		h.show(s)
	}
	h.due()
	idle(true)
	next, err := h.NextDue(h.ctx())
	h.ok(err)
	if !next.Equal(at) {
		t.Errorf("next due at %s, want %s", next, at)
	}

	h.clock.pass(at.Sub(h.clock.Now()))
	idle(false)
	cleared, release, done := make(chan string, 10), make(chan struct{}), make(chan error, 1)
	ctx, stop := context.WithCancel(h.ctx())
	go func() {
		availability := jobs.Worker{Concurrency: 1, Handle: h.resolveAvailability}
		show := jobs.Worker{Concurrency: 10, Handle: func(ctx context.Context, timer store.Timer) error {
			defer func() { <-release }()
			defer func() { cleared <- timer.Ref }()
			return h.store.Update(ctx, func(tx store.Tx) error { return tx.ClearTimer(timer.Kind, timer.Ref) })
		}}
		done <- h.Work(ctx, map[store.TimerKind]jobs.Worker{
			store.TimerAvailability: availability, store.TimerShowFirst: show, store.TimerShow: show, store.TimerShowAnswer: show, store.TimerShowLast: show,
		})
	}()
	h.Wake()
	for range 3 { // the card, the step and the lead's copy show the escalation
		<-cleared
	}
	idle(false) // the rows are gone, but handlers still run
	close(release)
	stop()
	h.ok(<-done)
	h.due()
	idle(true)
}
