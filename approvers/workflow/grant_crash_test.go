package workflow_test

import (
	"testing"

	"countersign/approvers"
	"countersign/internal/testkit"
)

// newGranting returns an environment in which a person approves the first refund together with a grant for two more
// refunds. The model then requests four refunds.
func newGranting(t testing.TB, kill func(point string) bool) *environment {
	w := newEnvironment(t, kill)
	w.policy.Store(policy("policy-1", granting, func(p *approvers.Policy) { p.Tools[3].TrustAfter = 0 }))
	w.script = []string{oneRefund}
	w.then = []string{oneRefund, oneRefund, oneRefund, oneRefund}
	w.allow = 2
	return w
}

// grantHeld checks that two of the four refunds ran under the grant, and that people were asked about the other two
// refunds. The result must be the same for every point at which the process was killed.
func (w *environment) grantHeld() {
	t := w.t
	t.Helper()
	w.turns = w.heard()
	turn := w.turns[0]
	w.wantTurn(turn, approvers.TurnAnswered)
	under, decided := 0, 0
	for _, c := range w.callsOf(turn) {
		e := w.execution(c.Execution)
		if n := w.acts[e.ID]; n > 1 || w.calls[e.ID] > 1 || (n == 1) != (e.State == approvers.ExecutionSucceeded) {
			t.Errorf("a refund was made %d times, and is %s", n, e.State)
		}
		switch {
		case c.Request == "" && e.GrantUse > 0:
			under++
		case len(w.request(c.Request).Decisions) == 1 && e.GrantUse == 0:
			decided++
		default:
			t.Errorf("a refund is %s: %s, use %d", c.Outcome, e.State, e.GrantUse)
		}
	}
	if under != 2 || decided != 3 {
		t.Errorf("%d ran under the grant and %d were approved; want 2 and 3", under, decided)
	}
	if open := w.grants(); len(open) != 0 {
		t.Errorf("a grant is %s with %d left", open[0].State, open[0].Left)
	}
}

// TestKilledWhileAGrantIsUsed kills the process at each point. Each use of the grant must be counted exactly once. One
// transaction stores the state executing and counts the use.
func TestKilledWhileAGrantIsUsed(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	killedAtEveryPoint(t, newGranting, (*environment).grantHeld)
}
