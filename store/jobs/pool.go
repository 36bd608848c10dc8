package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"countersign/store"
)

// workerPool runs the handlers of one kind of timer. At most Worker.Concurrency handlers run at the same time. At most
// one handler runs for each timer, and at most one for each lane.
type workerPool struct {
	runner *Runner
	worker Worker
	wg     sync.WaitGroup
	free   chan struct{} // signals that a worker is done
	stop   context.CancelCauseFunc
	mu     sync.Mutex
	refs   map[string]bool
	lanes  map[string]bool
	flows  *flows
	held   map[string]heldLane // the held lanes: see heldLane
	kept   map[string]bool     // lanes whose timers wait until the due timers are read again: see handle
	reads  int                 // number of reads of due timers that have begun

	blocked int          // how many due timers wait in held lanes; the next read returns this many timers more, so that it also returns timers of other lanes
	shares  store.Shares // the shares that takeUp has already examined
	doubted store.Shares // the part of the field shares that another replica may have had in the meantime; takeUp examines these shares in the next read
	again   store.Shares // the doubted shares that takeUp examines in the current read
}

// heldLane is a lane whose first timer failed or asked for a delay. The other timers of a held lane wait for the first
// timer. heldLane contains this first timer.
type heldLane struct {
	store.Timer
	read int // the value of workerPool.reads when the timer was put off
}

// holds is how often a lane's first timer may fail before the lane's other timers may run. Because of the back-off,
// these failures take about ten seconds. During these seconds, the lane keeps its order. After that, the failing timer
// no longer blocks the other timers.
const holds = 7

// takeUp reads the timers of the shares that this process got since the last call of takeUp. If another process put off
// the first timer of a lane, takeUp holds the lane. So the lane's other timers wait for the first timer. takeUp also
// reads the timers of doubted shares.
func (p *workerPool) takeUp(r store.Reader, shares store.Shares, kind store.TimerKind) error {
	gained := shares &^ (p.shares &^ p.again)
	if p.shares &= shares; gained == 0 || p.worker.Yields {
		return nil
	}
	timers, err := r.TimersIn(gained, kind, time.Time{}, mostTakenUp)
	if err != nil && !errors.Is(err, store.ErrDamaged) { // damaged rows can't hold a lane
		return err
	}
	p.shares, p.again = shares, 0
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range timers {
		if _, held := p.held[t.Lane]; t.Lane != "" && !t.PutOff.IsZero() && !held {
			p.held[t.Lane] = heldLane{t, p.reads}
		}
	}
	return nil
}

// mostTakenUp limits the timers that takeUp reads, and the timers of held lanes that are read in addition to mostDue.
const mostTakenUp = 10_000

// begin counts a read of the store, before the read.
func (p *workerPool) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads++
	p.again |= p.doubted
	p.doubted = 0
	clear(p.kept)
}

// letGo releases each held lane whose first timer was cleared, or now has another number of tries. If this pool put off
// the first timer after the read r began, r still returns the earlier state of the timer. In this case, letGo keeps the
// lane held until the next read.
func (p *workerPool) letGo(r store.Reader) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for lane, first := range p.held {
		if first.read == p.reads {
			continue
		}
		cur, err := r.Timer(first.Kind, first.Ref)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil || cur.Tries != first.Tries {
			delete(p.held, lane)
		}
	}
	return nil
}

// behind counts the timers that wait for the first timer of their lane.
func (p *workerPool) behind(due []store.Timer) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range due {
		if first, held := p.held[t.Lane]; held && first.Ref != t.Ref {
			n++
		}
	}
	return min(n, mostTakenUp)
}

// rest returns how long the pool may sleep: until the first timer of a held lane is due, but at most for poll, or for
// idle if no lane is held. If the first timer is already due, a worker handles it, or it waits for a free worker. So rest
// ignores this timer.
func (p *workerPool) rest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := idle
	if len(p.held) > 0 {
		rest = poll // the lane is also released when its first timer is cleared, or has another number of tries
	}
	for _, first := range p.held {
		if wait := first.Due.Sub(p.runner.Now()); wait > 0 {
			rest = min(rest, wait)
		}
	}
	return rest
}

// full reports whether all workers are busy.
func (p *workerPool) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.refs) >= p.worker.Concurrency
}

// takeAll starts the handlers of the timers that may be handled now, and returns the other timers. takeAll holds p.mu
// until takeAll has tried all timers. Otherwise, a lane could become free between two of its timers, and takeAll
// would start the second timer before the first.
func (p *workerPool) takeAll(ctx context.Context, due []store.Timer) (left []store.Timer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flows.order(due)
	return slices.DeleteFunc(due, func(t store.Timer) bool {
		taken := p.take(ctx, t)
		if taken {
			p.flows.took(t)
		}
		return taken
	})
}

// take tries to start a timer's handler, and reports whether the handler was started. take does not start the handler
// in these cases:
//
//   - The timer, or another timer of its lane, is being handled.
//   - The timer's lane is held for another timer, or waits for the next read.
//   - All workers are busy, the disk is full, the store is not ready, or Worth returns false.
//   - Another replica has the timer's share.
//
// The caller holds p.mu.
func (p *workerPool) take(ctx context.Context, t store.Timer) bool {
	if p.runner.diskSpace.isFull() || !p.runner.Ready() || len(p.refs) >= p.worker.Concurrency || p.refs[t.Ref] || p.lanes[t.Lane] || p.kept[t.Lane] || !p.worker.isWorth() {
		return false
	}
	if first, held := p.held[t.Lane]; held && first.Ref != t.Ref {
		return false
	}
	inner, leave, ok := p.runner.Replica.Enter(ctx, store.ShareClaim(t.Share()))
	if !ok {
		return false
	}
	p.refs[t.Ref] = true
	if t.Lane != "" {
		p.lanes[t.Lane] = true
	}
	p.runner.handling.Add(1)
	p.wg.Go(func() {
		defer p.runner.handling.Add(-1)
		defer leave()
		var kept bool
		pprof.Do(inner, pprof.Labels("ref", t.Ref), func(ctx context.Context) { kept = p.handle(ctx, t) })
		p.mu.Lock()
		delete(p.refs, t.Ref)
		delete(p.lanes, t.Lane)
		if kept && t.Lane != "" {
			p.kept[t.Lane] = true
			if !store.IsAlone(p.runner.Replica) {
				p.doubted = p.doubted.With(t.Share())
			}
		}
		p.mu.Unlock()
		select {
		case p.free <- struct{}{}:
		default:
		}
	})
	return true
}

// handle handles a timer. handle returns false if this pool finished the timer, gave the timer up, or put it off.
// Otherwise the timer may still be the first of its lane, so the lane's other timers wait until the timers are read
// again.
func (p *workerPool) handle(ctx context.Context, t store.Timer) (kept bool) {
	stale, err := p.stale(ctx, t)
	if errors.Is(err, store.ErrDamaged) {
		p.mend(ctx, t)
		unhurried(ctx)
	}
	if stale || err != nil {
		return true // the timer was handled or put off after it was read; or there was an error, and the runner soon reads the timer again
	}
	cause := p.runner.Around(ctx, t, p.guarded)
	if errors.Is(cause, ErrKeep) || store.Refused(cause) || errors.Is(cause, store.ErrFenced) {
		return true // the work was interrupted, the store refused a write, or another replica has the timer: the timer is retried later
	}
	err = cause
	switch {
	case errors.Is(cause, store.ErrCommitUnknown):
	case hopeless(t, cause):
		err = p.giveUp(ctx, t, cause)
	default:
		err = p.putOff(ctx, t, cause)
	}
	if errors.Is(err, store.ErrCommitUnknown) {
		p.stop(err)
		return true
	}
	if err != nil && ctx.Err() == nil && !store.Refused(err) {
		p.runner.Log.ErrorContext(ctx, "a timer could not be postponed", "kind", string(t.Kind), "ref", t.Ref, "error", err)
		unhurried(ctx)
	}
	return err != nil
}

// unhurried waits for a second. If a handler's failure can't be stored, the timer stays due. Without the wait, the
// runner would retry the timer immediately and repeatedly.
func unhurried(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(poll):
	}
}

// panicked is the error for a handler that panicked.
type panicked struct{ with any }

func (p panicked) Error() string { return fmt.Sprintf("handling it panicked: %v", p.with) }

// guarded handles a timer and turns a panic into an error.
func (p *workerPool) guarded(ctx context.Context, t store.Timer) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			p.runner.Log.ErrorContext(ctx, "handling a timer panicked", "kind", string(t.Kind), "ref", t.Ref, "tries", t.Tries+1, "panic", cause, "stack", string(debug.Stack()))
			err = panicked{cause}
		}
	}()
	return p.worker.Handle(ctx, t)
}

// A timer is given up if its handler panics at the try number mostPanics or later. A timer is also given up if its
// handler needs a damaged record at the try number mostTorn or later.
const (
	mostPanics = 3
	mostTorn   = 8
)

// hopeless reports whether another try is pointless.
func hopeless(t store.Timer, cause error) bool {
	var p panicked
	var row *store.DamagedError
	return errors.As(cause, &p) && t.Tries+1 >= mostPanics || errors.As(cause, &row) && t.Tries+1 >= mostTorn
}

// giveUp logs that a timer can't be handled, and calls GiveUp to remove the timer. The timer's subject then waits until
// a person acts.
func (p *workerPool) giveUp(ctx context.Context, t store.Timer, cause error) error {
	p.runner.Log.ErrorContext(ctx, "a timer can't be handled, and was set aside", "kind", string(t.Kind), "ref", t.Ref, "tries", t.Tries+1, "error", cause)
	p.hold(t, false)
	return p.runner.GiveUp(ctx, t)
}

// mend rewrites a timer, because one of the timer's two rows in the store is damaged.
func (p *workerPool) mend(ctx context.Context, t store.Timer) {
	err := p.runner.Update(ctx, "mend a timer", func(tx store.Tx, _ time.Time) error { return tx.SetTimer(t) })
	if err != nil && ctx.Err() == nil {
		p.runner.Log.ErrorContext(ctx, "a damaged timer could not be rewritten", "kind", string(t.Kind), "ref", t.Ref, "error", err)
	}
}

// stale reports whether a timer has changed after it was read, or may not be handled any more.
func (p *workerPool) stale(ctx context.Context, t store.Timer) (stale bool, err error) {
	err = p.runner.Store.View(ctx, func(r store.Reader) (err error) {
		_, still, err := Reread(r, t)
		if stale = !still; stale || err != nil {
			return err
		}
		left, err := p.runner.Awake(r, []store.Timer{t})
		stale = len(left) == 0
		return err
	})
	return stale, err
}

// putOff schedules a retry of a timer, unless the handler has cleared the timer or set it to another time.
func (p *workerPool) putOff(ctx context.Context, t store.Timer, cause error) error {
	if stale, err := p.stale(ctx, t); stale || err != nil {
		p.hold(t, false)
		return err
	}
	wait, told := waits(cause)
	level := slog.LevelWarn
	if told { // the handler requested the delay, so no warning is needed
		level = slog.LevelDebug
	}
	p.runner.Log.Log(ctx, level, "a timer will be tried again", "kind", string(t.Kind), "ref", t.Ref, "tries", t.Tries+1, "error", cause)
	put, again := false, t
	err := p.runner.Update(ctx, "put off", func(tx store.Tx, now time.Time) (err error) {
		if again, put, err = Reread(tx, t); err != nil || !put {
			return err
		}
		if untried := (interface{ Untried() })(nil); !errors.As(cause, &untried) {
			again.Tries++
		}
		if !told {
			wait = backoff(again.Tries)
		}
		again.Due, again.PutOff = now.Add(wait), now
		return tx.SetTimer(again)
	})
	order := again.Tries <= holds
	if told {
		order = !p.worker.Yields
	}
	p.hold(again, put && err == nil && order)
	return err
}

// hold makes the other timers of a lane wait for the timer t, which was put off. If keep is false, hold instead ends
// their wait.
func (p *workerPool) hold(t store.Timer, keep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if keep && t.Lane != "" {
		p.held[t.Lane] = heldLane{t, p.reads}
	} else {
		delete(p.held, t.Lane)
	}
}

// waits returns the delay for which an error asks. If the error asks for no delay, told is false.
func waits(cause error) (wait time.Duration, told bool) {
	var says interface{ After() time.Duration }
	if errors.As(cause, &says) {
		return says.After(), true
	}
	return 0, false
}

// backoff returns the delay before the next try. The delay doubles with each try, from 100 ms to 30 s.
func backoff(tries int) time.Duration {
	return min(100*time.Millisecond<<min(tries-1, 20), 30*time.Second)
}
