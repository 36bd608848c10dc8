package jobs

import (
	"context"
	"slices"
	"time"

	"countersign/store"
)

// wakeups holds a channel for each kind. The caller of a transaction that sets a timer sends on the kind's channel
// after the commit. Only the kind's worker receives from the channel.
type wakeups map[store.TimerKind]chan struct{}

func newWakeups(kinds []store.TimerKind) wakeups {
	w := wakeups{}
	for _, k := range kinds {
		w[k] = make(chan struct{}, 1)
	}
	return w
}

// Notify is called after a commit that set timers. Notify wakes the workers of these kinds, in this process and in the
// replicas that have the timers' shares. The other replicas pass news to their Options.Hear.
func (r *Runner) Notify(timers map[store.TimerKind]store.Shares, news ...string) {
	own := r.Replica.Shares()
	told := store.Notice{News: news}
	for kind, shares := range timers {
		if shares&own != 0 {
			r.wake(kind)
		}
		if others := shares &^ own; others != 0 {
			told.Merge(store.Notice{Timers: map[store.TimerKind]store.Shares{kind: others}})
		}
	}
	if len(told.Timers) > 0 || len(told.News) > 0 {
		r.Replica.Tell(told)
	}
}

// hear receives the notices of the other replicas. hear first passes the news to Options.Hear, and then wakes the
// workers whose timers another replica has set. So if a notice makes a cached value invalid, the workers do not use the
// old value.
func (r *Runner) hear(ctx context.Context) error {
	for {
		select {
		case n := <-r.Replica.Notices():
			r.Hear(n.News)
			own := r.Replica.Shares()
			for kind, shares := range n.Timers {
				if shares&own != 0 {
					r.wake(kind)
				}
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wake wakes the worker of a kind.
func (r *Runner) wake(kind store.TimerKind) {
	select {
	case r.wakeups[kind] <- struct{}{}:
	default: // a wake-up is already pending, or the kind has no worker
	}
}

// Wake makes every worker read due timers immediately. A test calls Wake after the test has set its clock forward.
// Without this call, workers notice the new time within a second.
func (r *Runner) Wake() {
	for kind := range r.wakeups {
		r.wake(kind)
	}
}

// setBy is the smallest change of the system clock that wakes the workers.
const setBy = 100 * time.Millisecond

// watchClock wakes all workers after a change of the clock. watchClock also calls probeDisk once a second.
func (r *Runner) watchClock(ctx context.Context) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	began, clock := time.Now(), r.Now().Round(0) // without the monotonic reading
	for offset := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		before := offset
		offset = r.Now().Round(0).Sub(clock) - time.Since(began)
		if (offset - before).Abs() > setBy {
			at := time.Now()
			r.clockSet.Store(&at)
			r.Wake()
		}
		if err := r.probeDisk(ctx); err != nil {
			return err
		}
	}
}

// mostAhead is how far another replica's clock may be ahead. If it is further ahead, the timers that the other replica
// sets may be handled up to idle later.
const mostAhead = time.Minute

// watchDue wakes the workers that have due timers, once a second. Other replicas may set timers for this process, and
// their notices may be lost. If the other replica's clock is ahead, its timers are not yet due by this replica's clock.
// So watchDue also wakes the workers of kinds in Options.Soon if a timer is due within mostAhead (see watch). watchDue
// reads the timers of all kinds together, so an idle replica costs the database only a few statements a second.
func (r *Runner) watchDue(ctx context.Context, workers map[store.TimerKind]Worker) error {
	if store.IsAlone(r.Replica) {
		return nil
	}
	var soon, others []store.TimerKind
	for kind := range workers {
		if r.Soon[kind] {
			soon = append(soon, kind)
		} else {
			others = append(others, kind)
		}
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		var due []store.TimerKind
		limited, cancel := context.WithTimeout(ctx, readWithin)
		err := r.Store.View(limited, func(reader store.Reader) (err error) {
			shares, now := r.Replica.Shares(), r.Now()
			if due, err = reader.DueKinds(shares, others, now); err != nil {
				return err
			}
			ahead, err := reader.DueKinds(shares, soon, now.Add(mostAhead))
			due = append(due, ahead...)
			return err
		})
		cancel()
		if err != nil { // the worker of each kind reads its timers, too, and handles errors
			due = slices.Concat(soon, others)
		}
		for _, kind := range due {
			r.wake(kind)
		}
	}
}

// pendingTries limits how many timers of a kind the function ahead reads.
const pendingTries = 1000

// ahead lists the timers of a kind that may be handled, whether they are due or not.
func (r *Runner) ahead(reader store.Reader, kind store.TimerKind) ([]store.Timer, error) {
	timers, err := reader.Timers(kind, pendingTries)
	if err != nil {
		return nil, err
	}
	return r.Awake(reader, timers)
}

// NextDue returns the due time of the next timer that may be handled. If no timer may be handled, the time is zero.
func (r *Runner) NextDue(ctx context.Context) (next time.Time, err error) {
	err = r.Store.View(ctx, func(reader store.Reader) error {
		next = time.Time{}
		for kind := range r.wakeups {
			timers, err := r.ahead(reader, kind)
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

// Idle reports whether all due work is done: no handler runs, and no timer that may be handled is due or is being
// retried. Scenarios and tests wait until Idle returns true. After Idle has returned true, no work is done until there
// is input or time passes.
func (r *Runner) Idle(ctx context.Context) (idle bool, err error) {
	err = r.Store.View(ctx, func(reader store.Reader) error {
		idle = true
		for kind := range r.wakeups {
			timers, err := r.ahead(reader, kind)
			if err != nil {
				return err
			}
			for _, t := range timers {
				idle = idle && t.Tries == 0 && t.Due.After(r.Now())
			}
		}
		return nil
	})
	// A handler may still report its result after its last transaction, which has cleared its timer. So the timers
	// alone are not enough: Idle also counts the running handlers, after it has read the timers.
	return idle && r.handling.Load() == 0, err
}

// Reread reads the current state of a timer. Reread also reports whether the timer still exists with the same due time.
func Reread(r store.Reader, t store.Timer) (store.Timer, bool, error) {
	cur, err := r.Timer(t.Kind, t.Ref)
	return cur, err == nil && cur.Due.Equal(t.Due), store.IgnoreNotFound(err)
}
