package approvers_test

import (
	"testing"

	"countersign/approvers"
)

// staged returns the example's policy with other stages for issue_refund.
func staged(stages ...approvers.Stage) *approvers.Policy {
	p := example()
	p.Tools[5].Rules, p.Tools[5].Stages = nil, stages
	return p
}

func mustReject(t testing.TB, p *approvers.Policy, r approvers.Request, who approvers.Identity) approvers.Request {
	t.Helper()
	out, _, denied := r.Reject(deciding(p, start), actionBy(r, who, start))
	if denied != nil {
		t.Fatalf("%s could not reject: %v", who.Name, denied)
	}
	return out
}

// A stage can name several roles. Each person who is in at least one of the roles counts once.
func TestSeveralRoles(t *testing.T) {
	p := staged(approvers.Stage{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 2})
	r := open(t, p, "issue_refund", small)
	r = mustApprove(t, p, r, onFin1, start)
	if r.State != approvers.Pending || r.At(0) != 1 {
		t.Fatalf("%s with %d", r.State, r.At(0))
	}
	_, _, denied := r.Approve(deciding(p, start), actionBy(r, onFin1, start))
	wantDenied(t, denied, approvers.DeniedCounted)
	_, _, denied = r.Approve(deciding(p, start), actionBy(r, onSupport, start))
	wantDenied(t, denied, approvers.DeniedNotMember)
	if denied.Role != "Team Lead or Finance Director" {
		t.Errorf("told to ask %q", denied.Role)
	}
	if r = mustApprove(t, p, r, onLead, start); r.State != approvers.Approved || r.ClosedRole != "team-lead" {
		t.Errorf("%s as %s", r.State, r.ClosedRole)
	}
}

// The ceiling applies only at the last stage. The ceiling applies to each role of this stage separately.
func TestSeveralRolesEachHaveTheirCeiling(t *testing.T) {
	p := staged(approvers.Stage{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 1})
	p.Tools[5].Risk = approvers.Critical
	r := open(t, p, "issue_refund", small)
	_, _, denied := r.Approve(deciding(p, start), actionBy(r, onLead, start))
	wantDenied(t, denied, approvers.DeniedCeiling)
	if r = mustApprove(t, p, r, onFin1, start); r.State != approvers.Approved {
		t.Errorf("%s", r.State)
	}
}

func TestStageOfAGroup(t *testing.T) {
	in := func(who approvers.Identity, groups ...string) approvers.Identity {
		who.Groups = groups
		return who
	}
	t.Run("with a role, it narrows the role", func(t *testing.T) {
		p := staged(approvers.Stage{Approver: "finance-director", Group: "emea", Quorum: 1})
		r := open(t, p, "issue_refund", small)
		_, _, denied := r.Approve(deciding(p, start), actionBy(r, onFin1, start))
		wantDenied(t, denied, approvers.DeniedGroup)
		if denied.Role != "@emea (Finance Director)" {
			t.Errorf("told to ask %q", denied.Role)
		}
		unnamed := onFin1
		unnamed.Unnamed = []string{"emea"} // Slack does not say who is in the group
		if _, _, denied := r.Approve(deciding(p, start), actionBy(r, unnamed, start)); denied == nil || denied.Code != approvers.DeniedUnnamed || denied.Detail != "emea" {
			t.Errorf("without the members of the group: %+v", denied)
		}
		_, _, denied = r.Approve(deciding(p, start), actionBy(r, in(bystander, "emea"), start)) // the group alone gives no authority
		wantDenied(t, denied, approvers.DeniedNotMember)
		if r = mustApprove(t, p, r, in(onFin1, "apac", "emea"), start); r.ClosedRole != "finance-director" {
			t.Errorf("%s as %s", r.State, r.ClosedRole)
		}
	})
	t.Run("alone, its people decide by the roles that they hold", func(t *testing.T) {
		p := staged(approvers.Stage{Group: "emea", Quorum: 1})
		r := open(t, p, "issue_refund", small)
		wantStages(t, r, "team-lead")
		if title := r.Plan.Stages[0].Title(p); title != "@emea (Team Lead or Finance Director)" {
			t.Errorf("it is called %q", title)
		}
		_, _, denied := r.Approve(deciding(p, start), actionBy(r, in(onSupport, "emea"), start))
		wantDenied(t, denied, approvers.DeniedNotMember)
		if r = mustApprove(t, p, r, in(onLead, "emea"), start); r.ClosedRole != "team-lead" {
			t.Errorf("%s as %s", r.State, r.ClosedRole)
		}
	})
	t.Run("an escalation adds the lead, who need not be in it", func(t *testing.T) {
		p := staged(approvers.Stage{Approver: "team-lead", Group: "emea", Quorum: 1})
		r := open(t, p, "issue_refund", small)
		r, up, due := r.Escalate(deciding(p, r.EscalateAt))
		if !due || escalation(up).Lead.Name != "finance-director" {
			t.Fatalf("%t to %q", due, escalation(up).Lead.Name)
		}
		if r = mustApprove(t, p, r, onFin1, start); r.State != approvers.Approved {
			t.Errorf("%s", r.State)
		}
	})
}

// With rejects: 2, two people are needed to end a request. One rejection does not stop the other people.
func TestRejectsOfSeveral(t *testing.T) {
	p := staged(approvers.Stage{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 2, Rejects: 2})
	one := mustReject(t, p, open(t, p, "issue_refund", small), onLead)
	if one.State != approvers.Pending || len(one.Against(0)) != 1 || one.Reason != "" || one.ClosedBy != "" {
		t.Fatalf("%s (%q) with %d against", one.State, one.Reason, len(one.Against(0)))
	}
	t.Run("the same person counts once", func(t *testing.T) {
		_, _, denied := one.Reject(deciding(p, start), actionBy(one, onLead, start))
		wantDenied(t, denied, approvers.DeniedCounted)
		if denied.State != approvers.Rejected {
			t.Error("it does not say that a rejection counts already")
		}
	})
	t.Run("a second person ends it", func(t *testing.T) {
		r := mustReject(t, p, one, onFin1)
		if r.State != approvers.Rejected || r.ClosedBy != onFin1.ID || len(r.Against(0)) != 2 {
			t.Errorf("%s by %s", r.State, r.ClosedBy)
		}
	})
	t.Run("others may agree all the same", func(t *testing.T) {
		r := mustApprove(t, p, mustApprove(t, p, one, onFin1, start), onFin2, start)
		if r.State != approvers.Approved || len(r.ValidApprovals()) != 2 {
			t.Errorf("%s with %d", r.State, len(r.ValidApprovals()))
		}
	})
	t.Run("somebody who was against may change their mind", func(t *testing.T) {
		r := mustApprove(t, p, one, onLead, start)
		if len(r.Against(0)) != 0 || r.At(0) != 1 || !r.Decisions[0].Fallen || one.Decisions[0].Fallen {
			t.Errorf("%d against, %d for: %+v", len(r.Against(0)), r.At(0), r.Decisions)
		}
		if r = mustReject(t, p, r, onLead); len(r.Against(0)) != 1 || r.At(0) != 0 || r.State != approvers.Pending {
			t.Errorf("and back: %s, %d against, %d for", r.State, len(r.Against(0)), r.At(0))
		}
	})
	t.Run("an edit drops what was said of the old arguments", func(t *testing.T) {
		r, _, denied := one.Modify(deciding(p, start), actionBy(one, onFin1, start), edited(p, one, "exec_2", `{"amount":20}`))
		if denied != nil || len(r.Against(0)) != 0 || r.At(0) != 1 {
			t.Fatalf("%d against, %d for, %v", len(r.Against(0)), r.At(0), denied)
		}
		if r = mustReject(t, p, r, onLead); r.State != approvers.Pending {
			t.Errorf("%s: a rejection of the old arguments still counts", r.State)
		}
	})
	t.Run("those against an earlier stage don't count at the next", func(t *testing.T) {
		p := staged(approvers.Stage{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 1, Rejects: 2},
			approvers.Stage{Approver: "finance-director", Quorum: 1, Rejects: 2})
		r := mustReject(t, p, open(t, p, "issue_refund", small), onFin1)
		r = mustApprove(t, p, r, onLead, start)
		if r = mustReject(t, p, r, onFin2); r.State != approvers.Pending || r.Stage != 1 {
			t.Errorf("%s at stage %d", r.State, r.Stage)
		}
	})
}

// If several rejections are needed, nobody can approve the call at one stage and reject it at the next. A request takes
// at most MaxDecisions decisions of one person, so people can't change their decisions endlessly. Other people can still
// decide.
func TestForAndAgainst(t *testing.T) {
	p := example()
	p.Approvers[1].Members = users("U0002", "U0003") // a director is a lead too
	p.Approvers[2].Members = users("U0003", "U0004", "U0005")
	p.Tools[5].Rules[0].Stages[1].Rejects = 2
	r := open(t, p, "issue_refund", large)
	r, _, denied := r.Approve(deciding(p, start), actionBy(r, onFin1, start))
	if denied != nil || r.Stage != 1 {
		t.Fatalf("stage %d, %v", r.Stage, denied)
	}
	_, _, denied = r.Reject(deciding(p, start), actionBy(r, onFin1, start))
	wantDenied(t, denied, approvers.DeniedCounted)
	if taken, _, denied := r.Revoke(deciding(p, start), actionBy(r, onFin1, start)); denied != nil || taken.State != approvers.Revoked {
		t.Errorf("taking it back: %s, %v", taken.State, denied)
	}
	for i := range approvers.MaxDecisions {
		if i%2 == 0 {
			r, _, denied = r.Approve(deciding(p, start), actionBy(r, onFin2, start))
		} else {
			r, _, denied = r.Reject(deciding(p, start), actionBy(r, onFin2, start))
		}
		if denied != nil {
			t.Fatalf("change %d: %v", i, denied)
		}
	}
	_, _, denied = r.Reject(deciding(p, start), actionBy(r, onFin2, start))
	wantDenied(t, denied, approvers.DeniedCounted)
	_, _, denied = r.Approve(deciding(p, start), actionBy(r, onFin2, start))
	wantDenied(t, denied, approvers.DeniedFull)
	third := person("U0005")
	if r, _, denied = r.Reject(deciding(p, start), actionBy(r, third, start)); denied != nil || r.State != approvers.Rejected {
		t.Errorf("another person's rejection: %v, %s", denied, r.State)
	}
}

// A decision counts only for the stage and the plan that the person's card showed. The card of a stage stays valid while
// others decide at the stage, and if the policy adds a later stage.
func TestDecisionsOnAnEarlierCard(t *testing.T) {
	two := func(hash string, quorum int, risk approvers.Risk, more ...approvers.Stage) *approvers.Policy {
		p := staged(append([]approvers.Stage{{Approver: "team-lead", Quorum: quorum}, {Approver: "finance-director", Quorum: 1}}, more...)...)
		p.Hash, p.Tools[5].Risk = hash, risk
		p.Approvers[1].Members = users("U0002", "U0003") // a director is a lead too
		return p
	}
	p := two("one", 1, approvers.High)
	first := open(t, p, "issue_refund", small)
	second := mustApprove(t, p, first, onLead, start)
	quorum := two("quorum", 2, approvers.High)
	later := two("later", 1, approvers.High, approvers.Stage{Group: "emea", Quorum: 1})
	changed := func(p *approvers.Policy) approvers.Request {
		r, _ := first.Refresh(deciding(p, start), nil)
		return r
	}
	half := mustApprove(t, quorum, open(t, quorum, "issue_refund", small), onLead, start)
	for name, c := range map[string]struct {
		p        *approvers.Policy
		card, at approvers.Request
		denied   bool
	}{
		"of the stage before":                   {p, first, second, true},
		"of this stage":                         {p, second, second, false},
		"before a change of the quorum":         {quorum, first, changed(quorum), true},
		"before a change of the risk":           {two("risk", 1, approvers.Critical), first, changed(two("risk", 1, approvers.Critical)), true},
		"before a further stage was added":      {later, first, changed(later), false},
		"of the same stage, before a colleague": {quorum, open(t, quorum, "issue_refund", small), half, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := actionBy(c.at, onFin1, start)
			m.Stage = approvers.StageDigest(c.card)
			if c.at.State != approvers.Pending {
				t.Fatalf("%s: %s", c.at.State, c.at.Reason)
			}
			_, _, approval := c.at.Approve(deciding(c.p, start), m)
			_, _, rejection := c.at.Reject(deciding(c.p, start), m)
			_, _, edit := c.at.Modify(deciding(c.p, start), m, edited(c.p, c.at, "exec_2", `{"amount":7}`))
			for _, denied := range []*approvers.Denied{approval, rejection, edit} {
				if c.denied {
					wantDenied(t, denied, approvers.DeniedStage)
				} else if denied != nil {
					t.Errorf("denied: %v", denied)
				}
			}
		})
	}
}

// If a policy replaces the role of an earlier stage while a call waits, both roles decide, and the stage with the
// sufficient ceiling stays the last one.
func TestAnEarlierStageIsReplaced(t *testing.T) {
	stages := func(first string) []approvers.Stage {
		return []approvers.Stage{{Approver: first, Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
	}
	was, now := staged(stages("team-lead")...), staged(stages("support-agent")...)
	for _, p := range []*approvers.Policy{was, now} {
		p.Tools[5].Risk = approvers.Critical
		p.Approvers[0].CanApprove = []string{"*"}
	}
	now.Hash = "now"
	r, _ := open(t, was, "issue_refund", small).Refresh(deciding(now, start), nil)
	if r.State != approvers.Pending {
		t.Fatalf("%s: %s", r.State, r.Reason)
	}
	wantStages(t, r, "team-lead", "support-agent", "finance-director")
}

// Routing chose the stage of an edited call, and the editor may not decide this call. The stage then stays with the
// role that routing chose.
func TestAnEditorWhoMayNotDecide(t *testing.T) {
	p := example()
	p.Tools[5].Risk, p.Tools[5].Confirm, p.Tools[5].Stages = approvers.Medium, true, nil
	p.Tools[5].Rules = []approvers.Rule{{Risk: approvers.High, When: approvers.Condition{Text: "args.amount > 100", Eval: func(f approvers.Facts) (bool, error) {
		return f.Args["amount"] == 900.0, nil
	}}}}
	p.Approvers[1].Members = users("U0002")
	r := open(t, p, "issue_refund", small)
	r.Facts.Authors = append(r.Facts.Authors, onLead.ID)
	wantStages(t, r, "team-lead")
	r, _, denied := r.Modify(deciding(p, start), actionBy(r, onLead, start), edited(p, r, "exec_2", `{"amount":900}`))
	if denied != nil || r.Plan.Risk != approvers.High {
		t.Fatalf("%s, %v", r.Plan.Risk, denied)
	}
	wantStages(t, r, "finance-director")
	if r = mustApprove(t, p, r, onFin1, start); r.State != approvers.Approved {
		t.Errorf("%s", r.State)
	}
}
