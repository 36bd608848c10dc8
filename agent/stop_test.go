package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
)

// Stopping a turn ends its tools immediately. If a tool returns an answer, the answer is recorded. If it returns no
// answer, a read-only run counts as failed, and the outcome of any other run is unknown. No tool runs again.
func TestStoppedBySomebody(t *testing.T) {
	gives := func(ctx context.Context) (string, error) { return "", ctx.Err() }
	tells := func(context.Context) (string, error) { return "done", nil }
	for _, c := range []struct {
		name, tool string
		end        func(context.Context) (string, error)
		want       approvers.ExecutionState
	}{
		{"it can tell", "issue_refund", tells, approvers.ExecutionSucceeded},
		{"it can't", "issue_refund", gives, approvers.ExecutionUnknown},
		{"it can't", "set_price", gives, approvers.ExecutionUnknown},
		{"it can't", "shop.look_up", gives, approvers.ExecutionFailed},
	} {
		t.Run(c.name+" "+c.tool, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				a, d := runner(func(ctx context.Context, _ Invocation) (string, error) {
					runs++
					<-ctx.Done()
					return c.end(ctx)
				}, c.tool)
				ctx, interrupt, done := workflow.Interruptible(t.Context())
				defer done()
				time.AfterFunc(5*time.Second, func() { interrupt(workflow.ErrStopped) })
				began := time.Now()
				if err := a.Run(ctx, due); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); d.execution.State != c.want || d.putBack != 0 || runs != 1 || took != 5*time.Second {
					t.Errorf("%s after %d runs, put back %d times, after %s", d.execution.State, runs, d.putBack, took)
				}
			})
		})
	}
}
