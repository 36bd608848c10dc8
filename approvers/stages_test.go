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
// at most MaxDecisions decisions, so people can't change their decisions endlessly.
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
	for i := len(r.Decisions); i < approvers.MaxDecisions; i++ {
		if i%2 == 1 {
			r, _, denied = r.Approve(deciding(p, start), actionBy(r, onFin2, start))
		} else {
			r, _, denied = r.Reject(deciding(p, start), actionBy(r, onFin2, start))
		}
		if denied != nil {
			t.Fatalf("change %d: %v", i, denied)
		}
	}
	_, _, denied = r.Reject(deciding(p, start), actionBy(r, onFin2, start))
	wantDenied(t, denied, approvers.DeniedFull)
}
