package desk_test

import (
	"context"
	"testing"
	"time"

	"countersign/approvers/desk"
	"countersign/store"
)

// TestWhatWasDueBeforeTheClockWasSetBack is done all the same; deadlines wait for their time.
func TestWhatWasDueBeforeTheClockWasSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Hour, 7 * 24 * time.Hour} {
		o := newOffice(t)
		r := o.ask(`issue_refund {"amount":1}`)
		id := o.command()
		o.clock.pass(-back)
		done := make(chan string)
		handled := func(ctx context.Context, timer store.Timer) error {
			err := o.Done(ctx, timer.Ref, "")
			done <- timer.Ref
			return err
		}
		ctx, stop := context.WithCancel(o.ctx())
		stopped := make(chan error, 1)
		go func() {
			stopped <- o.Work(ctx, map[store.TimerKind]desk.Duty{store.TimerInbox: {Handle: handled, Workers: 1}})
		}()
		select {
		case got := <-done:
			if got != id {
				t.Errorf("%s was handled; want %s", got, id)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s back: what came in before is not handled", back)
		}
		stop()
		o.ok(<-stopped)
		o.wantKinds(r.ID, "proposed")
	}
}
