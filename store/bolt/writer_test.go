package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"countersign/approvers"
	"countersign/store"
)

func opened(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "store.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// commits returns the number of commits of the file so far.
func (s *Store) commits(t *testing.T) int {
	t.Helper()
	btx, err := s.db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	id := btx.ID()
	if err := btx.Rollback(); err != nil {
		t.Fatal(err)
	}
	return id
}

// busy starts a closure that keeps the transaction open until release is called. Meanwhile, n other closures wait in
// the queue.
func busy(t *testing.T, s *Store, n int, fn func(i int) (context.Context, func(store.Tx) error)) (errs []error, release func()) {
	gate := make(chan struct{})
	errs = make([]error, n+1)
	var wg sync.WaitGroup
	wg.Go(func() {
		errs[n] = s.Update(t.Context(), func(tx store.Tx) error {
			<-gate
			return tx.PutTurn(approvers.Turn{ID: "first"})
		})
	})
	synctest.Wait()
	for i := range n {
		ctx, do := fn(i)
		wg.Go(func() { errs[i] = s.Update(ctx, do) })
		synctest.Wait() // waits, so that the closures are queued in the order of i
	}
	return errs, func() { close(gate); wg.Wait() }
}

// All closures that wait while another closure runs share a commit. The closures run in the order in which they were
// queued.
func TestSharedCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t)
		before := s.commits(t)
		var order []int
		errs, release := busy(t, s, 20, func(i int) (context.Context, func(store.Tx) error) {
			return t.Context(), func(tx store.Tx) error {
				order = append(order, i)
				return tx.PutTurn(approvers.Turn{ID: fmt.Sprint(i)})
			}
		})
		release()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if n := s.commits(t) - before; n != 1 {
			t.Errorf("%d commits for 21 closures that waited together, want 1", n)
		}
		for i, got := range order {
			if i != got {
				t.Fatalf("they ran in the order %v", order)
			}
		}
		s.Close()
	})
}

// A closure that writes nothing, or that fails, causes no commit.
func TestNothingWritten(t *testing.T) {
	s := opened(t)
	before := s.commits(t)
	mine := errors.New("mine")
	for _, fn := range []func(store.Tx) error{
		func(store.Tx) error { return nil },
		func(tx store.Tx) error { return errors.Join(tx.PutTurn(approvers.Turn{ID: "x"}), mine) },
		func(tx store.Tx) error { return tx.ClearTimer(store.TimerRun, "x") },
	} {
		if err := s.Update(t.Context(), fn); err != nil && !errors.Is(err, mine) {
			t.Error(err)
		}
	}
	if n := s.commits(t) - before; n != 0 {
		t.Errorf("%d commits, want 0", n)
	}
}

// If the context of Update ends while the closure waits, the store removes the closure from the queue immediately. The
// closure never runs.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		ran := false
		errs, release := busy(t, s, 1, func(int) (context.Context, func(store.Tx) error) {
			return ctx, func(store.Tx) error { ran = true; return nil }
		})
		cancel(nil)
		synctest.Wait() // the first closure is running
		if !errors.Is(errs[0], context.Canceled) {
			t.Errorf("got error %v, want the context's", errs[0])
		}
		release()
		if ran || errs[1] != nil {
			t.Errorf("ran: %v; the one under way: %v", ran, errs[1])
		}
		s.Close()
	})
}

// Close lets the running closure finish, and refuses the waiting closures.
func TestClosingWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t)
		path := s.db.Path()
		errs, release := busy(t, s, 3, func(i int) (context.Context, func(store.Tx) error) {
			return t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: fmt.Sprint(i)}) }
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		release()
		wg.Wait()
		if errs[3] != nil {
			t.Errorf("the one under way: %v", errs[3])
		}
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		err = s.View(t.Context(), func(r store.Reader) error {
			if _, err := r.Turn("first"); err != nil {
				t.Errorf("the one under way is lost: %v", err)
			}
			for i := range 3 {
				_, err := r.Turn(fmt.Sprint(i))
				if (errs[i] == nil) != (err == nil) || (errs[i] != nil && !errors.Is(errs[i], store.ErrClosed)) {
					t.Errorf("turn %d: Update said %v, and it reads %v", i, errs[i], err)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A commit takes at most maxBatch closures. The next commit takes the remaining closures.
func TestLargeCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t)
		before := s.commits(t)
		errs, release := busy(t, s, maxBatch+10, func(i int) (context.Context, func(store.Tx) error) {
			return t.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: fmt.Sprint(i)}) }
		})
		release()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if n := s.commits(t) - before; n != 2 {
			t.Errorf("%d commits for %d closures, want 2", n, maxBatch+11)
		}
		s.Close()
	})
}

// A closure keeps its transaction, and the test uses the transaction after the closure has ended. This use panics.
func TestTransactionUsedAfterItsEnd(t *testing.T) {
	s := opened(t)
	var kept store.Tx
	var seen store.Reader
	if err := s.Update(t.Context(), func(tx store.Tx) error { kept = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.View(t.Context(), func(r store.Reader) error { seen = r; return nil }); err != nil {
		t.Fatal(err)
	}
	for name, use := range map[string]func(){
		"write": func() { _ = kept.PutTurn(approvers.Turn{ID: "x"}) },
		"read":  func() { _, _ = kept.Turn("x") },
		"list":  func() { _, _ = seen.Messages("x", 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a %s after the end went through", name)
				}
			}()
			use()
		}()
	}
}
