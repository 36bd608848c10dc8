package desk

import (
	"context"
	"errors"
	"sync"
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
		store.TimerInbox, store.TimerThink, store.TimerRun, store.TimerExpire, store.TimerEscalate, store.TimerLeave, store.TimerShow,
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
	}
	for k, duty := range duties {
		all[k] = duty
	}
	g, ctx := errgroup.WithContext(ctx)
	for kind, duty := range all {
		g.Go(func() error { return d.attend(ctx, kind, duty) })
	}
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// attend works through one kind of timer.
func (d *Desk) attend(ctx context.Context, kind store.TimerKind, duty Duty) error {
	hands := hands{d: d, duty: duty, refs: map[string]bool{}, lanes: map[string]bool{}, free: make(chan struct{}, 1), fatal: make(chan error, 1)}
	defer hands.wg.Wait()
	for {
		var due []store.Timer
		var next time.Time
		err := d.Store.View(ctx, func(r store.Reader) error {
			var err error
			if due, err = r.DueTimers(kind, d.now(), 1024); err != nil || len(due) > 0 {
				return err
			}
			timer, err := r.NextTimer(kind)
			next = timer.Due
			return ignoreNotFound(err)
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
		alarm := time.NewTimer(sleep)
		select {
		case <-ctx.Done():
			alarm.Stop()
			return ctx.Err()
		case err := <-hands.fatal:
			alarm.Stop()
			return err
		case <-d.bells[kind]:
		case <-hands.free:
		case <-alarm.C:
		}
		alarm.Stop()
	}
}

// hands are the workers of one kind: at most Workers at once, one a timer, one a lane.
type hands struct {
	d     *Desk
	duty  Duty
	wg    sync.WaitGroup
	free  chan struct{} // rings when one is done
	fatal chan error    // an error after which the process must stop
	mu    sync.Mutex
	refs  map[string]bool
	lanes map[string]bool
}

// take starts a timer's handler, unless it or its lane is being handled or all hands are full.
func (h *hands) take(ctx context.Context, t store.Timer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.refs) >= h.duty.Workers || h.refs[t.Ref] || (t.Lane != "" && h.lanes[t.Lane]) {
		return
	}
	h.refs[t.Ref] = true
	if t.Lane != "" {
		h.lanes[t.Lane] = true
	}
	h.wg.Go(func() {
		h.handle(ctx, t)
		h.mu.Lock()
		delete(h.refs, t.Ref)
		delete(h.lanes, t.Lane)
		h.mu.Unlock()
		select {
		case h.free <- struct{}{}:
		default:
		}
	})
}

func (h *hands) handle(ctx context.Context, t store.Timer) {
	cause := h.duty.Handle(ctx, t)
	if ctx.Err() != nil && cause != nil {
		return // stopping: the row stays, and the next process takes it up
	}
	if errors.Is(cause, ErrNotDue) {
		cause = nil
	}
	err := cause
	if !errors.Is(cause, store.ErrCommitUnknown) {
		err = h.putOff(ctx, t, cause)
	}
	if errors.Is(err, store.ErrCommitUnknown) {
		select {
		case h.fatal <- err:
		default:
		}
		return
	}
	if err != nil && ctx.Err() == nil {
		h.d.Log.Error("a timer could not be put off", "kind", string(t.Kind), "ref", t.Ref, "error", err)
	}
}

// putOff has a timer tried again later whose handler failed, or left it as it was.
func (h *hands) putOff(ctx context.Context, t store.Timer, cause error) error {
	left := func(r store.Reader) (store.Timer, bool, error) {
		cur, err := r.Timer(t.Kind, t.Ref)
		return cur, err == nil && cur.Due.Equal(t.Due), ignoreNotFound(err)
	}
	still := false
	err := h.d.Store.View(ctx, func(r store.Reader) (err error) {
		_, still, err = left(r)
		return err
	})
	if err != nil || !still {
		return err
	}
	h.d.Log.Warn("will be tried again", "kind", string(t.Kind), "ref", t.Ref, "tries", t.Tries+1, "error", cause)
	return h.d.update(ctx, "put off", func(tx *tx) error {
		cur, still, err := left(tx)
		if err != nil || !still {
			return err
		}
		cur.Tries++
		cur.Due = tx.now.Add(backoff(cur.Tries, cause))
		return tx.SetTimer(cur)
	})
}

// backoff doubles from 100 ms to 30 s, unless the cause says how long.
func backoff(tries int, cause error) time.Duration {
	var says interface{ After() time.Duration }
	if errors.As(cause, &says) {
		return says.After()
	}
	return min(100*time.Millisecond<<min(tries-1, 20), 30*time.Second)
}
