package approvers_test

import (
	"testing"
	"time"

	"countersign/approvers"
)

// changed returns the example policy after the given change, with another hash.
func changed(change func(*approvers.Policy)) *approvers.Policy {
	p := example()
	p.Hash = "policy-2"
	if change != nil {
		change(p)
	}
	return p
}

func TestPolicyChangesWhileItWaits(t *testing.T) {
	two := []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
	tests := []struct {
		name   string
		args   string
		before func(*approvers.Policy)
		passed []approvers.Identity // who approved before the change
		change func(*approvers.Policy)
		state  approvers.State
		risk   approvers.Risk
		stages []string
		stands int // how many approvals still count
	}{
		{name: "nothing that matters", args: large, passed: []approvers.Identity{onLead}, state: approvers.Pending, risk: approvers.Critical,
			stages: []string{"team-lead", "finance-director"}, stands: 1},
		{name: "looser: the stored plan stays", args: small, change: func(p *approvers.Policy) {
			p.Tools[5].Risk, p.Tools[5].Confirm = approvers.Low, false
		}, state: approvers.Pending, risk: approvers.High, stages: []string{"team-lead"}},
		{name: "stricter: another role by ceiling joins, the lower first", args: small, change: func(p *approvers.Policy) {
			p.Tools[5].Risk = approvers.Critical
		}, state: approvers.Pending, risk: approvers.Critical, stages: []string{"team-lead", "finance-director"}},
		{name: "stages are named now", args: small, change: func(p *approvers.Policy) { p.Tools[5].Stages = two },
			state: approvers.Pending, risk: approvers.High, stages: []string{"team-lead", "finance-director"}},
		{name: "a larger quorum at the stage under way: all start again", args: large, before: func(p *approvers.Policy) {
			p.Tools[5].Rules[0].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
		}, passed: []approvers.Identity{onLead}, state: approvers.Pending, risk: approvers.Critical,
			stages: []string{"team-lead", "finance-director"}, stands: 0},
		{name: "a shorter time at the stage under way: the first stage starts again, too", args: large, before: func(p *approvers.Policy) {
			p.Tools[5].Rules[0].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2, EscalateAfter: 20 * time.Minute}}
		}, passed: []approvers.Identity{onLead}, change: func(p *approvers.Policy) {
			p.Tools[5].Rules[0].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2, EscalateAfter: 5 * time.Minute}}
		}, state: approvers.Pending, risk: approvers.Critical, stages: []string{"team-lead", "finance-director"}, stands: 0},
		{name: "a higher risk drops what was given for the lower", args: `{"amount":5}`,
			before: func(p *approvers.Policy) {
				p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
			},
			passed: []approvers.Identity{onLead}, change: func(p *approvers.Policy) {
				p.Tools[5].Stages, p.Tools[5].Risk = two, approvers.Critical
			}, state: approvers.Pending, risk: approvers.Critical, stages: []string{"team-lead", "finance-director"}, stands: 0},
		{name: "a requester's own approval falls when that is no longer allowed", args: small,
			before: func(p *approvers.Policy) {
				p.Tools[5].SelfApproval = true
				p.Approvers[1].Members = users("U0100", "U0002", "U0005")
				p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
			},
			passed: []approvers.Identity{asker}, change: func(p *approvers.Policy) {
				p.Approvers[1].Members = users("U0100", "U0002", "U0005")
				p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
			}, state: approvers.Pending, risk: approvers.High, stages: []string{"team-lead"}, stands: 0},
		{name: "the person who approved has left the role", args: large, passed: []approvers.Identity{onLead}, change: func(p *approvers.Policy) {
			p.Approvers[1].Members = users("U0005")
		}, state: approvers.Pending, risk: approvers.Critical, stages: []string{"team-lead", "finance-director"}, stands: 0},
		{name: "the policy names the approver by the id in the workspace", args: large,
			passed: []approvers.Identity{onEnterprise}, change: func(p *approvers.Policy) { p.Approvers[1].Members = users("U0002", "U0005") },
			state: approvers.Pending, risk: approvers.Critical, stages: []string{"team-lead", "finance-director"}, stands: 1},
		{name: "the approver, whom the policy named by the id in the workspace, has left the role", args: large,
			passed: []approvers.Identity{onEnterprise}, change: func(p *approvers.Policy) { p.Approvers[1].Members = users("U0005") },
			state: approvers.Pending, risk: approvers.Critical, stages: []string{"team-lead", "finance-director"}, stands: 0},
		{name: "somebody else joined the role", args: large, passed: []approvers.Identity{onLead}, change: func(p *approvers.Policy) {
			p.Approvers[1].Members = users("U0005", "U0002")
		}, state: approvers.Pending, risk: approvers.Critical, stages: []string{"team-lead", "finance-director"}, stands: 1},
		{name: "the role of the approver lost the tool, and another of the stage has it", args: small,
			before: func(p *approvers.Policy) {
				p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 2}}
			},
			passed: []approvers.Identity{onLead}, change: func(p *approvers.Policy) {
				p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 2}}
				p.Approvers[1].CanApprove = []string{"send_email"}
			}, state: approvers.Pending, risk: approvers.High, stages: []string{"team-lead"}, stands: 0},
		{name: "the ceiling of the last stage's approver was lowered", args: small,
			before: func(p *approvers.Policy) {
				p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 2}}
			},
			passed: []approvers.Identity{onLead}, change: func(p *approvers.Policy) {
				p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 2}}
				p.Approvers[1].MaxRisk = approvers.Medium
			}, state: approvers.Pending, risk: approvers.High, stages: []string{"team-lead"}, stands: 0},
		{name: "nobody is left", args: small, change: func(p *approvers.Policy) { p.Approvers = nil }, state: approvers.Voided},
		{name: "the stored stage's role is gone", args: small, change: func(p *approvers.Policy) {
			p.Approvers[2].Lead, p.Approvers = "", append(p.Approvers[:1:1], p.Approvers[2])
		}, state: approvers.Voided},
		{name: "the stored stage's role lost the tool", args: small, change: func(p *approvers.Policy) {
			p.Approvers[1].CanApprove = []string{"send_email"}
		}, state: approvers.Voided},
		{name: "the stage with the sufficient ceiling stays last", args: large, change: func(p *approvers.Policy) {
			p.Approvers[0].CanApprove, p.Approvers[0].MaxRisk = []string{"*"}, approvers.High
			p.Tools[5].Rules, p.Tools[5].Stages = nil, []approvers.Stage{{Approver: "support-agent", Quorum: 1}}
		}, state: approvers.Pending, risk: approvers.Critical, stages: []string{"team-lead", "support-agent", "finance-director"}},
		{name: "no stage has a sufficient ceiling", args: small, change: func(p *approvers.Policy) {
			p.Tools[5].Risk, p.Tools[5].Stages = approvers.Critical, []approvers.Stage{{Approver: "team-lead", Quorum: 1}}
		}, state: approvers.Voided},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := example()
			if tt.before != nil {
				tt.before(p)
			}
			r := open(t, p, "issue_refund", tt.args)
			for _, who := range tt.passed {
				r = mustApprove(t, p, r, who, start)
			}
			values := callOf("issue_refund", tt.args).Facts.Args
			later := start.Add(time.Minute)
			r, _ = r.Refresh(deciding(changed(tt.change), later), values)
			if r.State != tt.state {
				t.Fatalf("%s (%s); want %s", r.State, r.Reason, tt.state)
			}
			if r.State != approvers.Pending {
				if r.Reason == "" || r.ClosedBy != "" {
					t.Errorf("closed by %q because %q; want no person and a reason", r.ClosedBy, r.Reason)
				}
				return
			}
			wantStages(t, r, tt.stages...)
			if r.Plan.Risk != tt.risk || len(r.ValidApprovals()) != tt.stands || r.Plan.PolicyHash != "policy-2" {
				t.Errorf("risk %s with %d valid approvals under %s; want %s with %d", r.Plan.Risk, len(r.ValidApprovals()), r.Plan.PolicyHash, tt.risk, tt.stands)
			}
			if tt.stands == 0 && r.Stage != 0 {
				t.Errorf("at stage %d without an approval that stands", r.Stage)
			}
			if again, _ := r.Refresh(deciding(changed(tt.change), later.Add(time.Minute)), values); !again.EscalateAt.Equal(r.EscalateAt) {
				t.Error("applying the same policy a second time moved the escalation")
			}
		})
	}
}

// TestAFormerLead checks a person whom escalation notified as a lead, but whose role is not a lead under the new
// policy. This person can't decide, and the person's earlier approvals don't count.
func TestAFormerLead(t *testing.T) {
	two := func(p *approvers.Policy) { p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}} }
	p := example()
	two(p)
	p.Approvers[1].Members = users("U0002", "U0005")
	now := changed(func(p *approvers.Policy) {
		two(p)
		p.Approvers[1].Members, p.Approvers[1].Lead = users("U0002", "U0005"), ""
		p.Approvers[2].MaxRisk = approvers.High
		p.Approvers[1].MaxRisk = approvers.Critical // so that the director can't decide as a peer either
	})
	at := start.Add(10 * time.Minute)
	told, _, due := open(t, p, "issue_refund", small).Escalate(deciding(p, at))
	if !due {
		t.Fatal("not escalated")
	}
	values := callOf("issue_refund", small).Facts.Args
	r, _ := told.Refresh(deciding(now, at), values)
	if len(r.Joined) != 0 {
		t.Errorf("%v are still asked", r.Joined)
	}
	_, _, denied := r.Approve(deciding(now, at), actionBy(r, onFin1, at))
	wantDenied(t, denied, approvers.DeniedNotMember)
	if r, _ = mustApprove(t, p, told, onFin1, at).Refresh(deciding(now, at), values); len(r.ValidApprovals()) != 0 {
		t.Errorf("%d approvals stand", len(r.ValidApprovals()))
	}
	same := changed(func(p *approvers.Policy) {
		two(p)
		p.Approvers[1].Members = users("U0002", "U0005")
	})
	if r, _ = mustApprove(t, p, told, onFin1, at).Refresh(deciding(same, at), values); len(r.ValidApprovals()) != 1 || len(r.Joined) != 1 {
		t.Errorf("%d approvals count, with the leads %v", len(r.ValidApprovals()), r.Joined)
	}
}

func TestRecheckOfAnApproval(t *testing.T) {
	later := start.Add(time.Minute)
	tests := []struct {
		name   string
		before func(*approvers.Policy)
		by     approvers.Identity
		change func(*approvers.Policy)
		state  approvers.State
	}{
		{name: "the same policy", by: onLead, state: approvers.Approved},
		{name: "nothing that matters", by: onLead, change: func(*approvers.Policy) {}, state: approvers.Approved},
		{name: "looser", by: onLead, change: func(p *approvers.Policy) { p.Tools[5].Confirm = false }, state: approvers.Approved},
		{name: "a higher risk", by: onLead, change: func(p *approvers.Policy) { p.Tools[5].Risk = approvers.Critical }, state: approvers.Pending},
		{name: "one stage more", by: onLead, change: func(p *approvers.Policy) {
			p.Tools[5].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
		}, state: approvers.Pending},
		{name: "approved by a person who has left the role", by: onLead, change: func(p *approvers.Policy) { p.Approvers[1].Members = users("U0005") },
			state: approvers.Pending},
		{name: "approved by a requester, which is no longer allowed", by: asker,
			before: func(p *approvers.Policy) {
				p.Tools[5].SelfApproval = true
				p.Approvers[1].Members = users("U0100", "U0002")
			},
			change: func(p *approvers.Policy) { p.Approvers[1].Members = users("U0100", "U0002") }, state: approvers.Pending},
		{name: "approved by a person whom the policy names by the id in the workspace", by: onEnterprise, change: func(*approvers.Policy) {},
			state: approvers.Approved},
		{name: "nobody could allow it", by: onLead, change: func(p *approvers.Policy) { p.Approvers = nil }, state: approvers.Voided},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := example()
			if tt.before != nil {
				tt.before(p)
			}
			r := mustApprove(t, p, open(t, p, "issue_refund", small), tt.by, start)
			now := p
			if tt.change != nil {
				now = changed(tt.change)
			}
			after, _ := r.Recheck(deciding(now, later), callOf("issue_refund", small).Facts.Args)
			if after.State != tt.state {
				t.Fatalf("%s (%s); want %s", after.State, after.Reason, tt.state)
			}
			switch after.State {
			case approvers.Approved:
				if !after.RunBy.Equal(r.RunBy) || !after.EscalateAt.IsZero() || after.ClosedBy != r.ClosedBy {
					t.Errorf("an approval that stands changed: run by %s, escalate at %s", after.RunBy, after.EscalateAt)
				}
			case approvers.Pending:
				if len(after.ValidApprovals()) != 0 || after.Stage != 0 || !after.RunBy.IsZero() || after.ClosedBy != "" || !after.ExpiresAt.Equal(later.Add(30*time.Minute)) {
					t.Errorf("reopened with %d valid approvals at stage %d, run by %s, expires %s", len(after.ValidApprovals()), after.Stage, after.RunBy, after.ExpiresAt)
				}
			}
		})
	}
}

func TestEscalation(t *testing.T) {
	p := example()
	r := open(t, p, "apply_discount", `{}`)
	if !r.EscalateAt.Equal(start.Add(10 * time.Minute)) {
		t.Fatalf("escalates at %s", r.EscalateAt)
	}
	if _, _, due := r.Escalate(deciding(p, start.Add(10*time.Minute-time.Microsecond))); due {
		t.Error("escalated before its time")
	}
	_, _, denied := r.Approve(deciding(p, start), actionBy(r, onLead, start))
	wantDenied(t, denied, approvers.DeniedNotMember)

	at := start.Add(10 * time.Minute)
	r, lead, due := r.Escalate(deciding(p, at))
	if !due || escalation(lead).Lead.Name != "team-lead" || r.State != approvers.Pending || !r.EscalateAt.Equal(at.Add(10*time.Minute)) {
		t.Fatalf("%t to %s, %s, next at %s", due, escalation(lead).Lead.Name, r.State, r.EscalateAt)
	}
	if after, _, denied := r.Approve(deciding(p, at), actionBy(r, onSupport, at)); denied != nil || after.State != approvers.Approved {
		t.Errorf("the first role can't decide any more: %s, %v", after.State, denied)
	}
	after := mustApprove(t, p, r, onLead, at)
	if after.State != approvers.Approved || after.ClosedRole != "team-lead" || !after.EscalateAt.IsZero() {
		t.Errorf("%s by %s, escalates at %s", after.State, after.ClosedRole, after.EscalateAt)
	}

	at = at.Add(10 * time.Minute)
	r, lead, due = r.Escalate(deciding(p, at))
	if !due || escalation(lead).Lead.Name != "finance-director" || !r.EscalateAt.IsZero() {
		t.Fatalf("%t to %s, next at %s; want the director, and nobody after", due, escalation(lead).Lead.Name, r.EscalateAt)
	}
	if _, _, due = r.Escalate(deciding(p, at.Add(time.Hour))); due {
		t.Error("escalated to nobody")
	}
}

func TestEscalationSkipsNoStageAndLowersNoQuorum(t *testing.T) {
	p := example()
	p.Approvers[1].Members = users("U0002", "U0005")
	p.Tools[5].Rules[0].Stages[0].Quorum = 2
	r := open(t, p, "issue_refund", large)
	at := start.Add(10 * time.Minute)
	r, lead, due := r.Escalate(deciding(p, at))
	if !due || escalation(lead).Lead.Name != "finance-director" {
		t.Fatalf("%t to %s", due, escalation(lead).Lead.Name)
	}
	r = mustApprove(t, p, r, onFin1, at)
	if r.State != approvers.Pending || r.Stage != 0 {
		t.Fatalf("%s at stage %d after one of two; escalation lowered the quorum", r.State, r.Stage)
	}
	r = mustApprove(t, p, r, onLead, at)
	if r.State != approvers.Pending || r.Stage != 1 || len(r.Joined) != 0 {
		t.Fatalf("%s at stage %d with %v; want the second stage without the first's leads", r.State, r.Stage, r.Joined)
	}
	_, _, denied := r.Approve(deciding(p, at), actionBy(r, onFin1, at))
	wantDenied(t, denied, approvers.DeniedCounted)
}

func TestEscalationPassesOverLeadsWhoCannotDecide(t *testing.T) {
	p := example()
	p.Approvers[1].CanApprove = []string{"send_email"} // the lead's tool list does not have the tool; the list of the lead's lead has it
	r := open(t, p, "apply_discount", `{}`)
	_, lead, due := r.Escalate(deciding(p, start.Add(10*time.Minute)))
	if !due || escalation(lead).Lead.Name != "finance-director" {
		t.Errorf("%t to %q; want the director", due, escalation(lead).Lead.Name)
	}
	p.Approvers[2].MaxRisk = approvers.Low // the ceiling applies at the last stage
	if r = open(t, p, "apply_discount", `{}`); !r.EscalateAt.IsZero() {
		t.Errorf("will be escalated at %s though no lead may decide", r.EscalateAt)
	}
	p = example()
	p.Approvers[1].Lead = "support-agent" // leads in a circle
	r = open(t, p, "apply_discount", `{}`)
	r, _, _ = r.Escalate(deciding(p, start.Add(10*time.Minute)))
	if _, lead, due = r.Escalate(deciding(p, start.Add(time.Hour))); due {
		t.Errorf("went round in a circle to %s", escalation(lead).Lead.Name)
	}
}
