package desk_test

import (
	"fmt"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/store"
)

func TestAutomaticRunsAreLimited(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "change it three times").Turn
	cs := o.propose(turn, `update_address {"n":1}`, `update_address {"n":2}`, `update_address {"n":3}`)
	o.say(bob, "and hurry")
	o.run(cs[0].Execution, "ok")
	o.run(cs[1].Execution, "ok")
	step := func() (s store.Surface) {
		for _, s = range o.surfacesOf(turn) {
			if s.Kind == store.SurfaceStep {
				return s
			}
		}
		return s
	}
	before := step().Want
	o.notRun(cs[2].Execution)
	c := o.call(cs[2].ID)
	if c.Request == "" {
		t.Fatalf("the third of two runs an hour: outcome %s", c.Outcome)
	}
	if step().Want == before {
		t.Error("the asker's thread does not show that the call waits now")
	}
	told := false
	for _, s := range o.surfacesOf(turn) {
		told = told || s.Kind == store.SurfaceQueued
	}
	if !told {
		t.Error("whoever wrote meanwhile is not told that the message waits")
	}
	r := o.request(c.Request)
	if got := r.Plan.Stages[0].Approver; got != "support-agent" || !contains(fmt.Sprint(r.Plan.Why), "more than 2/h automatic runs") {
		t.Errorf("asked %s because %q", got, r.Plan.Why)
	}
	o.approve(support, r.ID)
	o.run(c.Execution, "ok")
	o.wantKinds(r.ID, "proposed decided approved executing executed returned")
	o.clock.pass(time.Hour)
	cs = o.propose(turn, `update_address {"n":4}`)
	o.run(cs[0].Execution, "ok")
	o.answer(turn)
	// Another conversation has its own count.
	other := o.sayIn("other", alice, "change it").Turn
	o.run(o.propose(other, `update_address {}`)[0].Execution, "ok")
}

// TestAuthorsAreBarredWhenAnAutomaticCallAsks: also the people of earlier turns, whose words the model was given.
func TestAuthorsAreBarredWhenAnAutomaticCallAsks(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[1].Risk, p.Tools[1].MaxAuto = approvers.High, approvers.Limit{Count: 1, Per: time.Hour}
		p.Approvers[1].Members = users("U0002", "U0200")
	}))
	o.answer(o.say(bob, "all addresses are to be changed").Turn)
	turn := o.say(alice, "do it").Turn
	cs := o.propose(turn, `update_address {"n":1}`, `update_address {"n":2}`)
	o.run(cs[0].Execution, "ok")
	o.notRun(cs[1].Execution)
	r := o.request(o.call(cs[1].ID).Request)
	_, err := o.Decide(o.ctx(), o.clickOn(bob, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedSelf)
	o.approve(lead, r.ID)
}

// TestAnAutomaticCallThatNobodyCanAllow: over its limit and without an approver it is refused, and the thread shows it.
func TestAnAutomaticCallThatNobodyCanAllow(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers = nil }))
	turn := o.say(alice, "x").Turn
	cs := o.propose(turn, `update_address {"n":1}`, `update_address {"n":2}`, `update_address {"n":3}`)
	o.run(cs[0].Execution, "ok")
	o.run(cs[1].Execution, "ok")
	o.notRun(cs[2].Execution)
	o.wantOutcome(cs[2].ID, approvers.OutcomeRefused)
	o.wantTurn(turn, approvers.TurnThinking)
}
