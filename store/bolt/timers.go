package bolt

import (
	"bytes"
	"fmt"
	"time"

	"countersign/store"
)

func timerKindRef(kind store.TimerKind, ref string) []byte { return text(text(nil, string(kind)), ref) }

// timerKey is where the timer itself lies, given the row of timer_ref, which is its due time.
func timerKey(kind store.TimerKind, due []byte, ref string) []byte {
	return text(append(text(nil, string(kind)), due...), ref)
}

func (t reader) Timer(kind store.TimerKind, ref string) (store.Timer, error) {
	var timer store.Timer
	due := t.rows.get(timerRef, timerKindRef(kind, ref))
	if due == nil {
		return timer, fmt.Errorf("timer %s of %q: %w", kind, ref, store.ErrNotFound)
	}
	err := decode(t.rows.get(timers, timerKey(kind, due, ref)), &timer)
	return timer, err
}

func (t reader) DueTimers(kind store.TimerKind, now time.Time, limit int) ([]store.Timer, error) {
	var out []store.Timer
	for _, v := range t.rows.scan(timers, text(nil, string(kind)), nil) {
		if len(out) >= limit {
			break
		}
		var timer store.Timer
		if err := decode(v, &timer); err != nil {
			return nil, err
		}
		if timer.Due.After(now) {
			break
		}
		out = append(out, timer)
	}
	return out, nil
}

func (t reader) NextTimer(kind store.TimerKind) (store.Timer, error) {
	next, err := t.Timers(kind, 1)
	if err != nil {
		return store.Timer{}, err
	}
	if len(next) == 0 {
		return store.Timer{}, fmt.Errorf("timers %s: %w", kind, store.ErrNotFound)
	}
	return next[0], nil
}

func (t reader) Timers(kind store.TimerKind, limit int) ([]store.Timer, error) {
	return listTo[store.Timer](t.rows.scan(timers, text(nil, string(kind)), nil), limit)
}

func (t *tx) SetTimer(timer store.Timer) error {
	if err := keyable("timer's kind", string(timer.Kind)); err != nil {
		return err
	}
	if err := keyable("timer's ref", timer.Ref); err != nil {
		return err
	}
	value, err := encode(t.rows.scratch.space(256), &timer)
	if err != nil {
		return err
	}
	value = t.rows.scratch.done(value)
	ref, due := timerKindRef(timer.Kind, timer.Ref), moment(nil, timer.Due)
	key := timerKey(timer.Kind, due, timer.Ref)
	before := t.rows.get(timerRef, ref)
	if bytes.Equal(before, due) {
		return t.rows.set(timers, key, t.rows.get(timers, key), value)
	}
	if before != nil {
		if err := t.rows.drop(timers, timerKey(timer.Kind, before, timer.Ref)); err != nil {
			return err
		}
	}
	if err := t.rows.set(timerRef, ref, before, due); err != nil {
		return err
	}
	return t.rows.set(timers, key, nil, value)
}

func (t *tx) ClearTimer(kind store.TimerKind, ref string) error {
	key := timerKindRef(kind, ref)
	due := t.rows.get(timerRef, key)
	if due == nil {
		return nil
	}
	if err := t.rows.remove(timerRef, key, due); err != nil {
		return err
	}
	return t.rows.drop(timers, timerKey(kind, due, ref))
}
