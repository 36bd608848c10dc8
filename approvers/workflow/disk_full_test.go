package workflow_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/jobs"
)

// cramped is a store whose disk may be full.
type cramped struct {
	store.Store
	mu      sync.Mutex
	full    bool
	refused int
}

func (c *cramped) become(full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full = full
}

func (c *cramped) Update(ctx context.Context, fn func(store.Tx) error) error {
	c.mu.Lock()
	full := c.full
	if full {
		c.refused++
	}
	c.mu.Unlock()
	if full {
		return fmt.Errorf("%w: store.db: free some space", store.ErrFull)
	}
	return c.Store.Update(ctx, fn)
}

// While the disk is full, the bot does not repeat its work in a loop. The bot does not call the model, because it can't
// store the answer. The bot logs the reason only from time to time. When the disk has space, all work continues by
// itself, and no work counts as failed.
func TestFullDisk(t *testing.T) {
	testkit.SkipIfShort(t)
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		var log bytes.Buffer
		c := &cramped{Store: w.store}
		w.Workflow = workflow.New(workflow.Config{Store: c, Policy: w.policy.Load, Tools: w.tools, Log: slog.New(slog.NewTextHandler(&log, nil))})
		turn := w.say(alice, "please").Turn
		c.become(true)
		asked := 0
		w.work(map[store.TimerKind]jobs.Worker{store.TimerThink: {Concurrency: 1, Handle: func(ctx context.Context, _ store.Timer) error {
			asked++
			b, err := w.Turns.Begin(ctx, turn)
			if err != nil {
				return err
			}
			return w.Turns.Answer(ctx, turn, b.Turn.Step, "Done.", nil, 1)
		}}})
		w.pass(time.Hour)
		if asked != 1 || w.Full().IsZero() {
			t.Errorf("in an hour with a full disk the model was asked %d times, and the disk is known to be full since %s", asked, w.Full())
		}
		if c.refused > 300 {
			t.Errorf("%d writes were tried meanwhile", c.refused)
		}
		if n := strings.Count(log.String(), "nothing is decided and nothing runs"); n < 10 || n > 14 || strings.Count(log.String(), "\n") != n {
			t.Errorf("the log says %d times that the disk is full:\n%.2000s", n, log.String())
		}
		if timer := w.timers(store.TimerThink)[turn]; timer.Tries != 0 {
			t.Errorf("a result that could not be stored counts as %d failed tries", timer.Tries)
		}
		c.become(false)
		w.pass(20 * time.Second)
		if asked != 2 || !w.Full().IsZero() || !strings.Contains(log.String(), "there is space on the disk again") {
			t.Errorf("with space on the disk again the model was asked %d times; full since %s; the log ends with %s", asked, w.Full(), log.String()[max(0, log.Len()-300):])
		}
		w.wantTurn(turn, "answered")
	})
}

// If the disk becomes full again at each attempt, the bot waits for some time between its attempts.
func TestFullDiskAgain(t *testing.T) {
	testkit.SkipIfShort(t)
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		c := &cramped{Store: w.store}
		w.Workflow = workflow.New(workflow.Config{Store: c, Policy: w.policy.Load, Tools: w.tools, Log: slog.New(slog.DiscardHandler)})
		turn := w.say(alice, "please").Turn
		asked := 0
		w.work(map[store.TimerKind]jobs.Worker{store.TimerThink: {Concurrency: 1, Handle: func(ctx context.Context, _ store.Timer) error {
			asked++
			c.become(true) // the disk has space for small writes, but not for the model's answer
			defer c.become(false)
			_, err := w.Turns.Begin(ctx, turn)
			return err
		}}})
		w.pass(10 * time.Minute)
		if asked < 30 || asked > 50 {
			t.Errorf("in ten minutes the model was asked %d times; want about every 15 seconds", asked)
		}
	})
}
