package desk

import (
	"time"

	"countersign/store"
)

// atOnce are the kinds of timers that are set for now, or put off after a failure: for a short while, or for as long as whoever failed asked for. farAhead
// and muchLater are far more than that.
var atOnce = map[store.TimerKind]bool{store.TimerInbox: true, store.TimerThink: true, store.TimerShow: true}

const (
	farAhead  = 10 * time.Minute
	muchLater = 24 * time.Hour
)

// due reads what is to be done now of a kind, and where there is nothing, when the next falls due; zero: there is none.
func (d *Desk) due(r store.Reader, kind store.TimerKind) (due []store.Timer, next time.Time, err error) {
	now := d.now()
	if due, err = r.DueTimers(kind, now, 1024); err != nil || len(due) > 0 {
		return due, next, err
	}
	timer, err := r.NextTimer(kind)
	if err != nil {
		return nil, next, ignoreNotFound(err)
	}
	ahead := farAhead
	if timer.Tries > 0 {
		ahead = muchLater
	}
	if atOnce[kind] && timer.Due.After(now.Add(ahead)) {
		return []store.Timer{timer}, next, nil // the clock was set back since: it was due then
	}
	return nil, timer.Due, nil
}
