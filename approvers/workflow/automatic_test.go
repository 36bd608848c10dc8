package workflow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/store"
)

func TestAutomaticRunsAreLimited(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "change it three times").Turn
	cs := h.propose(turn, `update_address {"n":1}`, `update_address {"n":2}`, `update_address {"n":3}`)
	h.say(bob, "and hurry")
	h.run(cs[0].Execution, "ok")
	h.run(cs[1].Execution, "ok")
	step := func() (s store.OutboxMessage) {
		for _, s = range h.messagesOf(turn) {
			if s.Kind == store.OutboxStep {
				return s
			}
		}
		return s
	}
	before := step().Revision
	h.notRun(cs[2].Execution)
	c := h.call(cs[2].ID)
	if c.Request == "" {
		t.Fatalf("the third run, where two an hour are allowed, opened no request: outcome %s", c.Outcome)
	}
	if step().Revision == before {
		t.Error("the asker's thread does not show that the call waits now")
	}
	told := false
	for _, s := range h.messagesOf(turn) {
		told = told || s.Kind == store.OutboxQueued
	}
	if !told {
		t.Error("the sender of a waiting message is not told that it waits")
	}
	r := h.request(c.Request)
	if got := r.Plan.Stages[0].Approver; got != "support-agent" || !contains(fmt.Sprint(r.Plan.Why), "more than 2/h automatic runs") {
		t.Errorf("asked %s because %q", got, r.Plan.Why)
	}
	h.approve(support, r.ID)
	h.run(c.Execution, "ok")
	h.wantKinds(r.ID, "proposed decided approved executing executed returned")
	h.clock.pass(time.Hour)
	cs = h.propose(turn, `update_address {"n":4}`)
	h.run(cs[0].Execution, "ok")
	h.answer(turn)
	// Automatic runs are counted separately in each conversation.
	other := h.sayIn("other", alice, "change it").Turn
	h.run(h.propose(other, `update_address {}`)[0].Execution, "ok")
	h.verifies(newSealKey(t, "history"))
	var list strings.Builder
	h.ok(audit.List(h.ctx(), &list, h.store, audit.ListOptions{Filter: audit.Filter{Chain: c.Execution}}))
	if !strings.Contains(list.String(), "people were asked instead") {
		t.Errorf("audit list does not say that people were asked:\n%s", list.String())
	}
}

// TestAuthorsAreBarredWhenAnAutomaticCallAsks checks a call that needs approval because the automatic limit is reached.
// A person can't approve the call if the model received the person's messages in earlier turns.
func TestAuthorsAreBarredWhenAnAutomaticCallAsks(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
		p.Tools[1].Risk, p.Tools[1].MaxAuto = approvers.High, approvers.Limit{Count: 1, Per: time.Hour}
		p.Approvers[1].Members = users("U0002", "U0200")
	}))
	h.answer(h.say(bob, "all addresses are to be changed").Turn)
	turn := h.say(alice, "do it").Turn
	cs := h.propose(turn, `update_address {"n":1}`, `update_address {"n":2}`)
	h.run(cs[0].Execution, "ok")
	h.notRun(cs[1].Execution)
	r := h.request(h.call(cs[1].ID).Request)
	_, err := h.Requests.Decide(h.ctx(), h.clickOn(bob, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedSelf)
	h.approve(lead, r.ID)
}

// TestAnAutomaticCallThatNobodyCanAllow checks a call that exceeds the automatic limit. Nobody can approve the call. So
// the call is refused, and the turn continues.
func TestAnAutomaticCallThatNobodyCanAllow(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers = nil }))
	turn := h.say(alice, "x").Turn
	cs := h.propose(turn, `update_address {"n":1}`, `update_address {"n":2}`, `update_address {"n":3}`)
	h.run(cs[0].Execution, "ok")
	h.run(cs[1].Execution, "ok")
	h.notRun(cs[2].Execution)
	h.wantOutcome(cs[2].ID, approvers.OutcomeRefused)
	h.wantTurn(turn, approvers.TurnThinking)
}
