package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
)

// If a tool returns ErrNotRun, the run is recorded as not run, and not as failed. After an earlier try of a tool with
// effects, the outcome is unknown.
func TestNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		tool  string
		tries int
		want  finished
	}{
		"the first try":                    {"issue_refund", 0, finished{unrun: true, result: "it was not run: its definition is another"}},
		"a later try":                      {"set_price", 1, finished{lost: true}},
		"one that only reads, a later try": {"shop.look_up", 1, finished{unrun: true, result: "it was not run: its definition is another"}},
	} {
		a, d := runner(func(context.Context, Invocation) (string, error) {
			return "", fmt.Errorf("%w: its definition is another", ErrNotRun)
		}, c.tool)
		if c.tries > 0 {
			d.execution.State, d.execution.Tries = approvers.ExecutionExecuting, c.tries
		}
		if err := a.Run(t.Context(), due); err != nil || len(d.results) != 1 || !reflect.DeepEqual(d.results[0], c.want) {
			t.Errorf("%s: %+v, %v", name, d.results, err)
		}
		if d.execution.Unrun != c.want.unrun {
			t.Errorf("%s: %+v", name, d.execution)
		}
	}
}

// If a run ends before its request is sent, it is recorded as not run, with the text of the tool's error. A run that a pause ended is an exception if it
// can be repeated: it runs after the pause.
func TestNotSent(t *testing.T) {
	for _, c := range []struct {
		tool    string
		effect  approvers.Effect
		cause   error
		want    approvers.ExecutionState
		putBack int
	}{
		{"issue_refund", approvers.Unprotected, workflow.ErrStopped, approvers.ExecutionFailed, 0},
		{"set_price", approvers.Idempotent, workflow.ErrStopped, approvers.ExecutionFailed, 0},
		{"shop.look_up", approvers.ReadOnly, workflow.ErrStopped, approvers.ExecutionFailed, 0},
		{"issue_refund", approvers.Unprotected, workflow.ErrPaused, approvers.ExecutionFailed, 0},
		{"set_price", approvers.Idempotent, workflow.ErrPaused, approvers.ExecutionExecuting, 1},
		{"shop.look_up", approvers.ReadOnly, workflow.ErrPaused, approvers.ExecutionExecuting, 1},
		{"issue_refund", approvers.Unprotected, nil, approvers.ExecutionFailed, 0}, // the time is up
		{"set_price", approvers.Idempotent, nil, approvers.ExecutionFailed, 0},
	} {
		t.Run(fmt.Sprintf("%s %v", c.tool, c.cause), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, d := runner(func(ctx context.Context, _ Invocation) (string, error) {
					<-ctx.Done()
					return "", NotSent(ctx, c.effect, fmt.Errorf("it waited for the server: %w", context.Cause(ctx)))
				}, c.tool)
				ctx, interrupt, done := workflow.Interruptible(t.Context())
				defer done()
				if c.cause != nil {
					time.AfterFunc(time.Second, func() { interrupt(c.cause) })
				}
				if err := a.Run(ctx, due); err != nil {
					t.Fatal(err)
				}
				if e := d.execution; e.State != c.want || e.Unrun != (c.want == approvers.ExecutionFailed) || d.putBack != c.putBack {
					t.Errorf("%s, not run: %t, put back %d times", e.State, e.Unrun, d.putBack)
				}
				cause := c.cause
				if cause == nil {
					cause = errTimeUp
				}
				if want := "it was not run: it waited for the server: " + cause.Error(); c.putBack == 0 && (len(d.results) != 1 || d.results[0].result != want) {
					t.Errorf("recorded %+v, want %q", d.results, want)
				}
			})
		})
	}
}

// After a shutdown, the next process runs a repeatable call whose request was not sent.
func TestNotSentAtAShutdown(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errStopping)
	for effect, want := range map[approvers.Effect]bool{approvers.Unprotected: true, approvers.Idempotent: false, approvers.ReadOnly: false} {
		if err := NotSent(ctx, effect, errors.New("it waited for the server")); errors.Is(err, ErrNotRun) != want {
			t.Errorf("%s: %v", effect, err)
		}
	}
}
