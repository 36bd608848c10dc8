package bolt

import (
	"bytes"
	"fmt"
	"time"

	"countersign/store"
	"countersign/store/record"
)

func timerKindRef(kind store.TimerKind, ref string) []byte { return text(text(nil, string(kind)), ref) }

// timerKey returns the key of a timer. The parameter due is the encoded due time, which is the value of the timer's row
// in timer_ref.
func timerKey(kind store.TimerKind, due []byte, ref string) []byte {
	return text(append(text(nil, string(kind)), due...), ref)
}

func (t reader) Timer(kind store.TimerKind, ref string) (store.Timer, error) {
	var timer store.Timer
	due, err := t.rows.fetch(timerRef, timerKindRef(kind, ref))
	if err != nil {
		return timer, err
	}
	if due == nil {
		return timer, fmt.Errorf("timer %s of %q: %w", kind, ref, store.ErrNotFound)
	}
	key := timerKey(kind, due, ref)
	v, err := t.rows.fetch(timers, key)
	switch {
	case err != nil:
		return timer, err
	case v == nil:
		return timer, t.rows.missing(timers, key)
	}
	return timer, record.Decode(v, &timer)
}

func (t reader) Timers(kind store.TimerKind, limit int) ([]store.Timer, error) {
	return t.TimersIn(store.AllShares, kind, time.Time{}, limit)
}

func (t reader) TimersIn(shares store.Shares, kind store.TimerKind, until time.Time, limit int) ([]store.Timer, error) {
	var out []store.Timer
	for k, v := range t.rows.sound(timers, text(nil, string(kind)), nil) {
		if len(out) >= limit {
			break
		}
		var timer store.Timer
		if err := record.Decode(v, &timer); err != nil {
			t.rows.note(damagedRow(timers, k, "it can't be decoded: "+err.Error()))
			continue
		}
		if !until.IsZero() && timer.Due.After(until) {
			break
		}
		if (shares == store.AllShares || shares.Has(timer.Share())) && t.isSet(k, timer) {
			out = append(out, timer)
		}
	}
	return out, nil
}

func (t reader) DueKinds(shares store.Shares, kinds []store.TimerKind, until time.Time) (due []store.TimerKind, err error) {
	for _, kind := range kinds {
		first, err := t.TimersIn(shares, kind, until, 1)
		if err != nil {
			return nil, err
		}
		if len(first) > 0 {
			due = append(due, kind)
		}
	}
	return due, nil
}

// isSet reports whether a row of timers matches the timer's row in timer_ref. If the two rows differ, the row of timers
// counts as damaged. Without this check, lists of due timers would return the timer repeatedly, and no handler could
// clear the timer.
func (t reader) isSet(k []byte, timer store.Timer) bool {
	due, there := t.rows.lookUp(timerRef, timerKindRef(timer.Kind, timer.Ref))
	if there {
		var damaged *store.DamagedError
		if due, damaged = t.rows.value(timerRef, timerKindRef(timer.Kind, timer.Ref), due); damaged != nil {
			return true // the row in timer_ref is damaged; the timer's handler rewrites it
		}
	}
	if there && bytes.Equal(timerKey(timer.Kind, due, timer.Ref), k) {
		return true
	}
	t.rows.note(damagedRow(timers, k, "no timer is set for that time"))
	return false
}

func (t *tx) SetTimer(timer store.Timer) error {
	if err := keyable("timer's kind", string(timer.Kind)); err != nil {
		return err
	}
	if err := keyable("timer's ref", timer.Ref); err != nil {
		return err
	}
	value, err := record.Append(t.rows.scratch.space(256), &timer)
	if err != nil {
		return err
	}
	value = t.rows.scratch.done(value)
	ref, due := timerKindRef(timer.Kind, timer.Ref), moment(nil, timer.Due)
	key := timerKey(timer.Kind, due, timer.Ref)
	before, err := t.rows.fetch(timerRef, ref)
	if err == nil && bytes.Equal(before, due) {
		var old []byte
		if old, err = t.rows.fetch(timers, key); err == nil {
			return t.rows.set(timers, key, old, value)
		}
	}
	if err != nil || before != nil {
		if err := t.ClearTimer(timer.Kind, timer.Ref); err != nil {
			return err
		}
	}
	if err := t.rows.set(timerRef, ref, nil, due); err != nil {
		return err
	}
	return t.rows.set(timers, key, nil, value)
}

func (t *tx) ClearTimer(kind store.TimerKind, ref string) error {
	key := timerKindRef(kind, ref)
	due, damaged := t.rows.fetch(timerRef, key)
	if damaged != nil {
		return t.clearDamaged(kind, ref)
	}
	if due == nil {
		return nil
	}
	if err := t.rows.remove(timerRef, key, due); err != nil {
		return err
	}
	_, err := t.rows.discard(timers, timerKey(kind, due, ref))
	return err
}

// clearDamaged removes a timer whose row in timer_ref is damaged and has no valid due time.
func (t *tx) clearDamaged(kind store.TimerKind, ref string) error {
	if _, err := t.rows.discard(timerRef, timerKindRef(kind, ref)); err != nil {
		return err
	}
	prefix := text(nil, string(kind))
	var keys [][]byte
	for k := range t.rows.sound(timers, prefix, nil) {
		if bytes.Equal(k, timerKey(kind, k[len(prefix):min(len(prefix)+8, len(k))], ref)) {
			keys = append(keys, k)
		}
	}
	for _, k := range keys {
		if _, err := t.rows.discard(timers, k); err != nil {
			return err
		}
	}
	return nil
}
