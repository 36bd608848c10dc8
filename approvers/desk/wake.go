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

// NextDue is when the next thing falls due; zero: nothing will by itself.
func (d *Desk) NextDue(ctx context.Context) (next time.Time, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		next = time.Time{}
		for kind := range d.bells {
			timer, err := r.NextTimer(kind)
			if ignoreNotFound(err) != nil {
				return err
			}
			if err == nil && (next.IsZero() || timer.Due.Before(next)) {
				next = timer.Due
			}
		}
		return nil
	})
	return next, err
}

// pendingTries bounds how many timers of a kind Idle looks at for one that is being tried again.
const pendingTries = 1000

// Idle reports whether all is done that was due: nothing is due or being tried again, and no handler runs. Scenarios and tests
// wait for it, as nothing happens then until somebody does something or time passes.
func (d *Desk) Idle(ctx context.Context) (idle bool, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		idle = true
		for kind := range d.bells {
			timers, err := r.Timers(kind, pendingTries)
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
