package desk

import (
	"context"
	"time"

	"countersign/store"
)

// Wake has every worker look at once what is due. Whoever sets the clock forward calls it; otherwise workers notice within a second.
func (d *Desk) Wake() {
	for kind := range d.bells {
		d.bells.ring(map[store.TimerKind]bool{kind: true})
	}
}

// pendingTries bounds how many timers of a kind are looked at for one that is being tried again, or that a pause does not hold up.
const pendingTries = 1000

// ahead lists a kind's timers that a pause does not hold up, due or not.
func ahead(r store.Reader, kind store.TimerKind) ([]store.Timer, error) {
	timers, err := r.Timers(kind, pendingTries)
	if err != nil {
		return nil, err
	}
	return awake(r, timers)
}

// NextDue is when the next thing falls due; zero: nothing will by itself, which what waits for the end of a pause does not.
func (d *Desk) NextDue(ctx context.Context) (next time.Time, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		next = time.Time{}
		for kind := range d.bells {
			timers, err := ahead(r, kind)
			if err != nil {
				return err
			}
			if len(timers) > 0 && (next.IsZero() || timers[0].Due.Before(next)) {
				next = timers[0].Due
			}
		}
		return nil
	})
	return next, err
}

// Idle reports whether all is done that was due: nothing is due or being tried again but what a pause holds up, and no handler runs. Scenarios and tests
// wait for it, as nothing happens then until somebody does something or time passes.
func (d *Desk) Idle(ctx context.Context) (idle bool, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		idle = true
		for kind := range d.bells {
			timers, err := ahead(r, kind)
			if err != nil {
				return err
			}
			for _, t := range timers {
				idle = idle && t.Tries == 0 && t.Due.After(d.now())
			}
		}
		return nil
	})
	// A handler may still be at work after its last transaction, telling somebody what became of it: so this is looked at second.
	return idle && d.handling.Load() == 0, err
}
