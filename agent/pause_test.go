package agent

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// A pause immediately ends a tool's context, without the grace period of a shutdown. If the tool returns an answer,
// the answer is recorded. If the tool can't tell whether it acted, a repeatable tool runs again after the pause. For
// any other tool, the outcome is unknown.
func TestPausing(t *testing.T) {
	gives := func(ctx context.Context) (string, error) { return "", ctx.Err() }
	tells := func(context.Context) (string, error) { return "done", nil }
	for _, c := range []struct {
		name    string
		tool    string
		end     func(context.Context) (string, error)
		want    approvers.ExecutionState
		putBack int
	}{
		{"it can tell", "issue_refund", tells, approvers.ExecutionSucceeded, 0},
		{"it can tell", "set_price", tells, approvers.ExecutionSucceeded, 0},
		{"it can't", "issue_refund", gives, approvers.ExecutionUnknown, 0},
		{"it can't", "set_price", gives, approvers.ExecutionExecuting, 1},
		{"it can't", "shop.look_up", gives, approvers.ExecutionExecuting, 1},
	} {
		t.Run(c.name+" "+c.tool, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, d := runner(func(ctx context.Context, _ Invocation) (string, error) {
					<-ctx.Done()
					return c.end(ctx)
				}, c.tool)
				ctx, interrupt, done := workflow.Interruptible(t.Context())
				defer done()
				time.AfterFunc(5*time.Second, func() { interrupt(workflow.ErrPaused) })
				began := time.Now()
				if err := a.Run(ctx, due); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); d.execution.State != c.want || d.putBack != c.putBack || took != 5*time.Second {
					t.Errorf("%s, put back %d times, after %s", d.execution.State, d.putBack, took)
				}
			})
		})
	}
}

// A pause during the grace period of a shutdown also ends the tool's context.
func TestPausingWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, d := runner(func(ctx context.Context, _ Invocation) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, "issue_refund")
		a.Grace = time.Minute
		stopping, stop := context.WithCancel(t.Context())
		ctx, interrupt, done := workflow.Interruptible(stopping)
		defer done()
		time.AfterFunc(time.Second, stop)
		time.AfterFunc(3*time.Second, func() { interrupt(workflow.ErrPaused) })
		began := time.Now()
		if err := a.Run(ctx, due); !errors.Is(err, context.Canceled) || time.Since(began) != 3*time.Second || d.execution.State != approvers.ExecutionExecuting {
			t.Errorf("%v after %s, %s; the next process has to look into it", err, time.Since(began), d.execution.State)
		}
	})
}

// If a pause begins between two tries of a run, the agent tries the run again after the pause.
func TestPausingBetweenTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, d := runner(func(context.Context, Invocation) (string, error) { return "", ErrOutcomeUnknown }, "set_price")
		ctx, interrupt, done := workflow.Interruptible(t.Context())
		defer done()
		time.AfterFunc(500*time.Millisecond, func() { interrupt(workflow.ErrPaused) })
		if err := a.Run(ctx, due); err != nil || d.putBack != 1 || d.execution.Tries != 1 {
			t.Errorf("%v; put back %d times after %d tries", err, d.putBack, d.execution.Tries)
		}
	})
}

// A pause ends a model call. The agent discards the partial answer.
func TestPausingAModelCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeWorkflow{brief: asked("hello")}
		a := newAgent(d, tripper(func(r *http.Request) (*http.Response, error) {
			body, w := io.Pipe()
			go func() {
				_, _ = io.WriteString(w, stream(delta(says("Hel"), "")))
				<-r.Context().Done()
				w.CloseWithError(r.Context().Err())
			}()
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: r}, nil
		}))
		ctx, interrupt, done := workflow.Interruptible(t.Context())
		defer done()
		time.AfterFunc(time.Second, func() { interrupt(workflow.ErrPaused) })
		err := a.Think(ctx, store.Timer{Kind: store.TimerThink, Ref: "turn_1"})
		if !errors.Is(err, context.Canceled) || len(d.answers)+len(d.proposals)+len(d.stops)+len(d.postponed) > 0 {
			t.Errorf("%v; %d answers, %d steps, %d stops, %d postponed", err, len(d.answers), len(d.proposals), len(d.stops), len(d.postponed))
		}
	})
}
