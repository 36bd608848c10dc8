// Package storetest is the conformance suite that every backend of package store passes. The suite depends only on the
// contract.
//
// The suite tests that a backend stores every field of every record, and orders every list as the contract says. The
// suite also tests that a backend checks versions, and undoes only the writes of failed closures. Most tests run twice.
// In the second run, the store is closed and reopened after transactions, or after groups of independent transactions. The store's own check runs after every test.
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

// Opener opens one store. After the store is closed, a second call of the Opener opens the store with the same data.
type Opener func() (store.Store, error)

// Run runs the suite. fresh returns an Opener of an empty store.
func Run(t *testing.T, fresh func(t *testing.T) Opener) {
	for _, c := range []struct {
		name string
		test func(*harness)
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
		{"a panic undoes everything and is passed on", panicked},
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
		{"counters are summed", counterSums},
		{"counters are forgotten", forgotten},
		{"open grants", openGrants},
		{"grants are erased", grantsErased},
		{"absences", absences},
		{"timers", timers},
		{"inbox", inbox},
		{"outbox messages", outboxMessages},
		{"outbox messages are erased", outboxErased},
		{"renderings", renderings},
		{"elicitations", elicitations},
		{"files", files},
		{"the policy in force", policyInForce},
		{"audit chains", auditChains},
		{"audit refusals", auditRefusals},
		{"the journal", journal},
		{"signed heads", heads},
		{"payloads are erased", payloadsErased},
		{"chains are pruned", chainsPruned},
		{"silent conversations", silent},
		{"conversations are erased", conversationsErased},
		{"erasing has a limit", erasedInParts},
		{"turns are erased", turnErased},
		{"erasing a turn has a limit", turnErasedInParts},
		{"the check finds a broken link", nothingBroken},
	} {
		for mode, restless := range map[string]bool{"open": false, "reopened": true} {
			t.Run(c.name+"/"+mode, func(t *testing.T) {
				if testing.Short() {
					t.Skip("skipped because of -short")
				}
				t.Parallel()
				h := newHarness(t, fresh(t), restless)
				defer h.leave()
				c.test(h)
			})
		}
	}
	runAll(t, fresh, map[string]func(*harness){"closing": closing, "model": model})
	RunConcurrent(t, fresh)
}

// RunConcurrent runs the part of the suite with many concurrent writers.
func RunConcurrent(t *testing.T, fresh func(t *testing.T) Opener) {
	runAll(t, fresh, map[string]func(*harness){
		"one version wins":           oneWinner,
		"neighbours":                 neighbours,
		"counters add up":            counters,
		"many rows":                  manyRows,
		"updates are seen when told": seenWhenTold,
	})
}

func runAll(t *testing.T, fresh func(t *testing.T) Opener, tests map[string]func(*harness)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, fresh(t), false)
			h.fresh = fresh
			defer h.leave()
			test(h)
		})
	}
}

// harness holds a store under test. If restless is set, the store is closed and reopened after transactions (see rest).
type harness struct {
	*testing.T
	store    store.Store
	open     Opener
	restless bool
	rests    int                       // transactions after which a restless store can be reopened
	grouped  bool                      // the method together is running
	checks   []func()                  // checks that run at the end of together
	fresh    func(t *testing.T) Opener // makes another store, for a test that needs more than one
}

func newHarness(t *testing.T, open Opener, restless bool) *harness {
	h := &harness{T: t, open: open, restless: restless}
	h.enter()
	return h
}

// leave runs the check of the store, and closes the store.
func (h *harness) leave() {
	if err := h.store.Check(context.WithoutCancel(h.Context())); err != nil {
		h.Errorf("check after the test: %v", err)
	}
	if err := h.store.Close(); err != nil {
		h.Errorf("close: %v", err)
	}
}

func (h *harness) enter() {
	h.Helper()
	s, err := h.open()
	if err != nil {
		h.Fatalf("open: %v", err)
	}
	h.store = s
}

func (h *harness) reopen() {
	h.Helper()
	if err := h.store.Close(); err != nil {
		h.Fatalf("close: %v", err)
	}
	h.enter()
}

// rest closes and reopens a restless store: after each of the first transactions of a test, and later after every
// fifth, because opening some stores takes long.
func (h *harness) rest() {
	const first, later = 6, 5
	if h.restless && (h.rests < first || h.rests%later == 0) {
		h.reopen()
	}
	h.rests++
}

// try runs a transaction and returns its error.
func (h *harness) try(fn func(store.Tx) error) error {
	h.Helper()
	err := h.store.Update(h.Context(), fn)
	if !h.grouped {
		h.rest()
	}
	return err
}

// together runs transactions that do not depend on each other. The store is reopened only after the last transaction,
// because opening some stores takes long.
func (h *harness) together(transactions func()) {
	h.Helper()
	h.grouped = true
	transactions()
	h.grouped = false
	h.rest()
	for _, check := range h.checks {
		check()
	}
	h.checks = nil
}

// afterwards runs a check. Within the method together, the check runs after all transactions.
func (h *harness) afterwards(check func()) {
	if !h.grouped {
		check()
		return
	}
	h.checks = append(h.checks, check)
}

// update runs a transaction that must succeed.
func (h *harness) update(fn func(store.Tx) error) {
	h.Helper()
	if err := h.try(fn); err != nil {
		h.Fatalf("update: %v", err)
	}
}

// write runs a transaction of puts that must all succeed.
func (h *harness) write(puts ...func(store.Tx) error) {
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

// refused runs a transaction that must fail with the given error.
func (h *harness) refused(want error, fn func(store.Tx) error) {
	h.Helper()
	if err := h.try(fn); !errors.Is(err, want) {
		h.Fatalf("update: got error %v, want %v", err, want)
	}
}

// view runs reads that must succeed.
func (h *harness) view(fn func(store.Reader) error) {
	h.Helper()
	if err := h.store.View(h.Context(), fn); err != nil {
		h.Fatalf("view: %v", err)
	}
}

// same requires that a read value equals the expected value.
func (h *harness) same(what string, got, want any) {
	h.Helper()
	if !reflect.DeepEqual(got, want) {
		h.Errorf("%s is not as it was stored (-want +got):\n%s", what, cmp.Diff(want, got))
	}
}

// start is the time to which the times of the tests are relative.
var start = time.Date(2026, 3, 29, 0, 59, 59, 999_999_000, time.UTC)

func at(micros int) time.Time { return start.Add(time.Duration(micros) * time.Microsecond) }
