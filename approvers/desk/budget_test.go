package desk_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// TestTokensOfADay: when a person's tokens for the day are used up, the turn stops with a friendly sentence, and goes on the next day.
func TestTokensOfADay(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Budgets.Tokens = 1_000 }))
	for range 2 { // 999 tokens leave room for one more call, however large
		turn := o.say(alice, "a question").Turn
		b := o.begin(turn)
		o.ok(o.Answer(o.ctx(), turn, b.Turn.Step, "an answer", 999))
	}
	turn := o.say(alice, "one more").Turn
	if _, err := o.Begin(o.ctx(), turn); !errors.Is(err, desk.ErrNotDue) {
		t.Fatalf("over the budget the model is asked: %v", err)
	}
	stopped := view(o, func(r store.Reader) (approvers.Turn, error) { return r.Turn(turn) })
	if stopped.State != approvers.TurnStopped || !contains(stopped.Problem, "1,000 tokens") || !contains(stopped.Problem, "Tuesday 00:00 UTC") || !stopped.CanRetry {
		t.Errorf("%s: %q, can be retried: %t", stopped.State, stopped.Problem, stopped.CanRetry)
	}
	o.answer(o.sayIn("other", bob, "mine is whole").Turn) // everybody has their own
	o.clock.pass(15 * time.Hour)
	o.ok(o.TryAgain(o.ctx(), desk.Click{Who: alice, Turn: turn}))
	o.answer(turn)
}

// TestCallsOfADay: a call beyond the day's budget gets a result that says so, and runs no tool; an agent's own budget goes before the policy's.
func TestCallsOfADay(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Budgets.Calls = 1
		p.Agents[0].Budgets = &approvers.Budgets{Calls: 2}
	}))
	turn := o.say(alice, "look three times").Turn
	cs := o.propose(turn, `search_orders {"n":1}`, `search_orders {"n":2}`, `search_orders {"n":3}`)
	o.run(cs[0].Execution, "ok")
	o.run(cs[1].Execution, "ok")
	if c := o.call(cs[2].ID); c.Outcome != approvers.OutcomeError || c.Execution != "" || !contains(c.Result, "2 tool calls that one person has for a day") {
		t.Errorf("the third of two: %s %s", c.Outcome, c.Result)
	}
	o.answer(turn)
	o.clock.pass(24 * time.Hour)
	o.ok(o.Forget(o.ctx(), time.Hour))
	turn = o.say(alice, "again").Turn
	o.run(o.propose(turn, `search_orders {}`)[0].Execution, "ok")
	o.answer(turn)
}

// TestForgetTallies: what is counted is kept as long as it counts, however much it is.
func TestForgetTallies(t *testing.T) {
	o := newOffice(t)
	o.ok(o.store.Update(o.ctx(), func(tx store.Tx) error {
		for i := range 2_500 {
			if err := tx.AddTally(store.Tally{Key: "k", ID: fmt.Sprint(i), At: o.clock.Now(), N: 1}); err != nil {
				return err
			}
		}
		return nil
	}))
	count := func() int {
		return view(o, func(r store.Reader) (int, error) { return r.CountTally("k", time.Time{}) })
	}
	o.clock.pass(47 * time.Hour)
	o.ok(o.Forget(o.ctx(), time.Hour))
	if n := count(); n != 2_500 {
		t.Errorf("%d are left after 47 hours", n)
	}
	o.clock.pass(2 * time.Hour)
	o.ok(o.Forget(o.ctx(), time.Hour))
	if n := count(); n != 0 {
		t.Errorf("%d are left after 49 hours", n)
	}
}
