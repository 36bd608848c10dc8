// Package storetest is the one conformance suite that every backend of package store passes. It knows the contract and
// nothing of any backend.
//
// It promises that a backend which passes keeps every record whole, orders every list as the contract says, guards
// versions, undoes what failed and nothing else, and still does so when the store is closed and opened again
// after each transaction. The store's own check runs after every test.
package storetest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"countersign/store"
)

// Opener opens one store. It is called again only after the store was closed, and then finds what was stored.
type Opener func() (store.Store, error)

// Run runs the suite. fresh makes an opener of a store with nothing in it.
func Run(t *testing.T, fresh func(t *testing.T) Opener) {
	for _, c := range []struct {
		name string
		test func(*house)
	}{
		{"records are kept whole", keptWhole},
		{"times are in UTC to the microsecond", times},
		{"nil and empty stay apart", nilAndEmpty},
		{"exact bytes", exactBytes},
		{"what is not there", notThere},
		{"records without an id", withoutID},
		{"any text is an id", anyText},
		{"versions", versions},
		{"a refused write leaves the transaction usable", usableAfterRefusal},
		{"an error undoes everything", undone},
		{"a panic undoes everything and goes on", panicked},
		{"ending the goroutine undoes everything", goneExit},
		{"reads see the transaction's own writes", ownWrites},
		{"nothing shows before the commit", isolation},
		{"a view is one snapshot", snapshot},
		{"contexts", contexts},
		{"messages", messages},
		{"conversations at a place", places},
		{"calls of a turn", calls},
		{"open requests", openRequests},
		{"requests of a person", requestsOf},
		{"tallies are counted", tallies},
		{"tallies are forgotten", forgotten},
		{"open grants", openGrants},
		{"absences", absences},
		{"timers", timers},
		{"inbox", inbox},
		{"surfaces", surfaces},
		{"renderings", renderings},
		{"elicitations", elicitations},
		{"files", files},
		{"audit chains", auditChains},
		{"audit refusals", auditRefusals},
		{"the journal", journal},
		{"signed heads", heads},
		{"payloads are erased", payloadsErased},
		{"chains are pruned", chainsPruned},
		{"silent conversations", silent},
		{"conversations are erased", conversationsErased},
		{"erasing has a limit", erasedInParts},
		{"the check finds a broken link", nothingBroken},
	} {
		for mode, restless := range map[string]bool{"open": false, "reopened": true} {
			t.Run(c.name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, fresh(t), restless)
				defer h.leave()
				c.test(h)
			})
		}
	}
	for name, test := range map[string]func(*house){
		"closing":                    closing,
		"one version wins":           oneWinner,
		"neighbours":                 neighbours,
		"counters add up":            counters,
		"model":                      model,
		"updates are seen when told": seenWhenTold,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, fresh(t), false)
			h.fresh = fresh
			defer h.leave()
			test(h)
		})
	}
}

// house is a store under test. A restless one is closed and opened again after each transaction.
type house struct {
	*testing.T
	store    store.Store
	open     Opener
	restless bool
	fresh    func(t *testing.T) Opener // for a test that needs more than one store
}

func newHouse(t *testing.T, open Opener, restless bool) *house {
	h := &house{T: t, open: open, restless: restless}
	h.enter()
	return h
}

// leave runs the store's check and closes it.
func (h *house) leave() {
	if err := h.store.Check(context.WithoutCancel(h.Context())); err != nil {
		h.Errorf("check after the test: %v", err)
	}
	if err := h.store.Close(); err != nil {
		h.Errorf("close: %v", err)
	}
}

func (h *house) enter() {
	h.Helper()
	s, err := h.open()
	if err != nil {
		h.Fatalf("open: %v", err)
	}
	h.store = s
}

func (h *house) reopen() {
	h.Helper()
	if err := h.store.Close(); err != nil {
		h.Fatalf("close: %v", err)
	}
	h.enter()
}

// try runs a transaction and gives its error.
func (h *house) try(fn func(store.Tx) error) error {
	h.Helper()
	err := h.store.Update(h.Context(), fn)
	if h.restless {
		h.reopen()
	}
	return err
}

// update runs a transaction that succeeds.
func (h *house) update(fn func(store.Tx) error) {
	h.Helper()
	if err := h.try(fn); err != nil {
		h.Fatalf("update: %v", err)
	}
}

// write runs a transaction of puts that all succeed.
func (h *house) write(puts ...func(store.Tx) error) {
	h.Helper()
	h.update(func(tx store.Tx) error {
		for _, put := range puts {
			if err := put(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// refused runs a transaction that fails with the given error.
func (h *house) refused(want error, fn func(store.Tx) error) {
	h.Helper()
	if err := h.try(fn); !errors.Is(err, want) {
		h.Fatalf("update: got error %v, want %v", err, want)
	}
}

// view runs reads that succeed.
func (h *house) view(fn func(store.Reader) error) {
	h.Helper()
	if err := h.store.View(h.Context(), fn); err != nil {
		h.Fatalf("view: %v", err)
	}
}

// same compares what was read to what was meant.
func (h *house) same(what string, got, want any) {
	h.Helper()
	if !reflect.DeepEqual(got, want) {
		h.Errorf("%s is not as it was stored (-want +got):\n%s", what, cmp.Diff(want, got))
	}
}

// start is when the tests' stories begin.
var start = time.Date(2026, 3, 29, 0, 59, 59, 999_999_000, time.UTC)

func at(micros int) time.Time { return start.Add(time.Duration(micros) * time.Microsecond) }
