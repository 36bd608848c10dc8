package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"countersign/approvers"
	"countersign/store"
)

func reflectSame(a, b any) bool { return reflect.DeepEqual(a, b) }

// crowd starts n goroutines at the same moment, and waits for them.
func crowd(n int, work func(i int)) {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-gate
			work(i)
		})
	}
	close(gate)
	wg.Wait()
}

// In oneWinner, many writers read the same version of a record and write the record. One writer succeeds, and all other
// writers get a conflict.
func oneWinner(h *harness) {
	const people = 16
	for round := range 10 {
		id := fmt.Sprint("r", round)
		h.update(func(tx store.Tx) error {
			return tx.PutRequest(approvers.Request{ID: id, State: approvers.Pending, CreatedAt: start})
		})
		var read approvers.Request
		h.view(func(r store.Reader) (err error) { read, err = r.Request(id); return err })
		var winners, losers atomic.Int64
		crowd(people, func(i int) {
			decided := read
			decided.State, decided.ClosedName = approvers.Rejected, fmt.Sprint("person ", i)
			err := h.store.Update(h.Context(), func(tx store.Tx) error {
				if err := tx.PutRequest(decided); err != nil {
					return err
				}
				head, err := tx.AuditHead(id)
				if !errors.Is(err, store.ErrNotFound) {
					return fmt.Errorf("the chain says that it was decided before: %w", err)
				}
				return tx.AppendAudit(approvers.AuditRecord{Chain: id, At: start, Kind: approvers.AuditDecided}.Link(head), nil)
			})
			switch {
			case err == nil:
				winners.Add(1)
			case errors.Is(err, store.ErrConflict):
				losers.Add(1)
			default:
				h.Errorf("person %d: %v", i, err)
			}
		})
		if winners.Load() != 1 || losers.Load() != people-1 {
			h.Fatalf("round %d: %d won and %d lost, want 1 and %d", round, winners.Load(), losers.Load(), people-1)
		}
	}
}

// In neighbours, closures that fail or panic share commits with closures that succeed. The failed closures do not
// affect the successful closures.
func neighbours(h *harness) {
	const crew, each = 32, 6
	own := func(i, n int) string { return fmt.Sprintf("own/%d/%d", i, n) }
	count := func(tx store.Tx) error { return tx.AddCounter(store.Counter{Key: "shared", At: start, ID: "x", N: 1}) }
	h.write(count)
	crowd(crew, func(i int) {
		for n := range each {
			err := func() (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = p.(error)
					}
				}()
				return h.store.Update(h.Context(), func(tx store.Tx) error {
					// Each goroutine writes to its own record and to a shared record.
					if err := tx.PutSetting(store.Setting{Key: own(i, n), Value: json.RawMessage(`1`)}); err != nil {
						return err
					}
					shared, err := tx.Setting("shared")
					if err != nil && !errors.Is(err, store.ErrNotFound) {
						return err
					}
					shared.Key, shared.Value = "shared", json.RawMessage(fmt.Sprint(shared.Version+1))
					if err := tx.PutSetting(shared); err != nil {
						return err
					}
					if err := tx.SetTimer(store.Timer{Kind: store.TimerRun, Ref: "shared", Due: at(n), Lane: own(i, n)}); err != nil {
						return err
					}
					switch i % 4 {
					case 1: // adds an existing counter a second time, which has no effect
						return errors.Join(count(tx), errMine)
					case 2:
						panic(errMine)
					}
					return nil
				})
			}()
			if fails := i%4 == 1 || i%4 == 2; fails != (err != nil) || (fails && !errors.Is(err, errMine)) {
				h.Errorf("%s: got error %v", own(i, n), err)
			}
		}
	})
	h.reopen()
	h.view(func(r store.Reader) error {
		shared, err := r.Setting("shared")
		h.same("how often the shared record was written", shared.Version, uint64(crew/2*each))
		h.same("its value", string(shared.Value), fmt.Sprint(crew/2*each))
		for i := range crew {
			for n := range each {
				_, err := r.Setting(own(i, n))
				if stays := i%4 == 0 || i%4 == 3; stays != (err == nil) {
					h.Errorf("%s: got error %v", own(i, n), err)
				}
			}
		}
		timer, err2 := r.Timer(store.TimerRun, "shared")
		counter, err3 := r.CounterSum("shared", start.Add(-time.Second))
		h.same("the shared counter", counter, 1)
		var i, n int
		if _, err := fmt.Sscanf(timer.Lane, "own/%d/%d", &i, &n); err != nil || i%4 == 1 || i%4 == 2 {
			h.Errorf("the shared timer is of %q, which failed", timer.Lane)
		}
		return errors.Join(err, err2, err3)
	})
	h.update(func(tx store.Tx) error {
		n, err := tx.PruneCounters(start.Add(time.Second), 10)
		h.same("how many counters are forgotten", n, 1)
		return err
	})
}

// counters checks that no change is lost if each transaction reads a value, changes it and writes it back.
func counters(h *harness) {
	const crew, each = 16, 8
	crowd(crew, func(i int) {
		for range each {
			err := h.store.Update(h.Context(), func(tx store.Tx) error {
				t, err := tx.Turn("counter")
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return err
				}
				t.ID, t.Step = "counter", t.Step+1
				return tx.PutTurn(t)
			})
			if err != nil {
				h.Errorf("count: %v", err)
			}
		}
	})
	h.view(func(r store.Reader) error {
		t, err := r.Turn("counter")
		h.same("the count", t.Step, crew*each)
		return err
	})
}

// seenWhenTold checks that every view that begins after Update has returned sees the writes of this Update.
func seenWhenTold(h *harness) {
	crowd(8, func(i int) {
		for n := range 10 {
			id := fmt.Sprintf("%d/%d", i, n)
			if err := h.store.Update(h.Context(), func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: id}) }); err != nil {
				h.Errorf("update: %v", err)
			}
			if err := h.store.View(h.Context(), func(r store.Reader) error { _, err := r.Turn(id); return err }); err != nil {
				h.Errorf("view: %v", err)
			}
		}
	})
}
