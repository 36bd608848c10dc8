package desk

import (
	"slices"
	"time"

	"countersign/store"
)

// atOnce are the kinds of timers that are set for now, or put off: after a failure, or while a run is under way. What they ask for is to be done soon,
// whatever the clock says.
var atOnce = map[store.TimerKind]bool{
	store.TimerInbox: true, store.TimerThink: true, store.TimerRun: true, store.TimerPreview: true, store.TimerShowFirst: true, store.TimerShow: true, store.TimerShowLast: true,
}

// due reads what is to be done now of a kind, and where there is nothing, when the next falls due; zero: there is none. What rests while everything is
// paused is left out.
func (d *Desk) due(r store.Reader, kind store.TimerKind, w *watch) (due []store.Timer, next time.Time, err error) {
	if due, next, err = d.fallen(r, kind, w); err != nil || !halted[kind] || len(due) == 0 {
		return due, next, err
	}
	due, err = awake(r, due)
	return due, next, err
}

// fallen is due without looking at a pause.
func (d *Desk) fallen(r store.Reader, kind store.TimerKind, w *watch) (due []store.Timer, next time.Time, err error) {
	now := d.now()
	if due, err = r.DueTimers(kind, now, 1024); err != nil {
		return due, next, err
	}
	if atOnce[kind] && w.search() {
		stranded, err := w.stranded(r, kind, now)
		if err != nil {
			return nil, next, err
		}
		due = append(due, stranded...)
	}
	if len(due) > 0 {
		return due, next, nil
	}
	timer, err := r.NextTimer(kind)
	if err != nil {
		return nil, next, ignoreNotFound(err)
	}
	return nil, timer.Due, nil
}

// watch looks for what lies far ahead although it was to be done soon, because the clock was set back: once a second, as what is written when the clock was
// set already may bear the time from before, and all the time while there is some.
type watch struct {
	searched time.Time
	found    bool
}

func (w *watch) search() bool { return w.found || time.Since(w.searched) >= poll }

const (
	mostStranded = 1024        // are looked through at once
	inOrder      = time.Second // deliveries that come together are told apart by less
)

// stranded reads what lies ahead only because the clock was set back since.
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
