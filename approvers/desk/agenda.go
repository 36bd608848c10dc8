package desk

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/store"
)

// Handler does what a due timer asks for. Its own transaction clears or replaces the timer. An error has it called again
// later; one with a method After() time.Duration says when.
type Handler func(ctx context.Context, t store.Timer) error

// Duty is the handler of a kind of timer, and how many may run at once.
type Duty struct {
	Handle  Handler
	Workers int
}

// poll bounds how long a worker sleeps, so that a clock that is set forward is noticed.
const poll = time.Second

// bells wake the workers of each kind.
type bells map[store.TimerKind]chan struct{}

func newBells() bells {
	b := bells{}
	for _, k := range []store.TimerKind{
		store.TimerInbox, store.TimerThink, store.TimerRun, store.TimerExpire, store.TimerEscalate, store.TimerRemind,
		store.TimerMuster, store.TimerAway, store.TimerInquiry, store.TimerLeave, store.TimerGrant, store.TimerShow,
	} {
		b[k] = make(chan struct{}, 1)
	}
	return b
}

func (b bells) ring(kinds map[store.TimerKind]bool) {
	for k := range kinds {
		select {
		case b[k] <- struct{}{}:
		default: // it is ringing already
		}
	}
}

// Work runs what falls due until ctx ends, and waits for what it started. The desk's own duties need not be given.
func (d *Desk) Work(ctx context.Context, duties map[store.TimerKind]Duty) error {
	all := map[store.TimerKind]Duty{
		store.TimerExpire:   {Handle: d.Expire, Workers: 4},
		store.TimerEscalate: {Handle: d.Escalate, Workers: 4},
		store.TimerLeave:    {Handle: d.LeaveUnknown, Workers: 1},
		store.TimerInquiry:  {Handle: d.LapseInquiry, Workers: 1},
		store.TimerGrant:    {Handle: d.LapseGrant, Workers: 1},
	}
	for k, duty := range duties {
		all[k] = duty
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g, ctx := errgroup.WithContext(ctx)
	for kind, duty := range all {
		g.Go(func() error { return d.attend(ctx, kind, duty, stop) })
	}
	err := g.Wait()
	if doubt := context.Cause(ctx); errors.Is(doubt, store.ErrCommitUnknown) {
		return doubt
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// attend works through one kind of timer. stop ends all work at once, with an error after which the process must stop.
func (d *Desk) attend(ctx context.Context, kind store.TimerKind, duty Duty, stop context.CancelCauseFunc) error {
	hands := hands{
		d: d, duty: duty, refs: map[string]bool{}, lanes: map[string]bool{}, held: map[string]store.Timer{},
		free: make(chan struct{}, 1), stop: stop,
	}
	defer hands.wg.Wait()
	for {
		var due []store.Timer
		var next time.Time
		err := d.Store.View(ctx, func(r store.Reader) error {
			if err := hands.letGo(r); err != nil {
				return err
			}
			var err error
			due, next, err = d.due(r, kind)
			return err
		})
		if err != nil {
			return err
		}
		for _, timer := range due {
			hands.take(ctx, timer)
		}
		sleep := poll
		if len(due) == 0 && !next.IsZero() {
			sleep = min(poll, max(0, next.Sub(d.now())))
		}
		sleep = min(sleep, hands.rest())
		alarm := time.NewTimer(sleep)
		select {
		case <-ctx.Done():
			alarm.Stop()
			return ctx.Err()
		case <-d.bells[kind]:
		case <-hands.free:
		case <-alarm.C:
		}
		alarm.Stop()
	}
}
