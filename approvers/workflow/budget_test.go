package workflow_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// TestTokensOfADay checks a person whose tokens for the day are used up. The turn stops with a sentence for the person,
// and can continue on the next day.
func TestTokensOfADay(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Budgets.Tokens = 1_000 }))
	for range 2 { // with 999 tokens used, one more call is made, even if it needs many tokens
		turn := h.say(alice, "a question").Turn
		b := h.begin(turn)
		h.ok(h.Turns.Answer(h.ctx(), turn, b.Turn.Step, "an answer", nil, 999))
	}
	turn := h.say(alice, "one more").Turn
	if _, err := h.Turns.Begin(h.ctx(), turn); !errors.Is(err, workflow.ErrNotDue) {
		t.Fatalf("the model is called although the tokens are used up: %v", err)
	}
	stopped := readStore(h, func(r store.Reader) (approvers.Turn, error) { return r.Turn(turn) })
	if stopped.State != approvers.TurnStopped || !contains(stopped.Problem, "1,000 tokens") || !contains(stopped.Problem, "Tuesday 00:00 UTC") || !stopped.CanRetry {
		t.Errorf("%s: %q, can be retried: %t", stopped.State, stopped.Problem, stopped.CanRetry)
	}
	h.answer(h.sayIn("other", bob, "mine is whole").Turn) // each person has a budget of their own
	h.clock.pass(15 * time.Hour)
	h.ok(h.Turns.TryAgain(h.ctx(), workflow.Click{Who: alice, Turn: turn}))
	h.answer(turn)
}

// TestCallsOfADay checks a call beyond the day's budget. The tool does not run, and the call's result gives the reason.
// TestCallsOfADay also checks that an agent's own budget takes precedence over the policy's budget.
func TestCallsOfADay(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Budgets.Calls = 1
		p.Agents[0].Budgets = &approvers.Budgets{Calls: 2}
	}))
	turn := h.say(alice, "look three times").Turn
	cs := h.propose(turn, `search_orders {"n":1}`, `search_orders {"n":2}`, `search_orders {"n":3}`)
	h.run(cs[0].Execution, "ok")
	h.run(cs[1].Execution, "ok")
	if c := h.call(cs[2].ID); c.Outcome != approvers.OutcomeError || c.Execution != "" || !contains(c.Result, "2 tool calls that one person has for a day") {
		t.Errorf("the third call, where two are allowed: %s %s", c.Outcome, c.Result)
	}
	h.answer(turn)
	h.clock.pass(24 * time.Hour)
	h.ok(h.Intake.Forget(h.ctx(), time.Hour))
	turn = h.say(alice, "again").Turn
	h.run(h.propose(turn, `search_orders {}`)[0].Execution, "ok")
	h.answer(turn)
}

// TestForgetCounters checks that Forget deletes old counters and keeps newer counters, even if there are many counters.
func TestForgetCounters(t *testing.T) {
	h := newHarness(t)
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
		for i := range 2_500 {
			if err := tx.AddCounter(store.Counter{Key: "k", ID: fmt.Sprint(i), At: h.clock.Now(), N: 1}); err != nil {
				return err
			}
		}
		return nil
	}))
	count := func() int {
		return readStore(h, func(r store.Reader) (int, error) { return r.CounterSum("k", time.Time{}) })
	}
	h.clock.pass(47 * time.Hour)
	h.ok(h.Intake.Forget(h.ctx(), time.Hour))
	if n := count(); n != 2_500 {
		t.Errorf("%d are left after 47 hours", n)
	}
	h.clock.pass(2 * time.Hour)
	h.ok(h.Intake.Forget(h.ctx(), time.Hour))
	if n := count(); n != 0 {
		t.Errorf("%d are left after 49 hours", n)
	}
}
