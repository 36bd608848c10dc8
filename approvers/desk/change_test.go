package desk_test

import (
	"testing"

	"countersign/approvers"
	"countersign/approvers/desk"
)

func TestThePolicyChangesWhileItWaits(t *testing.T) {
	stricter := policy("policy-2", func(p *approvers.Policy) {
		p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
	})
	t.Run("before a decision", func(t *testing.T) {
		o := newOffice(t)
		r := o.ask(`issue_refund {"amount":1}`)
		o.policy.Store(stricter)
		if out := o.approve(lead, r.ID); out.State != approvers.Pending || out.Stage != 1 {
			t.Errorf("%s at stage %d; want the second stage", out.State, out.Stage)
		}
		if out := o.approve(fin1, r.ID); out.State != approvers.Approved {
			t.Errorf("%s", out.State)
		}
	})
	t.Run("between approval and run", func(t *testing.T) {
		o := newOffice(t)
		r := o.ask(`issue_refund {"amount":1}`)
		o.approve(lead, r.ID)
		o.policy.Store(stricter)
		o.notRun(r.Execution)
		out := o.wantState(r.ID, approvers.Pending)
		if out.Stage != 0 || len(out.Standing()) != 0 {
			t.Errorf("at stage %d with %d standing", out.Stage, len(out.Standing()))
		}
		o.approve(lead, r.ID)
		o.approve(fin1, r.ID)
		o.run(r.Execution, "refunded")
		o.wantKinds(r.ID, "proposed decided approved reopened decided advanced decided approved executing executed returned")
	})
	t.Run("looser, between approval and run", func(t *testing.T) {
		o := newOffice(t)
		r := o.ask(`issue_refund {"amount":1}`)
		o.approve(lead, r.ID)
		o.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Tools[3].Confirm = false }))
		o.run(r.Execution, "refunded")
	})
	t.Run("nobody may any more", func(t *testing.T) {
		o := newOffice(t)
		r := o.ask(`issue_refund {"amount":1}`)
		o.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Approvers = p.Approvers[:1] }))
		_, err := o.Decide(o.ctx(), o.clickOn(lead, approvers.Approve, r.ID))
		wantDenied(t, err, approvers.DeniedResolved)
		o.wantState(r.ID, approvers.Voided)
		o.wantOutcome(r.Call, approvers.OutcomeVoided)
	})
	t.Run("a lower role is asked first now, and gets a card", func(t *testing.T) {
		o := newOffice(t)
		r := o.ask(`cancel_account {}`)
		o.policy.Store(policy("policy-2", func(p *approvers.Policy) {
			p.Tools[4].Risk, p.Approvers[1].CanApprove = approvers.High, []string{"*"}
		}))
		_, err := o.Decide(o.ctx(), o.clickOn(bob, approvers.Approve, r.ID)) // anybody's click brings the plan up to date
		wantDenied(t, err, approvers.DeniedNotMember)
		out := o.wantState(r.ID, approvers.Pending)
		if got := out.Plan.Stages[0].Approver; got != "team-lead" {
			t.Fatalf("%s is asked first", got)
		}
		asked := map[string]bool{}
		for _, s := range o.surfacesOf(r.ID) {
			asked[s.To] = true
		}
		if !asked["role:team-lead"] {
			t.Errorf("the team lead is to decide, and cards are at %v", asked)
		}
	})
	// 2^53+1 was taken while nothing computed with it. A rule that reads it now would see another number.
	const order = `{"order":9007199254740993}`
	reads := policy("policy-2", func(p *approvers.Policy) {
		p.Tools[0].Rules, p.Tools[4].Rules = p.Tools[3].Rules, p.Tools[3].Rules
	})
	t.Run("a rule reads a number now that it would change", func(t *testing.T) {
		o := newOffice(t)
		r := o.ask("cancel_account " + order)
		o.policy.Store(reads)
		_, err := o.Decide(o.ctx(), o.clickOn(fin1, approvers.Approve, r.ID))
		wantDenied(t, err, approvers.DeniedResolved)
		o.wantOutcome(r.Call, approvers.OutcomeVoided)
	})
	t.Run("likewise, between approval and run", func(t *testing.T) {
		o := newOffice(t)
		r := o.ask("cancel_account " + order)
		o.approve(fin1, r.ID)
		o.policy.Store(reads)
		o.notRun(r.Execution)
		o.wantOutcome(r.Call, approvers.OutcomeVoided)
	})
	t.Run("likewise, of an automatic call", func(t *testing.T) {
		o := newOffice(t)
		c := o.propose(o.say(alice, "x").Turn, "search_orders "+order)[0]
		o.policy.Store(reads)
		o.notRun(c.Execution)
		o.wantOutcome(c.ID, approvers.OutcomeVoided)
	})
	t.Run("an automatic call has to ask now", func(t *testing.T) {
		o := newOffice(t)
		turn := o.say(alice, "x").Turn
		c := o.propose(turn, `search_orders {}`)[0]
		o.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Tools[0].Confirm = true }))
		o.notRun(c.Execution)
		r := o.request(o.call(c.ID).Request)
		if r.State != approvers.Pending {
			t.Fatalf("%s", r.State)
		}
		o.approve(fin1, r.ID)
		o.run(c.Execution, "found")
	})
}

func TestTheToolChangesWhileItWaits(t *testing.T) {
	for name, change := range map[string]func(*office){
		"another definition": func(o *office) { o.tools.change("issue_refund", func(t *desk.Tool) { t.Hash = "another" }) },
		"gone":               func(o *office) { delete(o.tools.tools, "issue_refund") },
	} {
		o := newOffice(t)
		r := o.ask(`issue_refund {"amount":1}`)
		change(o)
		_, err := o.Decide(o.ctx(), o.clickOn(lead, approvers.Approve, r.ID))
		if denied := wantDenied(t, err, approvers.DeniedResolved); denied.State != approvers.Voided {
			t.Errorf("%s: told %+v", name, denied)
		}
		o.wantOutcome(r.Call, approvers.OutcomeVoided)
		o.wantKinds(r.ID, "proposed closed returned denied")
	}
}
