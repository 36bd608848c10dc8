package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/store"
)

// Handler handles a due timer. The handler's own transaction clears or replaces the timer. After an error, the runner
// retries the timer later. If the error has a method After() time.Duration, this method returns the delay, and the
// error is not logged as a warning. If the error also has a method Untried(), the work was not tried, and the call does
// not count as a try.
type Handler func(ctx context.Context, t store.Timer) error

// Worker is the handler of a kind of timer, with its concurrency.
type Worker struct {
	Handle      Handler
	Concurrency int
	Yields      bool // if a handler requests a delay for a timer, the other timers of the timer's lane do not wait
	// Flow returns the name of the flow to which a timer belongs. In each lane, the flows of the due timers take turns
	// (fair queueing). So a flow with many timers does not delay the other flows. The timers of one flow keep their
	// order. If Flow is nil, each lane has one flow.
	Flow func(r store.Reader, t store.Timer) (string, error)
	// Worth reports whether handling due timers can succeed. While Worth returns false, the timers stay due. If Worth
	// is nil, handling can always succeed. When the result of Worth changes from false to true, the caller of Run must
	// call Wake.
	Worth func() bool
}

func (w Worker) isWorth() bool { return w.Worth == nil || w.Worth() }

// ErrKeep is the error of a handler that was interrupted, or may not run now. The timer stays unchanged, and is handled
// when it is next read as due.
var ErrKeep = errors.New("jobs: the timer stays as it is")

// Options configures a Runner. Awake, Ready, Around, Replica, Gained and Hear may be nil.
type Options struct {
	Store store.Store
	Log   *slog.Logger
	Now   func() time.Time // in the store's precision
	Kinds []store.TimerKind
	// Soon lists the kinds of timers that are always due within a short time. Transactions set these timers for the
	// current time, or put them off for a short time. Timers of these kinds run soon even if the clock is set back.
	Soon map[store.TimerKind]bool
	// Update runs a named transaction, and passes the current time to fn. If the transaction calls SetTimer, Update
	// must wake the kind's worker after the commit: see Notify.
	Update func(ctx context.Context, what string, fn func(tx store.Tx, now time.Time) error) error
	// Awake returns the timers in the given list that may be handled now. If Awake is nil, all timers may be handled.
	Awake func(r store.Reader, timers []store.Timer) ([]store.Timer, error)
	// Ready reports whether the store can be used. While Ready returns false, no handler starts. If Ready is nil, the
	// store is always usable.
	Ready func() bool
	// Around wraps the call of a handler. If Around is nil, there is no wrapper.
	Around func(ctx context.Context, t store.Timer, handle Handler) error
	// Replica determines the shares whose timers this process handles. If Replica is nil, this process is the only
	// process on the store, and handles all shares.
	Replica store.Replica
	// Gained is called with the shares that this process took over from another process, or may have lost and got back.
	// Gained makes unfinished work in these shares due now.
	Gained func(ctx context.Context, shares store.Shares) error
	// Hear is called with the field News of each notice from another replica.
	Hear func(news []string)
	// GiveUp is called for a timer that can't be handled, and clears the timer. The timer's subject then waits until a
	// person acts.
	GiveUp func(ctx context.Context, t store.Timer) error
}

// Runner runs timers when they fall due. Runner is safe for concurrent use.
type Runner struct {
	Options
	wakeups   wakeups
	handling  atomic.Int64 // number of running handlers
	diskSpace diskSpace
	torn      torn
	clockSet  atomic.Pointer[time.Time] // when watchClock last noticed that the system clock was set; nil: never
}

// New returns a runner.
func New(o Options) *Runner {
	if o.Awake == nil {
		o.Awake = func(_ store.Reader, timers []store.Timer) ([]store.Timer, error) { return timers, nil }
	}
	if o.Replica == nil {
		o.Replica = store.Alone{}
	}
	if o.Gained == nil {
		o.Gained = func(context.Context, store.Shares) error { return nil }
	}
	if o.Hear == nil {
		o.Hear = func([]string) {}
	}
	if o.Ready == nil {
		o.Ready = func() bool { return true }
	}
	if o.Around == nil {
		o.Around = func(ctx context.Context, t store.Timer, handle Handler) error { return handle(ctx, t) }
	}
	return &Runner{Options: o, wakeups: newWakeups(o.Kinds)}
}

// A worker sleeps until the next timer of its kind is due, or until a timer of its kind is set. poll and idle limit the
// duration of one sleep.
const (
	poll = time.Second      // the longest sleep while timers can become ready without a wake-up: see quiet
	idle = 10 * time.Second // the longest sleep at other times; limits the delay if a wake-up is lost
)

// readWithin is the timeout for reading due timers. A read usually takes milliseconds. The timeout applies if the
// database does not answer.
const readWithin = 10 * time.Second

// Run handles due timers until ctx ends or an error stops the runner, and then waits for running handlers. All kinds of
// workers must be in Options.Kinds, because a worker of another kind would never be woken. Run also runs each function
// in the parameter beside, in a goroutine of its own. The goroutines of handlers have the pprof labels scheduler (the
// kind) and ref (the timer's Ref). So profiles and goroutine dumps show which timers are being handled.
func (r *Runner) Run(ctx context.Context, workers map[store.TimerKind]Worker, beside ...func(context.Context) error) error {
	for kind := range workers {
		if !slices.Contains(r.Kinds, kind) {
			return fmt.Errorf("jobs: there is a worker for timers of the kind %q, which is not one of the runner's kinds", kind)
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g, ctx := errgroup.WithContext(ctx)
	for kind, worker := range workers {
		g.Go(func() (err error) {
			pprof.Do(ctx, pprof.Labels("scheduler", string(kind)), func(ctx context.Context) {
				err = r.attend(ctx, kind, worker, stop)
			})
			return err
		})
	}
	g.Go(func() error { return r.watchShares(ctx) })
	g.Go(func() error { return r.watchClock(ctx) })
	g.Go(func() error { return r.watchDue(ctx, workers) })
	g.Go(func() error { return r.hear(ctx) })
	for _, f := range beside {
		g.Go(func() error { return f(ctx) })
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

// attend runs the timers of one kind. If an error must stop the whole process, attend calls stop.
func (r *Runner) attend(ctx context.Context, kind store.TimerKind, worker Worker, stop context.CancelCauseFunc) error {
	pool := workerPool{
		runner: r, worker: worker, refs: map[string]bool{}, lanes: map[string]bool{}, held: map[string]heldLane{}, kept: map[string]bool{}, flows: newFlows(worker.Flow),
		free: make(chan struct{}, 1), stop: stop,
	}
	defer pool.wg.Wait()
	var watch watch
	var free time.Time // the next read begins at this time or later
	for {
		if err := after(ctx, free); err != nil {
			return err
		}
		var due []store.Timer
		var next time.Time
		shares, worth, asked, began := r.Replica.Shares(), worker.isWorth(), r.Now(), time.Now()
		pool.begin()
		limited, cancel := context.WithTimeout(ctx, readWithin)
		err := r.Store.View(limited, func(reader store.Reader) error {
			if err := pool.takeUp(reader, shares, kind); err != nil {
				return err
			}
			if err := pool.letGo(reader); err != nil {
				return err
			}
			due = nil
			if !worth {
				return nil
			}
			var err error
			if due, next, err = r.due(reader, shares, kind, &watch, mostDue+pool.blocked); err != nil {
				return err
			}
			return pool.flows.read(reader, due)
		})
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
			err = fmt.Errorf("%w (%w)", store.ErrUnavailable, err)
		}
		if errors.Is(err, store.ErrDamaged) { // the due timers of this kind can't be read; the timers of other kinds are handled
			r.cantRead(kind, err)
			due, worth, err = nil, false, nil
		}
		if errors.Is(err, store.ErrUnavailable) { // the loop reads the timers again soon
			r.cantReach(err)
			due, worth, err = nil, false, nil
		} else {
			r.reached()
		}
		if err != nil {
			return err
		}
		free = time.Time{}
		if len(due) >= manyDue {
			read := time.Now()
			free = read.Add(min(pauseFactor*read.Sub(began), longestPause))
		}
		sleep, ahead := poll, len(due) == 0 && next.After(asked)
		if worth && len(due) == 0 && r.quiet() && (next.IsZero() || ahead) {
			sleep = idle
		}
		if ahead {
			sleep = min(sleep, max(0, next.Sub(r.Now())))
		}
		if err := r.workOff(ctx, kind, &pool, due, sleep); err != nil {
			return err
		}
	}
}

// If many timers are due and have to wait, for example for Slack's limits, each further timer makes attend read all
// of them. So after a read of at least manyDue timers, attend pauses for pauseFactor times the duration of the read,
// but at most for longestPause. In this way, reads that are not very long use at most a tenth of a processor.
const (
	manyDue      = 128
	pauseFactor  = 9
	longestPause = 50 * time.Millisecond
)

// after waits until a time, which may be past.
func after(ctx context.Context, t time.Time) error {
	wait := time.Until(t)
	if wait <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// quiet reports whether the workers may rely on wake-ups. They may if a timer can become due only after a wake-up, or
// because time passes. quiet is false if the clock was set recently. If another replica sets a timer, its notice or
// watchDue wakes the worker, even if the other replica's clock is ahead by up to mostAhead.
func (r *Runner) quiet() bool {
	set := r.clockSet.Load()
	return set == nil || time.Since(*set) > time.Minute
}

// sayAgain is the minimum time between repeated log messages.
const sayAgain = 5 * time.Minute

// cantRead logs that due timers can't be read because the store is damaged. For each kind, cantRead logs at most one
// message every few minutes.
func (r *Runner) cantRead(kind store.TimerKind, err error) {
	r.torn.mu.Lock()
	defer r.torn.mu.Unlock()
	if now := time.Now(); now.Sub(r.torn.said[kind]) >= sayAgain {
		if r.torn.said == nil {
			r.torn.said = map[store.TimerKind]time.Time{}
		}
		r.torn.said[kind] = now
		r.Log.Error("due timers can't be read from the store, so they wait; restart the bot, which repairs the store as far as possible", "kind", string(kind), "error", err)
	}
}

// sayAnew is the minimum time between two messages that the database does not answer, if it has answered in between. With
// few connections, some reads fail while others succeed.
const sayAnew = 30 * time.Second

// cantReach logs that the database does not answer. cantReach repeats the message at most every few minutes, until
// the database answers.
func (r *Runner) cantReach(err error) {
	r.torn.mu.Lock()
	defer r.torn.mu.Unlock()
	least := sayAnew
	if r.torn.away {
		least = sayAgain
	}
	if now := time.Now(); now.Sub(r.torn.saidAway) >= least {
		r.torn.away, r.torn.saidAway = true, now
		r.Log.Error("the database does not answer: nothing is acknowledged, decided or run until it does; no restart is needed", "error", err)
	}
}

// reached logs that the database answers again, if cantReach has logged a failure.
func (r *Runner) reached() {
	r.torn.mu.Lock()
	defer r.torn.mu.Unlock()
	if r.torn.away {
		r.torn.away = false
		r.Log.Info("the database answers again, and the bot continues")
	}
}

// torn holds the times of the last log messages about reads that failed.
type torn struct {
	mu       sync.Mutex
	said     map[store.TimerKind]time.Time
	away     bool      // cantReach has logged that the database does not answer, and it has not answered since
	saidAway time.Time // when cantReach last logged that the database does not answer
}

// workOff starts the handlers of the timers in the parameter due. workOff returns when the duration in the parameter
// sleep has passed. workOff also returns when there may be new timers in the store and a worker is free.
func (r *Runner) workOff(ctx context.Context, kind store.TimerKind, pool *workerPool, due []store.Timer, sleep time.Duration) error {
	alarm := time.NewTimer(min(sleep, pool.rest()))
	defer alarm.Stop()
	for news := false; ; news = true {
		if news && pool.worker.Flow != nil && !pool.full() {
			return nil // the next timer of a lane may be a timer that is not read yet
		}
		due = pool.takeAll(ctx, due)
		pool.blocked = pool.behind(due)
		if news && !pool.full() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.wakeups[kind]:
		case <-pool.free:
		case <-alarm.C:
			return nil
		}
		runtime.Gosched() // handlers whose transactions shared a commit finish at the same time; after this yield, one read of the store serves all of them
	}
}
