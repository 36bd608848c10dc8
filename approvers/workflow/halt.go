package workflow

import (
	"context"
	"errors"
	"sync"

	"countersign/approvers"
	"countersign/store"
)

// halt ends the contexts of handlers when everything is paused, and those of one turn when somebody stops it. A handler
// enters before it claims anything. So either it began before the pause or the stop was committed, and its context
// ends, or its own transaction finds the pause or the stop.
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

// halted has the kinds of timer whose handlers a pause ends.
var halted = map[store.TimerKind]bool{store.TimerThink: true, store.TimerRun: true, store.TimerPreview: true}

// interruption says whether a context was interrupted, and why.
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

// has reports whether a handler of this process works on something.
func (h *halt) has(what handled) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.under {
		if w.handled == what {
			return true
		}
	}
	return false
}

// now interrupts all handlers.
func (h *halt) now() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.under {
		w.interrupt(ErrPaused)
	}
}

// these interrupts the handlers of some timers.
func (h *halt) these(what map[handled]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.under {
		if what[w.handled] {
			w.interrupt(ErrStopped)
		}
	}
}

// ErrStopped is the cause with which the contexts of a turn's handlers end when somebody stops the turn.
var ErrStopped = errors.New("workflow: somebody stopped the turn")

// Halt stops a turn for a person who may use its agent. A running model call ends, and its output is dropped. Open
// requests and calls that have not begun are withdrawn, and running tools are interrupted. When every call has its
// result, the turn stops. Messages that waited for it start the next turn.
func (w *Turns) Halt(ctx context.Context, c Click) error {
	return w.click(ctx, "halt", c, func(t *tx) (*approvers.Denied, error) {
		turn, denied, err := t.turns.askersTurn(c)
		if denied != nil || err != nil {
			return denied, err
		}
		if turn.Ended() || turn.Halted != "" {
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		conv, err := t.Conversation(turn.Conversation)
		if err != nil {
			return nil, err
		}
		return t.turns.haltTurn(turn, conv, c)
	})
}

// askersTurn returns the turn of a click. A person who may not use its agent is denied.
func (t turnsTx) askersTurn(c Click) (turn approvers.Turn, denied *approvers.Denied, err error) {
	turn, err = t.Turn(c.Turn)
	if errors.Is(err, store.ErrNotFound) {
		return turn, &approvers.Denied{Code: approvers.DeniedNotFound}, nil
	}
	if err != nil {
		return turn, nil, err
	}
	agent, ok := t.policy.Agent(turn.Agent)
	if !ok {
		return turn, &approvers.Denied{Code: approvers.DeniedChannel}, nil
	}
	return turn, agent.MayAsk(c.Who), nil
}

// haltTurn stops a turn that has not ended.
func (t turnsTx) haltTurn(turn approvers.Turn, conv store.Conversation, c Click) (*approvers.Denied, error) {
	sentence := c.Who.Name + " stopped this."
	if turn.State != approvers.TurnWaiting {
		t.stops[handled{store.TimerThink, turn.ID}] = true
		return nil, t.stop(turn, conv, sentence, true)
	}
	turn, err := turn.Halt(sentence)
	if err != nil {
		return nil, err
	}
	if err := t.PutTurn(turn); err != nil {
		return nil, err
	}
	calls, err := t.Calls(turn.ID)
	if err != nil {
		return nil, err
	}
	for _, call := range calls {
		if call.Step != turn.Step || call.Outcome != "" {
			continue
		}
		if denied, err := t.withdrawCall(call, c, "the agent was stopped"); denied != nil || err != nil {
			return denied, err
		}
		if err := t.runs.cutRun(call.ID); err != nil {
			return nil, err
		}
	}
	if err := t.outbox.changedTurn(turn.ID, store.OutboxStep, turn.Step); err != nil { // its stop button is removed
		return nil, err
	}
	return nil, t.outbox.changedTurn(turn.ID, store.OutboxQueued, 0)
}

// cutRun withdraws a call's run that has not begun, and interrupts one that has.
func (t runsTx) cutRun(id string) error {
	call, err := t.Call(id) // withdrawCall may have changed it
	if err != nil || call.Outcome != "" || call.Execution == "" {
		return err
	}
	e, err := t.Execution(call.Execution)
	if err != nil {
		return err
	}
	switch e.State {
	case approvers.ExecutionExecuting:
		if err := t.questions.cancelElicitations(e.ID, whyHalted); err != nil {
			return err
		}
		t.stops[handled{store.TimerRun, e.ID}] = true
	case approvers.ExecutionNone:
		res := approvers.NewResult(approvers.OutcomeWithdrawn, call.Tool, "the agent was stopped before it ran", "")
		if err := t.ClearTimer(store.TimerRun, e.ID); err != nil {
			return err
		}
		if err := t.turns.giveResult(call, approvers.OutcomeWithdrawn, res.Text()); err != nil {
			return err
		}
		return t.outbox.changedTurn(call.Turn, store.OutboxStep, call.Step)
	}
	return nil
}

// isHalted reports whether the turn of a run was stopped while it ran.
func (t runsTx) isHalted(e approvers.Execution) (bool, error) {
	turn, err := t.Turn(e.Turn)
	return turn.Halted != "" && turn.State == approvers.TurnWaiting, store.IgnoreNotFound(err)
}

// cutOff ends a run that was interrupted because its turn was stopped. A read-only run fails. The outcome of any other
// run is unknown: people are asked, but the turn does not wait for them.
func (t runsTx) cutOff(e approvers.Execution) error {
	if e.Effect == approvers.ReadOnly {
		e, err := e.Finish(false, "it was stopped before it answered", t.now)
		if err != nil {
			return err
		}
		return t.finished(e)
	}
	if err := t.markUnknown(e, approvers.LossHalted); err != nil {
		return err
	}
	e, err := t.Execution(e.ID)
	if err != nil {
		return err
	}
	return t.leave(e)
}
