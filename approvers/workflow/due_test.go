package workflow_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/jobs"
)

// TestWhatWasDueBeforeTheClockWasSetBack checks that work that was due is done all the same; deadlines wait for their
// time.
func TestWhatWasDueBeforeTheClockWasSetBack(t *testing.T) {
	for _, back := range []time.Duration{30 * time.Second, time.Hour, 7 * 24 * time.Hour} {
		h := newHarness(t)
		r := h.ask(`issue_refund {"amount":1}`)
		id := h.command()
		h.clock.pass(-back)
		done := make(chan string)
		handled := func(ctx context.Context, timer store.Timer) error {
			err := h.Intake.Done(ctx, timer.Ref, "")
			done <- timer.Ref
			return err
		}
		ctx, stop := context.WithCancel(h.ctx())
		stopped := make(chan error, 1)
		go func() {
			stopped <- h.Work(ctx, map[store.TimerKind]jobs.Worker{store.TimerInbox: {Handle: handled, Concurrency: 1}})
		}()
		select {
		case got := <-done:
			if got != id {
				t.Errorf("%s was handled; want %s", got, id)
			}
		case <-time.After(testkit.Patience):
			t.Errorf("%s back: earlier deliveries are not handled", back)
		}
		stop()
		h.ok(<-stopped)
		h.wantKinds(r.ID, "proposed")
	}
}

// TestWhatWasPutOffBeforeTheClockWasSetBack checks that work that was put off is tried again at once, a single time;
// after that it waits for its time by the new clock.
func TestWhatWasPutOffBeforeTheClockWasSetBack(t *testing.T) {
	for _, back := range []time.Duration{30 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t)
			calls, fails := 0, true
			handled := func(ctx context.Context, timer store.Timer) error {
				calls++
				if fails {
					return errors.New("not now")
				}
				return h.Intake.Done(ctx, timer.Ref, "")
			}
			ctx, stop := context.WithCancel(h.ctx())
			stopped := make(chan error, 1)
			go func() {
				stopped <- h.Work(ctx, map[store.TimerKind]jobs.Worker{store.TimerInbox: {Handle: handled, Concurrency: 1}})
			}()
			expect := func(what string, want int) {
				t.Helper()
				time.Sleep(5 * time.Second) // workers look again; the test's clock stands
				if synctest.Wait(); calls != want {
					t.Errorf("%s back: %s: tried %d times; want %d", back, what, calls, want)
				}
			}
			h.command()
			expect("at first", 1)
			h.clock.pass(-back)
			expect("the clock was set back", 2)
			h.clock.pass(time.Second)
			expect("its time has come", 3)
			fails = false
			h.clock.pass(-back)
			expect("the clock was set back again", 4)
			stop()
			h.ok(<-stopped)
		})
	}
}

// TestWhatWasApprovedBeforeTheClockWasSetBack checks that an approved call runs at once, and once; a run that is under
// way is left alone, however the clock is set.
func TestWhatWasApprovedBeforeTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		r := h.ask(`issue_refund {"amount":1}`)
		h.approve(lead, r.ID)
		h.clock.pass(-time.Hour)
		calls, answer := 0, make(chan bool, 1)
		run := func(ctx context.Context, timer store.Timer) error {
			calls++
			e, run, err := h.Runs.Claim(ctx, timer.Ref)
			if err != nil || !run {
				return err
			}
			return h.Runs.Finish(ctx, e.ID, <-answer, "refunded")
		}
		ctx, stop := context.WithCancel(h.ctx())
		stopped := make(chan error, 1)
		go func() {
			stopped <- h.Work(ctx, map[store.TimerKind]jobs.Worker{store.TimerRun: {Handle: run, Concurrency: 4}})
		}()
		for _, set := range []time.Duration{0, -time.Hour, 3 * time.Hour} {
			h.clock.pass(set)
			time.Sleep(5 * time.Second) // workers look again; the test's clock stands
			if synctest.Wait(); calls != 1 {
				t.Errorf("set by %s: it was taken up %d times", set, calls)
			}
		}
		answer <- true
		synctest.Wait()
		h.wantOutcome(r.Call, approvers.OutcomeExecuted)
		stop()
		h.ok(<-stopped)
	})
}
