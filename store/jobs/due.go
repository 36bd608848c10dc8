package jobs

import (
	"slices"
	"time"

	"countersign/store"
)

// The method due reads at most limit due timers of a kind. For a kind in Options.Soon, the method also returns the
// timers that watch finds. The method leaves out timers that may not be handled now (see Options.Awake). If no timer of
// the kind is due, next is the due time of the next timer, or zero if no timer is set. If the method leaves out all due
// timers, next is in the past.
func (r *Runner) due(reader store.Reader, shares store.Shares, kind store.TimerKind, w *watch, limit int) (due []store.Timer, next time.Time, err error) {
	if due, next, err = r.fallen(reader, shares, kind, w, limit); err != nil || len(due) == 0 {
		return due, next, err
	}
	next = due[0].Due
	due, err = r.Awake(reader, due)
	return due, next, err
}

// mostDue is how many due timers one read returns. The limit does not count timers that wait in held lanes (see
// heldLane).
const mostDue = 1024

// mostFirst is how many timers the first read returns. If some of these timers are not due, there are no further due
// timers, and no second read is needed.
const mostFirst = 8

// fallen is like the method due, but leaves out no timers. fallen runs often for each kind. If no timer of the kind
// is due, fallen usually reads the index only once.
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
	if len(due) == mostFirst { // there may be more due timers
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

// watch finds timers that should run soon, but have a much later due time because the clock was set back, or because
// the clock of the replica that set them is ahead. If the last search found such timers, watch searches at the next
// read. Otherwise, watch searches at most once a second. A transaction that began with the old time may commit after
// the clock was set. Therefore the runner reads timers every second for a minute after the clock was set (see quiet).
type watch struct {
	searched time.Time
	found    bool
}

func (w *watch) search() bool { return w.found || time.Since(w.searched) >= poll }

const (
	mostStranded = 1024        // timers that one search reads
	inOrder      = time.Second // if the clock was set back, a timer that is due at most this much later than now keeps its due time, so that a burst of deliveries stays in order
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
