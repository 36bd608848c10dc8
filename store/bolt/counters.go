package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"countersign/store"
)

// A counter has two rows. The row by key is for sums, and the row by time is for pruning.

func counterKey(key string, at []byte, id string) []byte {
	return text(append(text(nil, key), at...), id)
}

func counterTimeKey(at []byte, key, id string) []byte {
	return text(text(append([]byte(nil), at...), key), id)
}

// cutCounter splits a key of the bucket counters. The result at is the time in the encoding of the key.
func cutCounter(k []byte) (key string, at []byte, id string, ok bool) {
	key, rest, ok := cutText(k)
	if !ok || len(rest) < 8 {
		return "", nil, "", false
	}
	at = rest[:8]
	id, rest, ok = cutText(rest[8:])
	return key, at, id, ok && len(rest) == 0
}

// cutCounterTime splits a key of the bucket tally_time.
func cutCounterTime(k []byte) (at []byte, key, id string, ok bool) {
	if len(k) < 8 {
		return nil, "", "", false
	}
	key, rest, ok := cutText(k[8:])
	if !ok {
		return nil, "", "", false
	}
	id, rest, ok = cutText(rest)
	return k[:8], key, id, ok && len(rest) == 0
}

func (t reader) CounterSum(key string, after time.Time) (int, error) {
	prefix := text(nil, key)
	sum := uint64(0)
	for k, n := range t.rows.scan(counters, prefix, moment(prefix[:len(prefix):len(prefix)], after.Add(time.Microsecond))) {
		if len(n) != 8 {
			return 0, fmt.Errorf("store: the row %x of %s is damaged", k, counters)
		}
		sum += binary.BigEndian.Uint64(n)
	}
	return int(sum), nil
}

func (t *tx) AddCounter(counter store.Counter) error {
	if err := keyable("counter's key", counter.Key); err != nil {
		return err
	}
	if err := keyable("counter's id", counter.ID); err != nil {
		return err
	}
	if counter.N < 1 {
		return fmt.Errorf("store: the counter %q of %q adds %d: the minimum is 1", counter.ID, counter.Key, counter.N)
	}
	return t.rows.addCounter(counter.Key, moment(nil, counter.At), counter.ID, uint64(counter.N))
}

func (r *rows) addCounter(key string, at []byte, id string, n uint64) error {
	row, byTime := counterKey(key, at, id), counterTimeKey(at, key, id)
	old := r.get(counters, row)
	if err := r.set(counters, row, old, number(nil, n)); err != nil || old != nil {
		return err
	}
	return r.set(counterTime, byTime, nil, []byte{})
}

func (t *tx) PruneCounters(before time.Time, limit int) (int, error) {
	bound := moment(nil, before)
	old := t.rows.keys(counterTime, nil, limit)
	old = slices.DeleteFunc(old, func(k []byte) bool { return bytes.Compare(k, bound) >= 0 })
	var rows [][]byte
	for _, byTime := range old {
		if at, key, id, ok := cutCounterTime(byTime); ok {
			rows = append(rows, counterKey(key, at, id))
		}
	}
	return len(old), errors.Join(t.rows.discardAll(counterTime, old), t.rows.discardAll(counters, rows))
}
