package jobs

import (
	"slices"
	"time"

	"countersign/store"
)

// due reads the timers of a kind to handle now. If there are none, it returns the time of the next one; zero: there
// is none. It skips timers that may not be handled now.
func (r *Runner) due(reader store.Reader, kind store.TimerKind, w *watch) (due []store.Timer, next time.Time, err error) {
	if due, next, err = r.fallen(reader, kind, w); err != nil || len(due) == 0 {
		return due, next, err
	}
	due, err = r.Awake(reader, due)
	return due, next, err
}

// fallen is due without skipping. A kind of which nothing is due costs one read of the index, as it is read every second.
func (r *Runner) fallen(reader store.Reader, kind store.TimerKind, w *watch) (due []store.Timer, next time.Time, err error) {
	first, err := reader.NextTimer(kind)
	if err != nil {
		return nil, next, store.IgnoreNotFound(err)
	}
	now := r.Now()
	if !first.Due.After(now) {
		if due, err = reader.DueTimers(kind, now, 1024); err != nil {
			return due, next, err
		}
	}
	if r.Soon[kind] && w.search() {
		stranded, err := w.stranded(reader, kind, now)
		if err != nil {
			return nil, next, err
		}
		due = append(due, stranded...)
	}
	if len(due) > 0 {
		return due, next, nil
	}
	return nil, first.Due, nil
}

// watch finds timers that should run soon but are far ahead because the clock was set back. It looks once a second,
// because a transaction may still use the old time after the clock was set, and continuously while there are such
// timers.
type watch struct {
	searched time.Time
	found    bool
}

func (w *watch) search() bool { return w.found || time.Since(w.searched) >= poll }

const (
	mostStranded = 1024        // timers read at once
	inOrder      = time.Second // timers of one burst of deliveries differ by less
)

// stranded reads the timers that lie ahead only because the clock was set back.
func (w *watch) stranded(r store.Reader, kind store.TimerKind, now time.Time) ([]store.Timer, error) {
	w.searched = time.Now()
	timers, err := r.Timers(kind, mostStranded)
	if err != nil {
		return nil, err
	}
	timers = slices.DeleteFunc(timers, func(t store.Timer) bool {
		set := t.Due
		if !t.PutOff.IsZero() {
			set = t.PutOff
		}
		return !t.Due.After(now) || !set.After(now.Add(inOrder))
	})
	w.found = len(timers) > 0
	return timers, nil
}
