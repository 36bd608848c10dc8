package workflow_test

import (
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow"
)

func TestThePolicyChangesWhileItWaits(t *testing.T) {
	stricter := policy("policy-2", func(p *approvers.Policy) {
		p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
	})
	t.Run("before a decision", func(t *testing.T) {
		h := newHarness(t)
		r := h.ask(`issue_refund {"amount":1}`)
		h.policy.Store(stricter)
		if out := h.approve(lead, r.ID); out.State != approvers.Pending || out.Stage != 1 {
			t.Errorf("%s at stage %d; want the second stage", out.State, out.Stage)
		}
		if out := h.approve(fin1, r.ID); out.State != approvers.Approved {
			t.Errorf("%s", out.State)
		}
	})
	t.Run("between approval and run", func(t *testing.T) {
		h := newHarness(t)
		r := h.ask(`issue_refund {"amount":1}`)
		h.approve(lead, r.ID)
		h.policy.Store(stricter)
		h.notRun(r.Execution)
		out := h.wantState(r.ID, approvers.Pending)
		if out.Stage != 0 || len(out.ValidApprovals()) != 0 {
			t.Errorf("at stage %d with %d valid approvals", out.Stage, len(out.ValidApprovals()))
		}
		h.approve(lead, r.ID)
		h.approve(fin1, r.ID)
		h.run(r.Execution, "refunded")
		h.wantKinds(r.ID, "proposed decided approved reopened decided advanced decided approved executing executed returned")
	})
	t.Run("looser, between approval and run", func(t *testing.T) {
		h := newHarness(t)
		r := h.ask(`issue_refund {"amount":1}`)
		h.approve(lead, r.ID)
		h.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Tools[3].Confirm = false }))
		h.run(r.Execution, "refunded")
	})
	t.Run("nobody may approve any more", func(t *testing.T) {
		h := newHarness(t)
		r := h.ask(`issue_refund {"amount":1}`)
		h.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Approvers = p.Approvers[:1] }))
		_, err := h.Requests.Decide(h.ctx(), h.clickOn(lead, approvers.Approve, r.ID))
		wantDenied(t, err, approvers.DeniedResolved)
		h.wantState(r.ID, approvers.Voided)
		h.wantOutcome(r.Call, approvers.OutcomeVoided)
	})
	t.Run("a lower role is asked first now, and gets a card", func(t *testing.T) {
		h := newHarness(t)
		r := h.ask(`cancel_account {}`)
		h.policy.Store(policy("policy-2", func(p *approvers.Policy) {
			p.Tools[4].Risk, p.Approvers[1].CanApprove = approvers.High, []string{"*"}
		}))
		_, err := h.Requests.Decide(h.ctx(), h.clickOn(bob, approvers.Approve, r.ID)) // also a click that is denied updates the plan
		wantDenied(t, err, approvers.DeniedNotMember)
		out := h.wantState(r.ID, approvers.Pending)
		if got := out.Plan.Stages[0].Approver; got != "team-lead" {
			t.Fatalf("%s is asked first", got)
		}
		asked := map[string]bool{}
		for _, s := range h.messagesOf(r.ID) {
			asked[s.To] = true
		}
		if !asked["role:team-lead"] {
			t.Errorf("the team lead is to decide, and cards are at %v", asked)
		}
	})
	// The bot accepted the number 2^53+1 while no rule read the argument. A new rule reads the argument, but would read
	// another number, because a float64 can't hold 2^53+1.
	const order = `{"order":9007199254740993}`
	reads := policy("policy-2", func(p *approvers.Policy) {
		p.Tools[0].Rules, p.Tools[4].Rules = p.Tools[3].Rules, p.Tools[3].Rules
	})
	t.Run("a rule now reads a number that it can't read exactly", func(t *testing.T) {
		h := newHarness(t)
		r := h.ask("cancel_account " + order)
		h.policy.Store(reads)
		_, err := h.Requests.Decide(h.ctx(), h.clickOn(fin1, approvers.Approve, r.ID))
		wantDenied(t, err, approvers.DeniedResolved)
		h.wantOutcome(r.Call, approvers.OutcomeVoided)
	})
	t.Run("likewise, between approval and run", func(t *testing.T) {
		h := newHarness(t)
		r := h.ask("cancel_account " + order)
		h.approve(fin1, r.ID)
		h.policy.Store(reads)
		h.notRun(r.Execution)
		h.wantOutcome(r.Call, approvers.OutcomeVoided)
	})
	t.Run("likewise, of an automatic call", func(t *testing.T) {
		h := newHarness(t)
		c := h.propose(h.say(alice, "x").Turn, "search_orders "+order)[0]
		h.policy.Store(reads)
		h.notRun(c.Execution)
		h.wantOutcome(c.ID, approvers.OutcomeVoided)
	})
	t.Run("an automatic call has to ask now", func(t *testing.T) {
		h := newHarness(t)
		turn := h.say(alice, "x").Turn
		c := h.propose(turn, `search_orders {}`)[0]
		h.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Tools[0].Confirm = true }))
		h.notRun(c.Execution)
		r := h.request(h.call(c.ID).Request)
		if r.State != approvers.Pending {
			t.Fatalf("%s", r.State)
		}
		h.approve(fin1, r.ID)
		h.run(c.Execution, "found")
	})
}

func TestTheToolChangesWhileItWaits(t *testing.T) {
	for name, change := range map[string]func(*harness){
		"another definition": func(h *harness) { h.tools.change("issue_refund", func(t *workflow.Tool) { t.Hash = "another" }) },
		"gone":               func(h *harness) { delete(h.tools.tools, "issue_refund") },
	} {
		h := newHarness(t)
		r := h.ask(`issue_refund {"amount":1}`)
		change(h)
		_, err := h.Requests.Decide(h.ctx(), h.clickOn(lead, approvers.Approve, r.ID))
		if denied := wantDenied(t, err, approvers.DeniedResolved); denied.State != approvers.Voided {
			t.Errorf("%s: told %+v", name, denied)
		}
		h.wantOutcome(r.Call, approvers.OutcomeVoided)
		h.wantKinds(r.ID, "proposed closed returned denied")
	}
}
