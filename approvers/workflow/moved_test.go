package workflow_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/approvers/workflow"
	"countersign/store"
	"countersign/store/jobs"
)

// movable is a store whose file can be removed.
type movable struct {
	store.Store
	gone atomic.Bool
}

func (m *movable) InPlace() error {
	if m.gone.Load() {
		return fmt.Errorf("%w: store.db", store.ErrMoved)
	}
	return nil
}

func (m *movable) Update(ctx context.Context, fn func(store.Tx) error) error {
	if err := m.InPlace(); err != nil {
		return err
	}
	return m.Store.Update(ctx, fn)
}

// While the store's file is missing, the bot begins no due work, and no work counts as failed. The log has one line
// about the missing file. When the file is back, all work continues by itself.
func TestMovedStore(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		var log bytes.Buffer
		m := &movable{Store: w.store}
		w.Workflow = workflow.New(workflow.Config{Store: m, Policy: w.policy.Load, Tools: w.tools, Log: slog.New(slog.NewTextHandler(&log, nil))})
		asked := 0
		w.work(map[store.TimerKind]jobs.Worker{store.TimerThink: {Concurrency: 1, Handle: func(ctx context.Context, timer store.Timer) error {
			asked++
			b, err := w.Turns.Begin(ctx, timer.Ref)
			if err != nil {
				return err
			}
			return w.Turns.Answer(ctx, timer.Ref, b.Turn.Step, "Done.", nil, 1)
		}}})
		m.gone.Store(true)
		w.pass(time.Second)
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "is not at its path") {
			t.Errorf("after a second the log says\n%s", log.String())
		}
		working := w.Workflow
		w.Workflow = workflow.New(workflow.Config{Store: w.store, Policy: w.policy.Load, Tools: w.tools, Log: slog.New(slog.DiscardHandler)})
		turn := w.say(alice, "please").Turn // another workflow stores the message, so this workflow is not woken
		w.Workflow = working
		w.pass(time.Hour)
		if asked != 0 {
			t.Errorf("the model was asked %d times", asked)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("the log says %d times that the file is gone:\n%.2000s", n, log.String())
		}
		if timer := w.timers(store.TimerThink)[turn]; timer.Tries != 0 {
			t.Errorf("it counts as having failed %d times", timer.Tries)
		}
		m.gone.Store(false)
		w.pass(time.Second)
		w.wantTurn(turn, "answered")
		if asked != 1 || !strings.Contains(log.String(), "at its path again") {
			t.Errorf("when it was back the model was asked %d times, and the log says\n%s", asked, log.String())
		}
	})
}
