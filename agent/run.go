package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/internal/redact"
	"countersign/store"
)

// finished is how a run ended.
type finished struct {
	lost   bool // nobody knows whether it acted
	ok     bool
	unrun  bool   // it was not even begun
	result string // what the tool answered, as the model is given it, or why not
	files  []desk.File
}

// Ways in which a run can end without an answer.
var (
	errStopping = errors.New("the process is being stopped")
	errTimeUp   = errors.New("the tool did not answer in time")
	errPanic    = errors.New("the tool failed in the middle of its work")
)

// patience is how long a tool may take to return once its context has ended. It is well within the desk's lease.
const patience = 10 * time.Second

// Run is the handler of store.TimerRun: it uses up the permission for one run, runs the stored bytes, and records what the tool answered.
//
// A run whose outcome nobody can tell is not recorded as a failure, since the model would take that as leave to ask for it again. An
// idempotent tool is claimed anew and tried again under the same key, as often as the desk allows; about any other, people are asked.
// A run that the end of the process interrupts is left executing; the next process does the same with it. A pause interrupts without grace: a tool
// that may be run again is left until everything goes on, and about any other that can't tell whether it acted people are asked. So does somebody who stops the turn; then nothing is run
// again: what only reads has failed, and of anything else that can't tell the outcome is unknown.
func (a *Agent) Run(ctx context.Context, t store.Timer) error {
	for {
		if late, ok := a.takeUnrecorded(t.Ref); ok {
			return a.record(ctx, t.Ref, late)
		}
		e, run, err := a.Desk.Claim(ctx, t.Ref)
		if err != nil {
			return fmt.Errorf("claim %s: %w", t.Ref, err)
		}
		if !run {
			return nil
		}
		log := a.Log.With("tool", e.Tool, "execution", e.ID, "conversation", e.Conversation)
		if e.Request != "" {
			log = log.With("request", e.Request)
		}
		done, err := a.execute(ctx, e, log)
		switch {
		case err == nil:
			log.Info("tool ran", "ok", done.ok, "result_bytes", len(done.result), "took", a.Now().Sub(e.StartedAt))
			return a.record(ctx, e.ID, done)
		case paused(ctx) && e.Effect != approvers.Unprotected:
			log.Warn("a pause interrupted a tool; it is run again when everything goes on", "error", err)
			return a.Desk.PutBack(context.WithoutCancel(ctx), e.ID)
		case paused(ctx), stopped(ctx):
		case ctx.Err() != nil:
			log.Warn("the process stops while a tool is running; its outcome is looked into at the next start", "error", err)
			return ctx.Err()
		}
		log.Warn("the outcome of a run is not known", "try", e.Tries, "error", err)
		if e.Effect == approvers.Unprotected || stopped(ctx) {
			return a.record(ctx, e.ID, finished{lost: true})
		}
		if !sleep(ctx, time.Second<<min(e.Tries-1, 3)) {
			if paused(ctx) {
				return a.Desk.PutBack(context.WithoutCancel(ctx), e.ID)
			}
			if stopped(ctx) {
				return a.record(ctx, e.ID, finished{lost: true})
			}
			return ctx.Err()
		}
	}
}

// paused reports whether a context ended because everything was paused.
func paused(ctx context.Context) bool { return errors.Is(context.Cause(ctx), desk.ErrPaused) }

// stopped reports whether a context ended because somebody stopped the turn.
func stopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), desk.ErrStopped) }

// sleep waits, and reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// execute runs a claimed execution. It returns an error only where it can't be told what happened.
func (a *Agent) execute(ctx context.Context, e approvers.Execution, log *slog.Logger) (finished, error) {
	tool, ok := a.Tools.find(e.Tool)
	if !ok || tool.pinned.Hash != e.ToolHash {
		return notRun(e, "it was not run, because the tool's definition changed"), nil
	}
	text, files, err := a.call(ctx, tool, e, log)
	over := func(ok bool, text string) (finished, error) {
		done := finished{ok: ok}
		done.result, done.files = a.told(e, text, files)
		return done, nil
	}
	switch {
	case err == nil:
		return over(true, text)
	case errors.Is(err, ErrNotRun):
		return notRun(e, sentence(err, tool.Timeout)), nil
	case e.Effect == approvers.ReadOnly && stopped(ctx):
		return finished{result: "it was stopped before it answered"}, nil
	case e.Effect == approvers.ReadOnly && ctx.Err() == nil:
		return over(false, sentence(err, tool.Timeout)) // nothing can have happened
	case errors.Is(err, ErrOutcomeUnknown), errors.Is(err, errTimeUp), errors.Is(err, errStopping), errors.Is(err, errPanic), errors.Is(err, desk.ErrPaused), errors.Is(err, desk.ErrStopped):
		return finished{}, err
	}
	return over(false, sentence(err, tool.Timeout))
}

// notRun is the end of a run that was not begun. If there was a try before, that may have acted.
func notRun(e approvers.Execution, why string) finished {
	if e.Tries > 1 && e.Effect != approvers.ReadOnly {
		return finished{lost: true}
	}
	return finished{unrun: true, result: why}
}

// sentence is an error as the model and people read it.
func sentence(err error, timeout time.Duration) string {
	switch {
	case errors.Is(err, errTimeUp):
		return fmt.Sprintf("it did not answer within %s", timeout)
	case errors.Is(err, errPanic):
		return errPanic.Error()
	}
	return or(redact.Error(err), "it failed without saying why")
}

// call calls the tool's function and waits for it, and says what it brought back. The tool is not stopped with ctx at once, but after the grace period; a pause stops it at once.
func (a *Agent) call(ctx context.Context, t registered, e approvers.Execution, log *slog.Logger) (string, []desk.File, error) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	watch := newStopwatch(t.Timeout, func() { cancel(errTimeUp) })
	defer watch.end()
	stopping := time.AfterFunc(a.Grace, func() { cancel(errStopping) })
	stopping.Stop()
	defer stopping.Stop()
	defer context.AfterFunc(ctx, func() { stopping.Reset(a.Grace) })()

	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	in := Invocation{Key: e.ID, Args: e.Args, Conversation: e.Conversation, Turn: e.Turn, Request: e.Request, Asker: e.Asker}
	in.About = func(ctx context.Context) (string, error) { return a.About(ctx, e.Asker) }
	gauge := Gauge(noGauge{})
	if e.Call != "" { // a preview is no run
		gauge = a.Progress(e)
	}
	defer gauge.Close()
	in.Progress = func(p Progress) { gauge.Show(p.Done, p.Total, p.Text) }
	in.Result = func(ctx context.Context, run string) (string, error) {
		return a.Desk.WholeResult(ctx, e.Conversation, run)
	}
	bags := new(luggage)
	defer bags.take()
	in.Attach = bags.attach
	in.Ask = a.ask(ctx, inner, e, watch)
	a.running.Go(func() {
		text, err := protect(inner, t, in, log)
		answers <- answer{text, err}
	})
	select {
	case got := <-answers:
		return got.text, bags.take(), ended(inner, got.err)
	case <-inner.Done():
	case <-desk.Interrupted(ctx):
		cancel(desk.InterruptedBy(ctx))
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case got := <-answers:
		return got.text, bags.take(), ended(inner, got.err)
	case <-late.C:
		log.Error("the tool does not return although its context has ended; it goes on without being watched")
		return "", nil, context.Cause(inner)
	}
}

// ended says why a tool returned an error: its own, or that its context had ended.
func ended(inner context.Context, err error) error {
	if err != nil && inner.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(inner), err)
	}
	return err
}

// protect keeps a tool's panic from taking the process down.
func protect(ctx context.Context, t registered, in Invocation, log *slog.Logger) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("the tool panicked", "panic", fmt.Sprintf("%.300v", p), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return t.Run(ctx, in)
}
