package desk_test

import (
	"context"
	"testing"

	"countersign/approvers/desk"
	"countersign/store"
)

// A desk is idle when nothing is due and nobody is at work, not when the last row is gone; and what a jump of the clock made due is
// done at once when it is woken.
func TestIdleAndWake(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":10}`)
	at := r.EscalateAt
	idle := func(want bool) {
		t.Helper()
		got, err := o.Idle(o.ctx())
		o.ok(err)
		if got != want {
			t.Errorf("idle: %t, want %t", got, want)
		}
	}
	for _, s := range append(o.surfacesOf(r.ID), o.surfacesOf(r.Turn)...) {
		o.show(s)
	}
	for _, s := range o.surfacesOf(r.Turn) {
		o.show(s)
	}
	o.due()
	idle(true)
	next, err := o.NextDue(o.ctx())
	o.ok(err)
	if !next.Equal(at) {
		t.Errorf("next due at %s, want %s", next, at)
	}

	o.clock.pass(at.Sub(o.clock.Now()))
	idle(false)
	cleared, release, done := make(chan string, 10), make(chan struct{}), make(chan error, 1)
	ctx, stop := context.WithCancel(o.ctx())
	go func() {
		muster := desk.Duty{Workers: 1, Handle: o.muster}
		show := desk.Duty{Workers: 10, Handle: func(ctx context.Context, timer store.Timer) error {
			defer func() { <-release }()
			defer func() { cleared <- timer.Ref }()
			return o.store.Update(ctx, func(tx store.Tx) error { return tx.ClearTimer(timer.Kind, timer.Ref) })
		}}
		done <- o.Work(ctx, map[store.TimerKind]desk.Duty{
			store.TimerMuster: muster, store.TimerShowFirst: show, store.TimerShow: show, store.TimerShowLast: show,
		})
	}()
	o.Wake()
	for range 3 { // the card, the step and the lead's copy show the escalation
		<-cleared
	}
	idle(false) // its rows are gone, and it is still at work
	close(release)
	stop()
	o.ok(<-done)
	o.due()
	idle(true)
}
