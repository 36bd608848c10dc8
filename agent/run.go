package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/redact"
	"countersign/internal/tracing"
	"countersign/store"
)

// finished is the outcome of a run.
type finished struct {
	lost   bool // the outcome is unknown, because the tool may have acted
	ok     bool
	unrun  bool   // the run never started
	result string // the tool's answer in the form for the model, or the reason for the failure
	files  []workflow.File
}

// Reasons why a run ends without an answer.
var (
	errStopping = errors.New("the process is being stopped")
	errTimeUp   = errors.New("the tool did not answer in time")
	errPanic    = errors.New("the tool failed in the middle of its work")
)

// patience is how long a tool may take to return after its context ends. patience must be much shorter than the
// workflow's lease on a run.
const patience = 10 * time.Second

// Run is the handler of store.TimerRun. Run claims the execution, calls the tool with the stored bytes, and records
// the result.
//
// A run of a read-only tool without an answer counts as failed. Any other run without an answer is not recorded as a
// failure, because after a failure, the model could make the call again. The run of an idempotent tool is claimed again
// and retried with the same key, up to the workflow's limit. After the first try, an error never counts as a failure,
// because the first try may have acted. If a person has declined a question of the tool, the run is not retried,
// because the tool would ask again. Then people are asked for the outcome, as for an unprotected tool.
// A run that is interrupted by a shutdown stays in the state executing, and the next process applies the same rules. A
// pause interrupts a run without a grace period. After the pause, a read-only or idempotent tool runs again. When a
// person stops the turn, its runs are also interrupted without a grace period, and they are not retried. If a stopped
// run gives an answer, the answer is recorded. If a stopped run gives no answer, it counts as failed if its tool is
// read-only. Otherwise, its outcome is unknown.
//
// While the database does not answer, Claim can take so long that another replica takes over the run, and asks people
// about its outcome. So if ctx has ended when Claim returns, the tool is not called.
func (a *Agent) Run(ctx context.Context, t store.Timer) error {
	for {
		if late, ok := a.takeUnrecorded(t.Ref); ok {
			return a.record(ctx, t.Ref, late)
		}
		e, run, err := a.Runs.Claim(ctx, t.Ref)
		if err != nil {
			return fmt.Errorf("claim %s: %w", t.Ref, err)
		}
		if !run {
			return nil
		}
		tracing.Belongs(ctx, tracing.Subject{Turn: e.Turn, Request: e.Request})
		log := a.Log.With("tool", e.Tool, "execution", e.ID, "conversation", e.Conversation)
		if e.Request != "" {
			log = log.With("request", e.Request)
		}
		if ctx.Err() != nil && !paused(ctx) && !stopped(ctx) {
			log.WarnContext(ctx, "a claimed run does not begin, because the process stops or has lost its share of the work", "error", context.Cause(ctx))
			return ctx.Err()
		}
		done, err := a.execute(ctx, e, log)
		switch {
		case err == nil:
			log.InfoContext(ctx, "tool ran", "ok", done.ok, "result_bytes", len(done.result), "took", a.Now().Sub(e.StartedAt))
			return a.record(ctx, e.ID, done)
		case paused(ctx) && e.Effect != approvers.Unprotected:
			log.WarnContext(ctx, "a pause interrupted a tool; it is run again after the pause", "error", err)
			return a.Runs.PutBack(context.WithoutCancel(ctx), e.ID)
		case paused(ctx), stopped(ctx):
		case ctx.Err() != nil:
			log.WarnContext(ctx, "the process stops while a tool is running; the next start determines the outcome", "error", err)
			return ctx.Err()
		}
		log.WarnContext(ctx, "the outcome of a run is unknown", "try", e.Tries, "error", err)
		if e.Effect == approvers.Unprotected || stopped(ctx) || errors.As(err, new(declined)) {
			return a.record(ctx, e.ID, finished{lost: true})
		}
		if !sleep(ctx, time.Second<<min(e.Tries-1, 3)) {
			if paused(ctx) {
				return a.Runs.PutBack(context.WithoutCancel(ctx), e.ID)
			}
			if stopped(ctx) {
				return a.record(ctx, e.ID, finished{lost: true})
			}
			return ctx.Err()
		}
	}
}

// paused reports whether a context ended because of a pause.
func paused(ctx context.Context) bool { return errors.Is(context.Cause(ctx), workflow.ErrPaused) }

// stopped reports whether a context ended because somebody stopped the turn.
func stopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), workflow.ErrStopped) }

// sleep waits for the duration d. The function returns false if ctx ended first.
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

// execute runs a claimed execution. An error means that the outcome is unknown.
func (a *Agent) execute(ctx context.Context, e approvers.Execution, log *slog.Logger) (finished, error) {
	tool, ok := a.Tools.find(e.Tool)
	if !ok || tool.pinned.Hash != e.ToolHash {
		return notRun(e, "it was not run, because the tool's definition changed"), nil
	}
	within, span := startTool(ctx, tracing.SpanTool, e)
	text, files, err := a.call(within, tool, e, log)
	span.End(toolProblem(err))
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
		return over(false, sentence(err, tool.Timeout)) // a read-only tool has no effect, so its run counts as failed
	case errors.Is(err, ErrOutcomeUnknown), errors.Is(err, errTimeUp), errors.Is(err, errStopping), errors.Is(err, errPanic),
		errors.Is(err, workflow.ErrPaused), errors.Is(err, workflow.ErrStopped):
		return finished{}, err
	case e.Tries > 1 && e.Effect != approvers.ReadOnly:
		return finished{}, err // the tool may refuse this try because an earlier try has acted, or is still in progress
	}
	return over(false, sentence(err, tool.Timeout))
}

// notRun returns the outcome of a run that never started. After an earlier try of a tool with effects, the outcome is
// unknown, because the earlier try may have acted.
func notRun(e approvers.Execution, why string) finished {
	if e.Tries > 1 && e.Effect != approvers.ReadOnly {
		return finished{lost: true}
	}
	return finished{unrun: true, result: why}
}

// sentence returns the text of a tool's error for the model and for people.
func sentence(err error, timeout time.Duration) string {
	switch {
	case errors.Is(err, errTimeUp) && !errors.Is(err, ErrNotRun):
		return fmt.Sprintf("it did not answer within %s", timeout)
	case errors.Is(err, errPanic):
		return errPanic.Error()
	}
	return or(redact.Error(err), "it failed without saying why")
}

// call calls the tool's function, waits for it, and returns its result. The tool gets a context of its own. When ctx
// ends, the tool's context ends after the grace period. A pause or a stop ends the tool's context immediately.
func (a *Agent) call(ctx context.Context, t registered, e approvers.Execution, log *slog.Logger) (text string, files []workflow.File, err error) {
	var refused atomic.Bool
	defer func() {
		if err != nil && refused.Load() {
			err = declined{err}
		}
	}()
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	watch := newRunTimer(t.Timeout, func() { cancel(errTimeUp) })
	defer watch.end()
	stopping := time.AfterFunc(time.Hour, func() { cancel(errStopping) })
	stopping.Stop()
	defer stopping.Stop()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), context.Canceled) { // the cause is a shutdown, not a pause or a stop
			log.InfoContext(ctx, "the process is being stopped; it waits for this tool", "at_most", max(a.Grace, 0))
		}
		stopping.Reset(max(a.Grace, 0))
	})()

	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	in := Invocation{Key: e.ID, Args: e.Args, Conversation: e.Conversation, Turn: e.Turn, Request: e.Request, Asker: e.Asker}
	in.About = func(ctx context.Context) (string, error) { return a.About(ctx, e.Asker) }
	gauge := Gauge(noGauge{})
	if e.Call != "" { // a preview has no call, and its progress is not shown
		gauge = a.Progress(e)
	}
	defer gauge.Close()
	in.Progress = func(p Progress) { gauge.Show(p.Done, p.Total, p.Text) }
	in.Result = func(ctx context.Context, run string) (string, error) {
		return a.Results.WholeResult(ctx, e.Conversation, run)
	}
	bags := new(attachments)
	defer bags.take()
	in.Attach = bags.attach
	in.Ask = a.ask(ctx, inner, e, watch, &refused)
	a.running.Go(func() {
		text, err := protect(inner, t, in, log)
		answers <- answer{text, err}
	})
	select {
	case got := <-answers:
		return got.text, bags.take(), ended(inner, got.err)
	case <-inner.Done():
	case <-workflow.Interrupted(ctx):
		cancel(workflow.InterruptedBy(ctx))
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case got := <-answers:
		return got.text, bags.take(), ended(inner, got.err)
	case <-late.C:
		log.ErrorContext(ctx, "the tool does not return although its context has ended; it continues unsupervised")
		return "", nil, context.Cause(inner)
	}
}

// ended returns the tool's error. If the tool's context has ended, the returned error also wraps the reason why the
// context ended, unless the tool says that it was not run.
func ended(inner context.Context, err error) error {
	if err != nil && inner.Err() != nil && !errors.Is(err, ErrNotRun) {
		return fmt.Errorf("%w: %w", context.Cause(inner), err)
	}
	return err
}

// protect recovers a tool's panic.
func protect(ctx context.Context, t registered, in Invocation, log *slog.Logger) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.ErrorContext(ctx, "the tool panicked", "panic", fmt.Sprintf("%.300v", p), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return t.Run(ctx, in)
}
