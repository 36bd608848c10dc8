package workflow

import (
	"context"
	"sync"

	"countersign/store"
)

// halt ends the contexts of handlers when everything is paused, and those of one turn when somebody stops it. A handler
// has its context before it claims anything: whatever it began before that was committed is ended by it, and whatever
// it begins later finds the pause or the stop in its own transaction.
type halt struct {
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

// halted are the kinds of timer whose handlers a pause ends.
var halted = map[store.TimerKind]bool{store.TimerThink: true, store.TimerRun: true, store.TimerPreview: true}

// interruption is why a context was ended from outside, once it was.
type interruption struct {
	done  chan struct{}
	cause error
}

// interruptionKey is the key of the interruption that Interruptible's contexts have.
type interruptionKey struct{}

// Interruptible makes a context that can be ended with a cause: ErrPaused, or ErrStopped. done has to be called when
// nothing is done with it any more.
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

// Interrupted is closed by the interruption of a context that Interruptible made, also when the context had ended
// before: a tool that is given some time while the process stops has to hear of it, too. It is nil for any other
// context.
func Interrupted(ctx context.Context) <-chan struct{} {
	if i, ok := ctx.Value(interruptionKey{}).(*interruption); ok {
		return i.done
	}
	return nil
}

// InterruptedBy is the cause with which a context was interrupted; nil if it was not.
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

// enter makes the context of a handler. leave has to be called when it is done.
func (h *halt) enter(ctx context.Context, t store.Timer) (inner context.Context, leave func()) {
	if !halted[t.Kind] {
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

// now ends everything that is under way.
func (h *halt) now() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.under {
		w.interrupt(ErrPaused)
	}
}

// these ends the handlers of some timers.
func (h *halt) these(what map[handled]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.under {
		if what[w.handled] {
			w.interrupt(ErrStopped)
		}
	}
}
