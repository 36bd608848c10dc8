package storetest

import (
	"errors"
	"fmt"
	"math"
	"time"

	"countersign/store"
)

func counterSums(h *harness) {
	add := func(key, id string, when, n int) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.AddCounter(store.Counter{Key: key, ID: id, At: at(when), N: n}) }
	}
	h.write(add("t/c", "1", -5, 1), add("t/c", "2", 0, 20), add("t/c", "3", 0, 300), add("t/c", "4", 7, 4000), add("t/d", "5", 0, 1), add("t", "6", 0, 1))
	h.write(add("t/c", "4", 7, 4000)) // the same event at the same time is not counted again
	for after, want := range map[int]int{-100: 4321, -6: 4321, -5: 4320, -1: 4320, 0: 4000, 6: 4000, 7: 0} {
		counted(h, "t/c", at(after), want)
	}
	counted(h, "t/c", time.Time{}, 4321)
	counted(h, "t/c", at(6).Add(time.Nanosecond), 4000)
	counted(h, "t/c", at(7).Add(-time.Nanosecond), 4000)
	counted(h, "t/", time.Time{}, 0)
	h.write(add("t/c", "4", 9, 1)) // the same event at another time is counted separately
	counted(h, "t/c", time.Time{}, 4322)
	h.write(add("big", "1", 0, math.MaxInt)) // the largest number of tokens
	counted(h, "big", time.Time{}, math.MaxInt)
	for _, n := range []int{0, -1, math.MinInt} {
		if err := h.try(add("t/c", "none", 0, n)); err == nil {
			h.Errorf("a counter that counts for %d was stored", n)
		}
	}
	counted(h, "t/c", time.Time{}, 4322)
}

func counted(h *harness, key string, after time.Time, want int) {
	h.Helper()
	h.view(func(r store.Reader) error {
		n, err := r.CounterSum(key, after)
		h.same(fmt.Sprintf("what is counted under %q after %s", key, after), n, want)
		return err
	})
}

// forgotten checks that PruneCounters deletes the oldest counters first, up to the limit. The keys of the counters make
// no difference.
func forgotten(h *harness) {
	add := func(key string, when, n int) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.AddCounter(store.Counter{Key: key, ID: "x", At: at(when), N: n}) }
	}
	forget := func(before time.Time, limit, want int) {
		h.Helper()
		h.update(func(tx store.Tx) error {
			n, err := tx.PruneCounters(before, limit)
			h.same(fmt.Sprintf("at most %d forgotten before %s", limit, before), n, want)
			return err
		})
	}
	left := func(a, b int) {
		h.Helper()
		counted(h, "a", time.Time{}, a)
		counted(h, "b", time.Time{}, b)
	}
	forget(at(1000), 10, 0)
	h.write(add("a", 5, 1), add("b", 3, 10), add("a", 4, 100), add("b", -70, 1000), add("b", 6, 10000))
	left(101, 11010)
	forget(at(1000), 0, 0)
	forget(at(1000), -1, 0)
	forget(at(-70), 10, 0) // a counter at exactly the given time is not deleted
	forget(at(5), 1, 1)
	left(101, 10010)
	forget(at(5), 1, 1)
	left(101, 10000)
	forget(at(5), 10, 1)
	left(1, 10000)
	forget(at(5).Add(time.Nanosecond), 10, 0) // times are stored to the microsecond, so the counter is not before this time
	h.write(add("b", 3, 7))                   // counted again
	left(1, 10007)
	h.update(func(tx store.Tx) error { // a counter written twice in the same transaction is deleted once
		for range 2 {
			if err := add("a", 2, 50)(tx); err != nil {
				return err
			}
		}
		n, err := tx.PruneCounters(at(3), 10)
		h.same("forgotten in the transaction that counted it", n, 1)
		return err
	})
	h.refused(errMine, func(tx store.Tx) error { return errors.Join(add("a", 5, 9)(tx), errMine) }) // the failed transaction does not count the event again
	left(1, 10007)
	forget(at(1000), 10, 3)
	left(0, 0)
	forget(at(1000), 10, 0)
}
