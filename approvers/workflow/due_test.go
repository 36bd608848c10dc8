package workflow_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/jobs"
)

// TestWhatWasDueBeforeTheClockWasSetBack checks work that was due before the clock was set back. The work is done
// immediately. A deadline waits until the clock reaches its time.
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
			t.Errorf("the clock was set back by %s: earlier deliveries are not handled", back)
		}
		stop()
		h.ok(<-stopped)
		h.wantKinds(r.ID, "proposed")
	}
}

// TestWhatPeopleSeeBeforeTheClockWasSetBack checks due work that changes messages in Slack. The work is done after the
// clock was set back. An availability check that was postponed until the morning is tried once, and is then postponed
// again.
func TestWhatPeopleSeeBeforeTheClockWasSetBack(t *testing.T) {
	day := &approvers.Hours{Zone: time.UTC, Days: [7]bool{true, true, true, true, true, true, true}, From: 9 * time.Hour, To: 17 * time.Hour, Outside: approvers.OutsideWaits}
	for kind, begin := range map[store.TimerKind]func(*harness){
		store.TimerAvailability: func(h *harness) { h.ask(`apply_discount {}`) },
		store.TimerPause:        func(h *harness) { h.ok(h.Pauses.Pause(h.ctx(), lead.ID, "")) },
		store.TimerChannel:      func(h *harness) { h.ok(h.Intake.ChannelLost(h.ctx(), "", "C0001", "it was archived")) },
		store.TimerHomes: func(h *harness) {
			h.ok(h.Homes.Open(h.ctx(), "", "U0002", "", 0))
			h.ask(`issue_refund {"amount":1}`)
		},
		store.TimerCatchUp: func(h *harness) {
			h.ok(h.Intake.Missed(h.ctx(), false))
			h.ok(h.Intake.Missed(h.ctx(), false))
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarnessWith(t, func(p *approvers.Policy) { p.Approvers[0].Hours = day })
				night := kind == store.TimerAvailability
				if night {
					h.clock.pass(12 * time.Hour)
					h.quiet["U0001"] = h.clock.Now().Add(24 * time.Hour)
				}
				begin(h)
				if night {
					h.due() // nobody can be reached
				}
				if len(h.timers(kind)) != 1 {
					t.Fatalf("%d timers", len(h.timers(kind)))
				}
				h.clock.pass(-time.Hour)
				var handled atomic.Int32
				ctx, stop := context.WithCancel(h.ctx())
				stopped := make(chan error, 1)
				go func() {
					stopped <- h.Work(ctx, map[store.TimerKind]jobs.Worker{kind: {Concurrency: 1, Handle: func(ctx context.Context, timer store.Timer) error {
						handled.Add(1)
						if night {
							return h.resolveAvailability(ctx, timer)
						}
						return h.store.Update(ctx, func(tx store.Tx) error { return tx.ClearTimer(timer.Kind, timer.Ref) })
					}}})
				}()
				time.Sleep(5 * time.Second) // workers poll; the test's clock stands still
				synctest.Wait()
				if n := handled.Load(); n != 1 {
					t.Errorf("it was handled %d times", n)
				}
				stop()
				h.ok(<-stopped)
			})
		})
	}
}

// TestWhatWasPutOffBeforeTheClockWasSetBack checks work that was postponed before the clock was set back. The work is
// tried once immediately, and then waits until the clock reaches the postponed time.
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
				time.Sleep(5 * time.Second) // workers poll again; the test's clock stands still
				if synctest.Wait(); calls != want {
					t.Errorf("the clock is set back by %s: %s: tried %d times; want %d", back, what, calls, want)
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

// TestWhatWasApprovedBeforeTheClockWasSetBack checks a call that was approved before the clock was set back. The call
// runs immediately. If the clock changes during the run, the run does not start a second time.
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
			time.Sleep(5 * time.Second) // workers poll again; the test's clock stands still
			if synctest.Wait(); calls != 1 {
				t.Errorf("the clock was set by %s: the run was handled %d times", set, calls)
			}
		}
		answer <- true
		synctest.Wait()
		h.wantOutcome(r.Call, approvers.OutcomeExecuted)
		stop()
		h.ok(<-stopped)
	})
}
