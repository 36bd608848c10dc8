package workflow

import (
	"context"
	"sync"

	"countersign/store"
)

// runningHandlers has the handlers that run. It ends their contexts when everything is paused, and those of one turn
// when somebody stops it. A handler enters before it claims anything. So either it began before the pause or the stop
// was committed, and its context ends, or its own transaction finds the pause or the stop.
type runningHandlers struct {
	mu    sync.Mutex
	n     int
	under map[int]underWay
}

// underWay is a handler that runs.
type underWay struct {
	handled   handled
	interrupt func(cause error)
}

// handled names what a handler works on.
type handled struct {
	kind store.TimerKind
	ref  string
}

// pausedKinds has the kinds of timer whose handlers a pause ends.
var pausedKinds = map[store.TimerKind]bool{store.TimerThink: true, store.TimerRun: true, store.TimerPreview: true}

// interruption records whether a context was interrupted, and why.
type interruption struct {
	done  chan struct{}
	cause error
}

// interruptionKey is the context key of an interruption.
type interruptionKey struct{}

// Interruptible returns a context that can be ended with a cause: ErrPaused or ErrStopped. done must be called when the
// context is no longer used.
func Interruptible(ctx context.Context) (inner context.Context, interrupt func(cause error), done func()) {
	i := &interruption{done: make(chan struct{})}
	inner, cancel := context.WithCancelCause(context.WithValue(ctx, interruptionKey{}, i))
	var once sync.Once
	return inner, func(cause error) {
		once.Do(func() {
			i.cause = cause
			cancel(cause)
			close(i.done)
		})
	}, func() { cancel(nil) }
}

// Interrupted returns a channel that is closed when a context of Interruptible is interrupted, even if the context had
// already ended: while the process stops, a tool that is given more time must still notice. It is nil for any other
// context.
func Interrupted(ctx context.Context) <-chan struct{} {
	if i, ok := ctx.Value(interruptionKey{}).(*interruption); ok {
		return i.done
	}
	return nil
}

// InterruptedBy returns the cause of a context's interruption; nil if it was not interrupted.
func InterruptedBy(ctx context.Context) error {
	i, ok := ctx.Value(interruptionKey{}).(*interruption)
	if !ok {
		return nil
	}
	select {
	case <-i.done:
		return i.cause
	default:
		return nil
	}
}

// enter creates the context of a handler. leave must be called when the handler returns.
func (h *runningHandlers) enter(ctx context.Context, t store.Timer) (inner context.Context, leave func()) {
	if !pausedKinds[t.Kind] {
		return ctx, func() {}
	}
	inner, interrupt, done := Interruptible(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
	n := h.n
	h.under[n] = underWay{handled{t.Kind, t.Ref}, interrupt}
	return inner, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.under, n)
		done()
	}
}

// has reports whether a handler of this process works on something.
func (h *runningHandlers) has(what handled) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.under {
		if w.handled == what {
			return true
		}
	}
	return false
}

// interruptAll interrupts all handlers.
func (h *runningHandlers) interruptAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.under {
		w.interrupt(ErrPaused)
	}
}

// interrupt interrupts the handlers of some timers.
func (h *runningHandlers) interrupt(what map[handled]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.under {
		if what[w.handled] {
			w.interrupt(ErrStopped)
		}
	}
}
