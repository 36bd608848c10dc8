package jobs

import (
	"slices"
	"time"

	"countersign/store"
)

// due reads the timers of a kind that are to be handled now, at most limit. The function skips timers that may not be
// handled now. If no timer is left, due also returns the due time of the next timer. This time is zero if no timer is
// set. The time is in the past if due skipped all due timers.
func (r *Runner) due(reader store.Reader, shares store.Shares, kind store.TimerKind, w *watch, limit int) (due []store.Timer, next time.Time, err error) {
	if due, next, err = r.fallen(reader, shares, kind, w, limit); err != nil || len(due) == 0 {
		return due, next, err
	}
	next = due[0].Due
	due, err = r.Awake(reader, due)
	return due, next, err
}

// mostDue is how many due timers one read returns. Timers that wait in held lanes do not count.
const mostDue = 1024

// mostFirst is how many timers are read in search of due ones. If not all of these timers are due, no second read is
// needed.
const mostFirst = 8

// fallen is like due, but skips no timers. Each kind is read often, so a kind without due timers costs only one read of
// the index.
func (r *Runner) fallen(
	reader store.Reader, shares store.Shares, kind store.TimerKind, w *watch, limit int,
) (due []store.Timer, next time.Time, err error) {
	first, err := reader.TimersIn(shares, kind, time.Time{}, mostFirst)
	if err != nil || len(first) == 0 {
		return nil, next, err
	}
	now := r.Now()
	for len(due) < len(first) && !first[len(due)].Due.After(now) {
		due = first[:len(due)+1]
	}
	if len(due) == mostFirst { // there may be more
		if due, err = reader.TimersIn(shares, kind, now, limit); err != nil {
			return due, next, err
		}
	}
	if r.Soon[kind] && w.search() {
		stranded, err := w.stranded(reader, shares, kind, now)
		if err != nil {
			return nil, next, err
		}
		due = append(due, stranded...)
	}
	if len(due) > 0 {
		return due, next, nil
	}
	return nil, first[0].Due, nil
}

// watch finds timers that should run soon, but are far ahead because the clock was set back. For a minute after the
// clock was set, watch looks once a second, because a transaction may still use the old time. While watch finds such
// timers, it looks at every read.
type watch struct {
	searched time.Time
	found    bool
}

func (w *watch) search() bool { return w.found || time.Since(w.searched) >= poll }

const (
	mostStranded = 1024        // timers that one search reads
	inOrder      = time.Second // maximum time between the first and last timer of one burst of deliveries
)

// stranded reads the timers that would be due if the clock had not been set back.
func (w *watch) stranded(r store.Reader, shares store.Shares, kind store.TimerKind, now time.Time) ([]store.Timer, error) {
	w.searched = time.Now()
	timers, err := r.TimersIn(shares, kind, time.Time{}, mostStranded)
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
