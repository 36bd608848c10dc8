package workflow_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"countersign/approvers/workflow"
	"countersign/store"
)

// stuck is a store whose transactions wait until they may go on.
type stuck struct {
	store.Store
	waiting atomic.Int32
	goOn    chan struct{}
}

func (s *stuck) Update(ctx context.Context, fn func(store.Tx) error) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case <-s.goOn:
		return s.Store.Update(ctx, fn)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// While many calls of one client wait for the store, only a few of them are ahead of another client's call.
func TestCallersShareTheStore(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		w.policy.Store(policy("policy-1", flooding))
		s := &stuck{Store: w.store, goOn: make(chan struct{})}
		w.Workflow = workflow.New(workflow.Config{Store: s, Policy: w.policy.Load, Tools: w.tools, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(w.ctx())
		defer cancel()
		var proposed atomic.Int32
		propose := func(ctx context.Context, key string, change ...func(*workflow.CallerCall)) {
			_, _, err := w.Callers.Propose(ctx, callerCall(key, fmt.Sprintf(`issue_refund {"amount": 1, "note": %q}`, key), change...))
			if err == nil {
				proposed.Add(1)
			} else if ctx.Err() == nil {
				t.Error(err)
			}
		}
		waiting := func(want int32) {
			t.Helper()
			synctest.Wait()
			if n := s.waiting.Load(); n != want {
				t.Errorf("%d transactions wait for the store, want %d", n, want)
			}
		}
		for i := range 20 {
			go propose(ctx, fmt.Sprint("left-", i))
		}
		waiting(8)
		cancel() // the callers disconnect, and free the client's slots
		waiting(0)
		for i := range 50 {
			go propose(w.ctx(), fmt.Sprint("flood-", i))
		}
		waiting(8)
		go propose(w.ctx(), "other", func(c *workflow.CallerCall) { c.Client = other })
		waiting(9)
		close(s.goOn)
		waiting(0)
		if n := proposed.Load(); n != 51 {
			t.Errorf("%d calls were stored", n)
		}
	})
}
