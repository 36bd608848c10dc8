package desk

import (
	"context"
	"errors"
	"log/slog"
	"runtime/pprof"
	"sync"
	"time"

	"countersign/store"
)

// hands are the workers of one kind: at most Workers at once, one a timer, one a lane.
type hands struct {
	d     *Desk
	duty  Duty
	wg    sync.WaitGroup
	free  chan struct{} // rings when one is done
	stop  context.CancelCauseFunc
	mu    sync.Mutex
	refs  map[string]bool
	lanes map[string]bool
	held  map[string]store.Timer // lanes whose first timer failed: the others wait for it
}

// holds is how often a lane's first timer may fail before the others overtake it: for some ten seconds order is worth more than
// speed, and after that one hopeless thing must not hold up the rest.
const holds = 7

// letGo ends the hold of timers that are gone or were set anew.
func (h *hands) letGo(r store.Reader) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for lane, first := range h.held {
		cur, err := r.Timer(first.Kind, first.Ref)
		if ignoreNotFound(err) != nil {
			return err
		}
		if err != nil || cur.Tries != first.Tries {
			delete(h.held, lane)
		}
	}
	return nil
}

// rest is how long it is until the first held lane goes on. One that is due already is being handled, or waits for a free hand.
func (h *hands) rest() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	rest := poll
	for _, first := range h.held {
		if wait := first.Due.Sub(h.d.now()); wait > 0 {
			rest = min(rest, wait)
		}
	}
	return rest
}

// full reports whether all hands are.
func (h *hands) full() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.refs) >= h.duty.Workers
}

// take starts a timer's handler, unless it or its lane is being handled, its lane is held for another, all hands are full, the disk is, or there is no use in it.
// It reports whether it did.
func (h *hands) take(ctx context.Context, t store.Timer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.d.room.lacking() || len(h.refs) >= h.duty.Workers || h.refs[t.Ref] || (t.Lane != "" && h.lanes[t.Lane]) || !h.duty.worth() {
		return false
	}
	if first, held := h.held[t.Lane]; held && first.Ref != t.Ref {
		return false
	}
	h.refs[t.Ref] = true
	if t.Lane != "" {
		h.lanes[t.Lane] = true
	}
	h.d.handling.Add(1)
	h.wg.Go(func() {
		defer h.d.handling.Add(-1)
		pprof.Do(ctx, pprof.Labels("ref", t.Ref), func(ctx context.Context) { h.handle(ctx, t) })
		h.mu.Lock()
		delete(h.refs, t.Ref)
		delete(h.lanes, t.Lane)
		h.mu.Unlock()
		select {
		case h.free <- struct{}{}:
		default:
		}
	})
	return true
}

func (h *hands) handle(ctx context.Context, t store.Timer) {
	if stale, err := h.stale(ctx, t); stale || err != nil {
		return // it was handled or put off since it was read; or it is read again soon
	}
	inner, leave := h.d.halt.enter(ctx, t)
	defer leave()
	cause := h.duty.Handle(inner, t)
	if inner.Err() != nil && cause != nil || errors.Is(cause, ErrPaused) {
		return // stopping, or paused: the row stays, and the next process takes it up, or this one when it goes on
	}
	if errors.Is(cause, store.ErrFull) {
		return // it comes again when there is room, and has not failed
	}
	if errors.Is(cause, ErrNotDue) {
		cause = nil
	}
	err := cause
	if !errors.Is(cause, store.ErrCommitUnknown) {
		err = h.putOff(ctx, t, cause)
	}
	if errors.Is(err, store.ErrCommitUnknown) {
		h.stop(err)
		return
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrFull) {
		h.d.Log.Error("a timer could not be put off", "kind", string(t.Kind), "ref", t.Ref, "error", err)
	}
}

// stale reports whether a timer is not as it was read any more, or rests by now because everything was paused.
func (h *hands) stale(ctx context.Context, t store.Timer) (stale bool, err error) {
	err = h.d.Store.View(ctx, func(r store.Reader) (err error) {
		_, still, err := asRead(r, t)
		if stale = !still; stale || err != nil || !halted[t.Kind] {
			return err
		}
		left, err := awake(r, []store.Timer{t})
		stale = len(left) == 0
		return err
	})
	return stale, err
}

// asRead reads a timer and reports whether it is still as it was.
func asRead(r store.Reader, t store.Timer) (store.Timer, bool, error) {
	cur, err := r.Timer(t.Kind, t.Ref)
	return cur, err == nil && cur.Due.Equal(t.Due), ignoreNotFound(err)
}

// putOff has a timer tried again later whose handler failed, or left it as it was.
func (h *hands) putOff(ctx context.Context, t store.Timer, cause error) error {
	if stale, err := h.stale(ctx, t); stale || err != nil {
		h.hold(t, false)
		return err
	}
	wait, told := waits(cause)
	level := slog.LevelWarn
	if told { // it waits for its turn, which is nothing to warn of
		level = slog.LevelDebug
	}
	h.d.Log.Log(ctx, level, "will be tried again", "kind", string(t.Kind), "ref", t.Ref, "tries", t.Tries+1, "error", cause)
	put, again := false, t
	err := h.d.update(ctx, "put off", func(tx *tx) (err error) {
		if again, put, err = asRead(tx, t); err != nil || !put {
			return err
		}
		again.Tries++
		if !told {
			wait = backoff(again.Tries)
		}
		again.Due, again.PutOff = tx.now.Add(wait), tx.now
		return tx.SetTimer(again)
	})
	order := again.Tries <= holds
	if told {
		order = !h.duty.Yields
	}
	h.hold(again, put && err == nil && order)
	return err
}

// hold has the rest of a lane wait for a timer that was put off, or no more.
func (h *hands) hold(t store.Timer, keep bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if keep && t.Lane != "" {
		h.held[t.Lane] = t
	} else {
		delete(h.held, t.Lane)
	}
}

// waits is how long a cause says to wait, if it does.
func waits(cause error) (wait time.Duration, told bool) {
	var says interface{ After() time.Duration }
	if errors.As(cause, &says) {
		return says.After(), true
	}
	return 0, false
}

// backoff doubles from 100 ms to 30 s.
func backoff(tries int) time.Duration {
	return min(100*time.Millisecond<<min(tries-1, 20), 30*time.Second)
}
