package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/jobs"
)

// A pause immediately cancels the contexts of runs and model calls, and no other contexts. During the pause, the bot
// does not read the timers of delayed work in a loop. Delayed work continues as soon as the pause ends.
func TestPauseStopsTheWork(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		running := w.propose(w.sayIn("1.1", alice, "please").Turn, `search_orders {}`)[0]
		thinking := w.sayIn("2.1", alice, "think").Turn
		var l log
		var reads atomic.Int32
		until := func(ctx context.Context, what string) error {
			select {
			case <-ctx.Done():
				l.add("%s:%t", what, errors.Is(context.Cause(ctx), workflow.ErrPaused))
				return ctx.Err()
			case <-time.After(time.Minute):
				return errors.New("nobody stopped it")
			}
		}
		w.put("row")
		held := true
		w.work(map[store.TimerKind]jobs.Worker{
			store.TimerInbox: {Concurrency: 1, Handle: func(ctx context.Context, timer store.Timer) error {
				select {
				case <-ctx.Done():
					l.add("the inbox was stopped")
				case <-time.After(10 * time.Second):
				}
				return w.Intake.Done(ctx, timer.Ref, "")
			}},
			store.TimerThink: {Concurrency: 4, Handle: func(ctx context.Context, timer store.Timer) error {
				b, err := w.Turns.Begin(ctx, timer.Ref)
				if err != nil {
					l.add("begun while paused")
					return err
				}
				if held {
					return until(ctx, "thought")
				}
				l.add("answered")
				return w.Turns.Answer(ctx, timer.Ref, b.Turn.Step, "Done.", nil, 1)
			}},
			store.TimerRun: {Concurrency: 4, Handle: func(ctx context.Context, timer store.Timer) error {
				e, run, err := w.Runs.Claim(ctx, timer.Ref)
				if err != nil || !run {
					l.add("claimed while paused")
					return err
				}
				if held {
					_ = until(ctx, "run")
					return w.Runs.PutBack(context.WithoutCancel(ctx), e.ID)
				}
				return w.Runs.Finish(ctx, e.ID, true, "found")
			}},
		})
		w.pass(5 * time.Second)
		began := time.Now()
		w.ok(w.Pauses.Pause(w.ctx(), lead.ID, "an incident"))
		synctest.Wait()
		if got := l.String(); time.Since(began) != 0 || got != "thought:true run:true" && got != "run:true thought:true" {
			t.Errorf("after %s: %q", time.Since(began), got)
		}
		l.lines, held = nil, false
		w.hook(func() { reads.Add(1) })
		w.pass(time.Hour)
		if got := l.String(); got != "" {
			t.Errorf("while paused: %q", got)
		}
		// Each worker may read the store once a second.
		if n := reads.Load(); n > 20*3600 {
			t.Errorf("the store was read %d times in an hour", n)
		}
		w.hook(func() {})
		w.ok(w.Pauses.Resume(w.ctx(), lead.ID, ""))
		w.pass(10 * time.Millisecond)
		if got := l.String(); got != "answered answered" {
			t.Errorf("right after the pause: %q", got)
		}
		w.wantOutcome(running.ID, approvers.OutcomeExecuted)
		w.wantTurn(thinking, approvers.TurnAnswered)
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	})
}

// After the commit of a pause, the context of every running tool is cancelled. The test tries many orders of the pause
// and the starts of runs.
func TestNothingSlipsThroughAPause(t *testing.T) {
	for n := range testkit.Size(t, "COUNTERSIGN_CRASHES", 20) {
		inFakedTime(t, func(t *testing.T, w *workingHarness) {
			var turns []string
			for i := range 8 {
				turns = append(turns, w.sayIn(fmt.Sprintf("%d.1", i), alice, "please").Turn)
			}
			for _, turn := range turns {
				w.propose(turn, `search_orders {}`, `update_address {}`)
			}
			var mu sync.Mutex
			live := map[string]context.Context{}
			w.work(map[store.TimerKind]jobs.Worker{store.TimerRun: {Concurrency: 16, Handle: func(ctx context.Context, timer store.Timer) error {
				e, run, err := w.Runs.Claim(ctx, timer.Ref)
				if err != nil || !run {
					return err
				}
				mu.Lock()
				live[e.ID] = ctx
				mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
				mu.Lock()
				delete(live, e.ID)
				mu.Unlock()
				return w.Runs.PutBack(context.WithoutCancel(ctx), e.ID)
			}}})
			for range n {
				w.Wake() // the workers stop at different points, depending on n
			}
			w.ok(w.Pauses.Pause(w.ctx(), lead.ID, "an incident"))
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(live) > 0 {
				t.Fatalf("round %d: %d tools still run", n, len(live))
			}
		})
	}
}

// If a handler returns ErrPaused, its timer stays unchanged, because no work has failed.
func TestPausedIsNoFailure(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		turn := w.say(alice, "think").Turn
		before := w.timers(store.TimerThink)[turn]
		w.work(map[store.TimerKind]jobs.Worker{store.TimerThink: {Concurrency: 1, Handle: func(ctx context.Context, _ store.Timer) error {
			w.ok(w.Pauses.Pause(context.WithoutCancel(ctx), lead.ID, "an incident")) // the pause begins after a worker has taken the timer
			return fmt.Errorf("begin: %w", workflow.ErrPaused)
		}}})
		w.pass(time.Minute)
		if after := w.timers(store.TimerThink)[turn]; after != before {
			t.Errorf("%+v became %+v", before, after)
		}
	})
}
