package workflow_test

import (
	"fmt"
	"testing"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
)

// check checks the final state of an environment. The conditions must hold for every point at which the process was
// killed.
func (w *environment) check() {
	t := w.t
	t.Helper()
	w.turns = w.heard()
	if len(w.turns) != 3 {
		t.Fatalf("%d messages; want the question, the step and the answer", len(w.turns))
	}
	turn := w.turns[0]
	w.wantTurn(turn, approvers.TurnAnswered)
	cs := w.callsOf(turn)
	if len(cs) != len(w.script) {
		t.Fatalf("%d calls; want %d", len(cs), len(w.script))
	}
	for _, c := range cs {
		var e approvers.Execution
		if c.Execution != "" {
			e = w.execution(c.Execution)
		}
		n := w.acts[c.Execution]
		switch c.Tool {
		case "cancel_account":
			if c.Outcome != approvers.OutcomeRejected || n != 0 {
				t.Errorf("%s: %s, called %d times; want rejected", c.Tool, c.Outcome, n)
			}
		case "issue_refund":
			if c.Execution == "" {
				if c.Outcome != approvers.OutcomeError {
					t.Errorf("a broken call: %s", c.Outcome)
				}
				continue
			}
			if n > 1 || w.calls[c.Execution] > 1 || (n == 1) != (e.State == approvers.ExecutionSucceeded) || (n == 1) != (c.Outcome == approvers.OutcomeExecuted) {
				t.Errorf("%s was called %d times, is %s, and the model was told %s", c.Tool, n, e.State, c.Outcome)
			}
			if n == 0 && e.ReportedBy == "" {
				t.Errorf("%s never ran, and nobody says why: %s", c.Tool, e.State)
			}
			if r := w.request(c.Request); len(r.Decisions) != 1 || r.Decisions[0].By != lead.ID || r.State != approvers.Consumed {
				t.Errorf("%s with %d decisions", r.State, len(r.Decisions))
			}
		default:
			// If the process is killed between the claim and the call in each try of a run, the bot finally asks
			// people. People then report that the call did not happen.
			givenUp := e.Tries >= 5 && e.ReportedBy != "" && e.State == approvers.ExecutionFailed
			if !givenUp && (n < 1 || e.State != approvers.ExecutionSucceeded) {
				t.Errorf("%s was called %d times and is %s after %d tries", c.Tool, n, e.State, e.Tries)
			}
		}
	}
	answers := 0
	for _, p := range w.posts {
		answers += b2i(p.kind == store.OutboxAnswer)
	}
	if answers != 1 {
		t.Errorf("%d answers are shown", answers)
	}
	if n := len(w.timers(store.ShowTimers...)) + len(w.timers(store.TimerInbox)) + len(w.timers(store.TimerRun)); n != 0 {
		t.Errorf("%d things are left to do", n)
	}
}

// TestKilledAtEveryPoint kills the process at each point of a whole conversation. A new process then continues with the
// file of the killed process.
func TestKilledAtEveryPoint(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	killedAtEveryPoint(t, newEnvironment, (*environment).check)
}

// killedAtEveryPoint runs one environment for each point, and kills the process at this point. The short form of the
// tests skips some points. The function check checks the final state of each environment.
func killedAtEveryPoint(t *testing.T, world func(testing.TB, func(string) bool) *environment, check func(*environment)) {
	for n, crashed := 1, true; crashed; n += testkit.Stride() {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			count, at := 0, ""
			w := world(t, func(point string) bool {
				count++
				if count == n {
					at = point
				}
				return count == n
			})
			w.life()
			check(w)
			w.invariants()
			if crashed = w.crashes > 0; t.Failed() {
				t.Logf("killed at point %d: %s", n, at)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// TestKilledOverAndOver runs many processes one after the other, and kills each process after a few points.
func TestKilledOverAndOver(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	killedOverAndOver(t, newEnvironment, (*environment).check)
}

func killedOverAndOver(t *testing.T, world func(testing.TB, func(string) bool) *environment, check func(*environment)) {
	lives := testkit.Size(t, "COUNTERSIGN_CRASHES", 6)
	seed := testkit.Seed(t)
	crashes := 0
	for n := range lives {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			random := testkit.Chance(seed, uint64(n))
			w := world(t, func(string) bool { return random.IntN(8) == 0 })
			w.life()
			check(w)
			crashes += w.crashes
		})
	}
	t.Logf("lives=%d crashes=%d", lives, crashes)
	if crashes < 3*lives {
		t.Errorf("only %d crashes in %d lives", crashes, lives)
	}
}
