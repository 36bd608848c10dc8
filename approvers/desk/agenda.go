package desk

import (
	"context"
	"errors"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/store"
)

// Handler does what a due timer asks for. Its own transaction clears or replaces the timer. An error has it called again
// later; one with a method After() time.Duration says when, and is nothing to warn of.
type Handler func(ctx context.Context, t store.Timer) error

// Duty is the handler of a kind of timer, and how many may run at once.
type Duty struct {
	Handle  Handler
	Workers int
	Yields  bool // what was told when to try again lets the rest of its lane pass meanwhile
	// Worth reports whether there is any use in handling what is due; until there is, it stays due. Nil: there always is. Whoever knows that there is
	// again calls Wake.
	Worth func() bool
}

func (d Duty) worth() bool { return d.Worth == nil || d.Worth() }

// poll bounds how long a worker sleeps, so that a clock that is set forward is noticed.
const poll = time.Second

// deadlineWorkers is how many deadlines are handled side by side. Each is one short transaction, and those that run together share a commit.
const deadlineWorkers = 64

// bells wake the workers of each kind.
type bells map[store.TimerKind]chan struct{}

func newBells() bells {
	b := bells{}
	for _, k := range append([]store.TimerKind{
		store.TimerInbox, store.TimerThink, store.TimerRun, store.TimerExpire, store.TimerEscalate, store.TimerRemind,
		store.TimerMuster, store.TimerAway, store.TimerInquiry, store.TimerElicit, store.TimerLeave, store.TimerGrant, store.TimerPause, store.TimerRepost, store.TimerPlace,
		store.TimerHome, store.TimerHomes, store.TimerPreview,
	}, store.ShowTimers...) {
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

// Work runs what falls due until ctx ends, and waits for what it started. The desk's own duties need not be given. Each goroutine bears the labels
// agenda, with its kind, and ref, with what it handles: profiles and goroutine dumps say what is under way, and for what.
func (d *Desk) Work(ctx context.Context, duties map[store.TimerKind]Duty) error {
	all := map[store.TimerKind]Duty{
		store.TimerExpire:   {Handle: d.Expire, Workers: deadlineWorkers},
		store.TimerEscalate: {Handle: d.Escalate, Workers: deadlineWorkers},
		store.TimerLeave:    {Handle: d.LeaveUnknown, Workers: 1},
		store.TimerInquiry:  {Handle: d.LapseInquiry, Workers: 1},
		store.TimerElicit:   {Handle: d.LapseElicitation, Workers: 1},
		store.TimerGrant:    {Handle: d.LapseGrant, Workers: 1},
		store.TimerPause:    {Handle: d.ShowPause, Workers: 1},
		store.TimerRepost:   {Handle: d.Repost, Workers: 1},
		store.TimerPlace:    {Handle: d.Vacate, Workers: 1},
		store.TimerHome:     {Handle: d.RestHome, Workers: 1},
		store.TimerHomes:    {Handle: d.FreshenHomes, Workers: 1},
	}
	for k, duty := range duties {
		all[k] = duty
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g, ctx := errgroup.WithContext(ctx)
	for kind, duty := range all {
		g.Go(func() (err error) {
			pprof.Do(ctx, pprof.Labels("agenda", string(kind)), func(ctx context.Context) { err = d.attend(ctx, kind, duty, stop) })
			return err
		})
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
	var watch watch
	for {
		if kind == store.TimerExpire { // one of the workers looks for all; the desk always has this one
			if err := d.lookForRoom(ctx); err != nil {
				return err
			}
		}
		var due []store.Timer
		var next time.Time
		err := d.Store.View(ctx, func(r store.Reader) error {
			if err := hands.letGo(r); err != nil {
				return err
			}
			due = nil
			if !duty.worth() {
				return nil
			}
			var err error
			due, next, err = d.due(r, kind, &watch)
			return err
		})
		if err != nil {
			return err
		}
		sleep := poll
		if len(due) == 0 && !next.IsZero() {
			sleep = min(poll, max(0, next.Sub(d.now())))
		}
		if err := d.workOff(ctx, kind, &hands, due, sleep); err != nil {
			return err
		}
	}
}

// workOff has what was read handled, until there may be something new to read and a hand for it.
func (d *Desk) workOff(ctx context.Context, kind store.TimerKind, hands *hands, due []store.Timer, sleep time.Duration) error {
	alarm := time.NewTimer(min(sleep, hands.rest()))
	defer alarm.Stop()
	for news := false; ; news = true {
		due = slices.DeleteFunc(due, func(t store.Timer) bool { return hands.take(ctx, t) })
		if news && !hands.full() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.bells[kind]:
		case <-hands.free:
		case <-alarm.C:
			return nil
		}
		runtime.Gosched() // those who shared a commit are done at the same time: reading once for all of them is enough
	}
}
