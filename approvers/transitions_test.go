package approvers_test

import (
	"slices"
	"testing"
	"time"

	"countersign/approvers"
)

const (
	small = `{"amount":49.99}`
	large = `{"amount":900}`
)

func TestWhoMayApprove(t *testing.T) {
	with := func(who approvers.Identity, change func(*approvers.Identity)) approvers.Identity {
		change(&who)
		return who
	}
	tests := []struct {
		name string
		tool string
		args string
		who  approvers.Identity
		code approvers.Code // empty: may
	}{
		{"the role's member", "issue_refund", small, onLead, ""},
		{"by user group", "apply_discount", `{}`, with(bystander, func(i *approvers.Identity) { i.Groups = []string{"support"} }), ""},
		{"by e-mail address", "apply_discount", `{}`, with(bystander, func(i *approvers.Identity) { i.Email = "support-oncall@example.com" }), ""},
		{"the requester", "issue_refund", small, asker, approvers.DeniedSelf},
		{"nobody's member", "issue_refund", small, bystander, approvers.DeniedNotMember},
		{"a higher role that was not asked", "issue_refund", small, onFin1, approvers.DeniedNotMember},
		{"a lower role", "issue_refund", small, onSupport, approvers.DeniedNotMember},
		{"a later stage's member", "issue_refund", large, onFin1, approvers.DeniedNotMember},
		{"nobody", "issue_refund", small, approvers.Identity{}, approvers.DeniedUnidentified},
		{"a deactivated member", "issue_refund", small, with(onLead, func(i *approvers.Identity) { i.Deleted = true }), approvers.DeniedDeactivated},
		{"a bot in the list", "issue_refund", small, with(onLead, func(i *approvers.Identity) { i.Bot = true }), approvers.DeniedBot},
		{"a stranger with the member's user id", "issue_refund", small, with(onLead, func(i *approvers.Identity) { i.Foreign = true }), approvers.DeniedForeign},
		{"a guest in the list", "issue_refund", small, with(onLead, func(i *approvers.Identity) { i.Guest = true }), approvers.DeniedGuest},
		{"an unknown address is not an empty member", "apply_discount", `{}`, bystander, approvers.DeniedNotMember},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := example()
			r := open(t, p, tt.tool, tt.args)
			transitions := map[string]func() (approvers.Request, []approvers.Event, *approvers.Denied){
				"approve": func() (approvers.Request, []approvers.Event, *approvers.Denied) {
					return r.Approve(deciding(p, start), actionBy(r, tt.who, start))
				},
				"reject": func() (approvers.Request, []approvers.Event, *approvers.Denied) {
					return r.Reject(deciding(p, start), actionBy(r, tt.who, start))
				},
				"modify": func() (approvers.Request, []approvers.Event, *approvers.Denied) {
					return r.Modify(deciding(p, start), actionBy(r, tt.who, start), edited(p, r, "exec_2", `{"amount":1}`))
				},
			}
			for name, transition := range transitions {
				after, _, denied := transition()
				if tt.code == "" && denied != nil {
					t.Errorf("%s: %v", name, denied)
				}
				if tt.code != "" {
					wantDenied(t, denied, tt.code)
					if after.State != r.State || len(after.Decisions) != 0 || after.Digest != r.Digest {
						t.Errorf("%s was denied and changed the request all the same", name)
					}
				}
			}
		})
	}
}

func TestToolListAndCeilingAreThoseOfNow(t *testing.T) {
	p := example()
	r := open(t, p, "issue_refund", small)
	p.Approvers[1].CanApprove = []string{"send_email"}
	_, _, denied := r.Approve(deciding(p, start), actionBy(r, onLead, start))
	wantDenied(t, denied, approvers.DeniedTool)
	p = example()
	p.Approvers[1].MaxRisk = approvers.Medium
	_, _, denied = r.Approve(deciding(p, start), actionBy(r, onLead, start))
	wantDenied(t, denied, approvers.DeniedCeiling)
	if denied.Need != approvers.High {
		t.Errorf("needs %s; want high", denied.Need)
	}
	p = example()
	p.Approvers = p.Approvers[2:]
	_, _, denied = r.Approve(deciding(p, start), actionBy(r, onLead, start))
	wantDenied(t, denied, approvers.DeniedNotMember)
}

func TestStagesRunInOrder(t *testing.T) {
	p := example()
	r := open(t, p, "issue_refund", large)
	wantStages(t, r, "team-lead", "finance-director")
	r = mustApprove(t, p, r, onLead, start)
	if r.State != approvers.Pending || r.Stage != 1 {
		t.Fatalf("%s at stage %d after the first; want pending at 1", r.State, r.Stage)
	}
	_, _, denied := r.Approve(deciding(p, start), actionBy(r, onLead, start))
	wantDenied(t, denied, approvers.DeniedNotMember)
	r = mustApprove(t, p, r, onFin1, start)
	if r.State != approvers.Pending {
		t.Fatalf("%s with one of two directors; want pending", r.State)
	}
	_, _, denied = r.Approve(deciding(p, start), actionBy(r, onFin1, start))
	wantDenied(t, denied, approvers.DeniedCounted)
	at := start.Add(time.Minute)
	r = mustApprove(t, p, r, onFin2, at)
	if r.State != approvers.Approved || !r.RunBy.Equal(at.Add(15*time.Minute)) || r.ClosedBy != onFin2.ID {
		t.Fatalf("%s, to be run by %s, closed by %s", r.State, r.RunBy, r.ClosedBy)
	}
}

func TestOnePersonCountsOnceOverStages(t *testing.T) {
	p := example()
	p.Approvers[1].Members = users("U0002", "U0003") // U0003 is team lead and director
	r := open(t, p, "issue_refund", large)
	r = mustApprove(t, p, r, onFin1, start)
	_, _, denied := r.Approve(deciding(p, start), actionBy(r, onFin1, start))
	wantDenied(t, denied, approvers.DeniedCounted)
	r, _, denied = r.Reject(deciding(p, start), actionBy(r, onFin1, start)) // a person who approved may still reject
	if denied != nil || r.State != approvers.Rejected {
		t.Errorf("rejecting after approving: %s, %v", r.State, denied)
	}
}

func TestRejectNeedsAReason(t *testing.T) {
	p := example()
	r := open(t, p, "issue_refund", small)
	m := actionBy(r, onLead, start)
	m.Reason = ""
	_, _, denied := r.Reject(deciding(p, start), m)
	wantDenied(t, denied, approvers.DeniedNoReason)
	m.Reason = "too late"
	r, _, denied = r.Reject(deciding(p, start), m)
	if denied != nil || r.State != approvers.Rejected || r.Reason != "too late" || r.ClosedBy != onLead.ID || r.ClosedRole != "team-lead" {
		t.Errorf("%+v, %v", r, denied)
	}
}

func TestTheLoserLearnsWhoWasFirst(t *testing.T) {
	p := example()
	r := open(t, p, "cancel_account", `{}`)
	r = mustApprove(t, p, r, onFin1, start)
	for name, try := range map[string]func() *approvers.Denied{
		"approve": func() *approvers.Denied {
			_, _, d := r.Approve(deciding(p, start), actionBy(r, onFin2, start))
			return d
		},
		"reject": func() *approvers.Denied {
			_, _, d := r.Reject(deciding(p, start), actionBy(r, onFin2, start))
			return d
		},
		"modify": func() *approvers.Denied {
			_, _, d := r.Modify(deciding(p, start), actionBy(r, onFin2, start), edited(p, r, "exec_2", `{"a":1}`))
			return d
		},
	} {
		denied := try()
		wantDenied(t, denied, approvers.DeniedResolved)
		if denied.By != onFin1.ID || denied.State != approvers.Approved || !denied.At.Equal(start) {
			t.Errorf("%s: told %+v", name, denied)
		}
	}
}

func TestDeadline(t *testing.T) {
	p := example()
	r := open(t, p, "issue_refund", small)
	deadline := start.Add(30 * time.Minute)
	if !r.ExpiresAt.Equal(deadline) {
		t.Fatalf("expires at %s; want %s", r.ExpiresAt, deadline)
	}
	late := actionBy(r, onLead, deadline.Add(time.Microsecond))
	_, _, denied := r.Approve(deciding(p, deadline.Add(time.Microsecond)), late)
	wantDenied(t, denied, approvers.DeniedLate)

	// The time of a click is the time at which Slack delivered the click, and not the time at which the click is
	// handled.
	inTime := actionBy(r, onLead, deadline)
	if after, _, denied := r.Approve(deciding(p, deadline.Add(time.Minute)), inTime); denied != nil || after.State != approvers.Approved {
		t.Errorf("a click at the deadline that is handled later: %s, %v", after.State, denied)
	}
	if _, _, expired := r.Expire(deciding(p, deadline.Add(-time.Microsecond))); expired {
		t.Error("expired before the deadline")
	}
	after, _, expired := r.Expire(deciding(p, deadline))
	if !expired || after.State != approvers.Expired || after.ClosedBy != "" {
		t.Errorf("at the deadline: %s, %t, by %q", after.State, expired, after.ClosedBy)
	}
}

func TestAStaleCardDecidesNothing(t *testing.T) {
	p := example()
	r := open(t, p, "issue_refund", small)
	old := actionBy(r, onLead, start)
	r, _, denied := r.Modify(deciding(p, start), actionBy(r, onLead, start), edited(p, r, "exec_2", large))
	if denied != nil {
		t.Fatal(denied)
	}
	_, _, denied = r.Approve(deciding(p, start), old)
	wantDenied(t, denied, approvers.DeniedStale)
	_, _, denied = r.Reject(deciding(p, start), old)
	wantDenied(t, denied, approvers.DeniedStale)
}

func TestModify(t *testing.T) {
	t.Run("within the editor's ceiling it is approved with the edit", func(t *testing.T) {
		p := example()
		r := open(t, p, "issue_refund", small)
		first := r.Digest
		r, _, denied := r.Modify(deciding(p, start), actionBy(r, onLead, start), edited(p, r, "exec_2", `{"amount":20}`))
		if denied != nil || r.State != approvers.Approved || r.Execution != "exec_2" || r.Digest == first || string(r.Args) != `{"amount":20}` {
			t.Fatalf("%s, %s, %s, %v", r.State, r.Execution, r.Args, denied)
		}
		if len(r.Edits) != 1 || string(r.Edits[0].Before) != small || r.Edits[0].By != onLead.ID {
			t.Errorf("edits %+v", r.Edits)
		}
	})
	t.Run("above it, it goes up, and what is critical now is not approved by the edit", func(t *testing.T) {
		p := example()
		r := open(t, p, "issue_refund", small)
		untyped := actionBy(r, onLead, start)
		untyped.Typed = false
		r, _, denied := r.Modify(deciding(p, start), untyped, edited(p, r, "exec_2", large))
		if denied != nil || r.State != approvers.Pending || r.Stage != 0 || len(r.ValidApprovals()) != 0 || r.Plan.Risk != approvers.Critical {
			t.Fatalf("%s at stage %d, %s, %v", r.State, r.Stage, r.Plan.Risk, denied)
		}
		wantStages(t, r, "team-lead", "finance-director")
	})
	t.Run("above it, the editor counts for their stage only, once the value is typed", func(t *testing.T) {
		p := example()
		r := open(t, p, "issue_refund", small)
		m := actionBy(r, onLead, start)
		m.Typed = true
		r, _, denied := r.Modify(deciding(p, start), m, edited(p, r, "exec_2", large))
		if denied != nil || r.State != approvers.Pending || r.Stage != 1 || r.Plan.Risk != approvers.Critical {
			t.Fatalf("%s at stage %d, %s, %v", r.State, r.Stage, r.Plan.Risk, denied)
		}
	})
	t.Run("an editor who was not shown all arguments does not approve by the edit", func(t *testing.T) {
		p := example()
		r := open(t, p, "issue_refund", small)
		m := actionBy(r, onLead, start)
		m.Partly = true
		r, _, denied := r.Modify(deciding(p, start), m, edited(p, r, "exec_2", `{"amount":20}`))
		if denied != nil || r.State != approvers.Pending || len(r.ValidApprovals()) != 0 || r.Execution != "exec_2" {
			t.Fatalf("%s with %d valid approvals, %v", r.State, len(r.ValidApprovals()), denied)
		}
	})
	t.Run("earlier approvals fall", func(t *testing.T) {
		p := example()
		r := open(t, p, "issue_refund", large)
		r = mustApprove(t, p, r, onLead, start)
		r = mustApprove(t, p, r, onFin1, start)
		r, _, denied := r.Modify(deciding(p, start), actionBy(r, onFin2, start), edited(p, r, "exec_2", `{"amount":901}`))
		if denied != nil || r.State != approvers.Pending || r.Stage != 0 || len(r.ValidApprovals()) != 0 {
			t.Fatalf("%s at stage %d with %d valid approvals, %v", r.State, r.Stage, len(r.ValidApprovals()), denied)
		}
		r = mustApprove(t, p, r, onLead, start)
		r = mustApprove(t, p, r, onFin1, start)
		if r.State != approvers.Pending {
			t.Error("approvals of the earlier arguments still count")
		}
		if r = mustApprove(t, p, r, onFin2, start); r.State != approvers.Approved {
			t.Errorf("%s after all approved again", r.State)
		}
	})
	t.Run("the editor's sufficient ceiling replaces the routed role", func(t *testing.T) {
		p := example()
		r := open(t, p, "issue_refund", large)
		r = mustApprove(t, p, r, onLead, start)
		r, _, denied := r.Modify(deciding(p, start), actionBy(r, onFin1, start), edited(p, r, "exec_2", small))
		if denied != nil || r.State != approvers.Approved || r.ClosedRole != "finance-director" {
			t.Errorf("%s by %s, %v", r.State, r.ClosedRole, denied)
		}
	})
	t.Run("an edit that nobody could approve is denied", func(t *testing.T) {
		p := example()
		r := open(t, p, "issue_refund", small)
		p.Approvers[2].Members = users("U0003")
		after, _, denied := r.Modify(deciding(p, start), actionBy(r, onLead, start), edited(p, r, "exec_2", large))
		wantDenied(t, denied, approvers.DeniedEdit)
		if after.Execution != r.Execution || len(after.Edits) != 0 {
			t.Error("it changed the request all the same")
		}
	})
	t.Run("a call above its automatic runs keeps the tool's stages", func(t *testing.T) {
		// Within the limit, the tool runs without approval. Above the limit, two people decide. One of them edits the
		// call. The edit counts as this person's approval, and the other person must still approve.
		p := example()
		p.Tools[1].Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 2}}
		c := callOf("update_shipping_address", small)
		r := openCall(p, c, small)
		r.Plan = p.AskFor(c, p.Tools[1].MaxAuto)
		r, _ = approvers.Open(deciding(p, start), r)
		r, _, denied := r.Modify(deciding(p, start), actionBy(r, onFin1, start), edited(p, r, "exec_2", `{"amount":20}`))
		if denied != nil || r.State != approvers.Pending || len(r.ValidApprovals()) != 1 {
			t.Fatalf("%s with %d valid approvals, %v; want pending with the editor's approval", r.State, len(r.ValidApprovals()), denied)
		}
		wantStages(t, r, "finance-director")
		if r = mustApprove(t, p, r, onFin2, start); r.State != approvers.Approved {
			t.Errorf("%s after both agreed", r.State)
		}
	})
	t.Run("a call that asked is never free after an edit", func(t *testing.T) {
		// A rule names the stages. The edited arguments match no rule, so the policy alone would allow the call. The
		// editor belongs to an early stage, and the editor's ceiling is too low. Therefore another person must approve
		// the call.
		p := example()
		p.Tools[1].Rules = []approvers.Rule{{When: amountAbove(500), Stages: []approvers.Stage{
			{Approver: "support-agent", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}}}
		p.Approvers[0].MaxRisk = approvers.Low
		r := open(t, p, "update_shipping_address", large)
		wantStages(t, r, "support-agent", "finance-director")
		r, _, denied := r.Modify(deciding(p, start), actionBy(r, onSupport, start), edited(p, r, "exec_2", small))
		if denied != nil || r.State != approvers.Pending {
			t.Fatalf("%s, %v; want pending", r.State, denied)
		}
		wantStages(t, r, "team-lead")
		changed := example()
		changed.Hash = "policy-2"
		if r, _ = r.Refresh(deciding(changed, start), map[string]any{"amount": 49.99}); r.State != approvers.Pending {
			t.Fatalf("%s after a harmless change of the policy", r.State)
		}
		if r = mustApprove(t, p, r, onLead, start); r.State != approvers.Approved {
			t.Errorf("%s after the lead approved", r.State)
		}
	})
}

func TestWithdraw(t *testing.T) {
	p := example()
	r := open(t, p, "issue_refund", small)
	_, _, denied := r.Withdraw(deciding(p, start), bystander, false, "")
	wantDenied(t, denied, approvers.DeniedNotRequester)
	_, _, denied = r.Withdraw(deciding(p, start), onLead, false, "")
	wantDenied(t, denied, approvers.DeniedNotRequester)
	_, _, denied = r.Withdraw(deciding(p, start), approvers.Identity{}, true, "")
	wantDenied(t, denied, approvers.DeniedUnidentified)
	after, _, denied := r.Withdraw(deciding(p, start), asker, false, "changed my mind")
	if denied != nil || after.State != approvers.Withdrawn || after.ClosedBy != asker.ID {
		t.Errorf("%s by %s, %v", after.State, after.ClosedBy, denied)
	}
	after, _, denied = r.Withdraw(deciding(p, start), bystander, true, "")
	if denied != nil || after.State != approvers.Withdrawn {
		t.Errorf("withdrawn by somebody whose message waits: %s, %v", after.State, denied)
	}
	approved := mustApprove(t, p, r, onLead, start)
	if after, _, denied = approved.Withdraw(deciding(p, start), asker, false, ""); denied != nil || after.State != approvers.Withdrawn {
		t.Errorf("an approved one that did not run: %s, %v", after.State, denied)
	}
	consumed, _, _ := approved.Consume(deciding(p, start))
	_, _, denied = consumed.Withdraw(deciding(p, start), asker, false, "")
	wantDenied(t, denied, approvers.DeniedResolved)
}

// People who approved can revoke the approval until the run begins. After the last approval, all people who may decide
// the last stage can also revoke it. A revoked request has ended permanently.
func TestRevoke(t *testing.T) {
	p := example()
	waiting := open(t, p, "issue_refund", large)
	first := mustApprove(t, p, waiting, onLead, start) // the directors decide now
	one := mustApprove(t, p, first, onFin1, start)
	approved := mustApprove(t, p, one, onFin2, start)
	consumed, _, _ := approved.Consume(deciding(p, start))
	withdrawn, _, _ := one.Withdraw(deciding(p, start), asker, false, "")
	edit, _, _ := one.Modify(deciding(p, start), actionBy(one, onFin2, start), edited(p, one, "exec_2", `{"amount":901}`))
	without := func(m approvers.Action, change func(*approvers.Action)) approvers.Action { change(&m); return m }
	noReason := func(m *approvers.Action) { m.Reason = "" }
	gone := func(m *approvers.Action) { m.Who.Deleted = true }
	fired := example()
	fired.Approvers[1].Members = users("U0009")
	tests := []struct {
		name string
		p    *approvers.Policy
		r    approvers.Request
		m    approvers.Action
		code approvers.Code
		role string
	}{
		{"an approval of an earlier stage", p, one, actionBy(one, onLead, start), "", "team-lead"},
		{"an approval of this stage", p, one, actionBy(one, onFin1, start), "", "finance-director"},
		{"before it ran, the first approver", p, approved, actionBy(approved, onLead, start), "", "team-lead"},
		{"before it ran, the last approver", p, approved, actionBy(approved, onFin2, start), "", "finance-director"},
		{"an old card is good enough", p, approved, without(actionBy(approved, onLead, start), func(m *approvers.Action) { m.Digest = "old" }), "", "team-lead"},
		{"who has left the role may still take back what they gave", fired, approved, actionBy(approved, onLead, start), "", "team-lead"},
		{"while it waits, nobody who has not approved", p, one, actionBy(one, onFin2, start), approvers.DeniedNotApprover, ""},
		{"nor where nobody has", p, waiting, actionBy(waiting, onLead, start), approvers.DeniedNotApprover, ""},
		{"an approval that has fallen is none", p, edit, actionBy(edit, onFin1, start), approvers.DeniedNotApprover, ""},
		{"the requester withdraws instead", p, approved, actionBy(approved, asker, start), approvers.DeniedNotApprover, ""},
		{"somebody else", p, approved, actionBy(approved, bystander, start), approvers.DeniedNotApprover, ""},
		{"a deactivated account", p, approved, without(actionBy(approved, onLead, start), gone), approvers.DeniedDeactivated, ""},
		{"without a reason", p, approved, without(actionBy(approved, onLead, start), noReason), approvers.DeniedNoReason, ""},
		{"once it has started", p, consumed, actionBy(consumed, onLead, start), approvers.DeniedStarted, ""},
		{"once it is over", p, withdrawn, actionBy(edit, onLead, start), approvers.DeniedResolved, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after, _, denied := tt.r.Revoke(deciding(tt.p, start), tt.m)
			if tt.code != "" {
				wantDenied(t, denied, tt.code)
				if after.State != tt.r.State {
					t.Errorf("it is %s all the same", after.State)
				}
				return
			}
			if denied != nil || after.State != approvers.Revoked || after.ClosedBy != tt.m.Who.ID || after.ClosedRole != tt.role || after.Reason != "because" {
				t.Fatalf("%s by %s as %s (%q), %v", after.State, after.ClosedBy, after.ClosedRole, after.Reason, denied)
			}
			if _, _, denied := after.Consume(deciding(tt.p, start)); denied == nil {
				t.Error("it runs although its approval was taken back")
			}
		})
	}
	// Another person of the last stage's role can also stop an approved call.
	alone := mustApprove(t, p, open(t, p, "cancel_account", `{}`), onFin1, start)
	if after, _, denied := alone.Revoke(deciding(p, start), actionBy(alone, onFin2, start)); denied != nil || after.State != approvers.Revoked || after.ClosedRole != "finance-director" {
		t.Errorf("%s as %s, %v", after.State, after.ClosedRole, denied)
	}
}

func TestConsumeOnceAndInTime(t *testing.T) {
	p := example()
	r := mustApprove(t, p, open(t, p, "issue_refund", small), onLead, start)
	runBy := start.Add(15 * time.Minute)
	_, _, denied := r.Consume(deciding(p, runBy))
	wantDenied(t, denied, approvers.DeniedLate)
	if after, _, expired := r.Expire(deciding(p, runBy)); !expired || after.State != approvers.Expired {
		t.Errorf("approved and not started: %s, %t", after.State, expired)
	}
	if _, _, expired := r.Expire(deciding(p, runBy.Add(-time.Microsecond))); expired {
		t.Error("an approval expired before its time")
	}
	consumed, _, denied := r.Consume(deciding(p, runBy.Add(-time.Microsecond)))
	if denied != nil || consumed.State != approvers.Consumed {
		t.Fatalf("%s, %v", consumed.State, denied)
	}
	_, _, denied = consumed.Consume(deciding(p, start))
	wantDenied(t, denied, approvers.DeniedResolved)
	if _, _, expired := consumed.Expire(deciding(p, runBy.Add(time.Hour))); expired {
		t.Error("a consumed approval expired")
	}
	pending := open(t, p, "issue_refund", small)
	_, _, denied = pending.Consume(deciding(p, start))
	wantDenied(t, denied, approvers.DeniedResolved)
}

func TestVoid(t *testing.T) {
	p := example()
	r := open(t, p, "issue_refund", small)
	after, _, denied := r.Void(deciding(p, start), "the definition of the tool changed")
	if denied != nil || after.State != approvers.Voided || after.Reason == "" {
		t.Errorf("%s, %q, %v", after.State, after.Reason, denied)
	}
	_, _, denied = after.Void(deciding(p, start), "again")
	wantDenied(t, denied, approvers.DeniedResolved)
}

// TestTransitionsDoNotShareMemory checks that a transition's result does not write into the original request.
func TestTransitionsDoNotShareMemory(t *testing.T) {
	p := example()
	r := open(t, p, "issue_refund", large)
	r = mustApprove(t, p, r, onLead, start)
	r.Decisions = slices.Grow(r.Decisions, 4)
	r.Joined = make([]string, 0, 4)
	a := mustApprove(t, p, r, onFin1, start)
	b := mustApprove(t, p, r, onFin2, start)
	if a.Decisions[1].By != onFin1.ID || b.Decisions[1].By != onFin2.ID {
		t.Errorf("two results of one request share their decisions: %s, %s", a.Decisions[1].By, b.Decisions[1].By)
	}
	if _, _, denied := a.Modify(deciding(p, start), actionBy(a, onFin2, start), edited(p, a, "exec_2", large)); denied != nil {
		t.Fatal(denied)
	}
	if a.Decisions[0].Fallen {
		t.Error("an edit marked the decisions of the request that it came from")
	}
}

// The denial for an action on a damaged request says neither that the request was approved nor that its run has begun,
// because its decisions are lost.
func TestDamagedRequestIsOver(t *testing.T) {
	for _, state := range []approvers.State{approvers.Voided, approvers.Consumed} {
		r := approvers.Request{State: state, Damaged: true}
		_, _, revoked := r.Revoke(approvers.DecisionContext{}, approvers.Action{Who: onLead, At: start, Reason: "x"})
		_, _, overruled := r.Overrule(approvers.DecisionContext{}, approvers.Action{Who: operator, At: start, Reason: "x"})
		for what, d := range map[string]*approvers.Denied{"a decision": r.Over(), "a revocation": revoked, "an operator's rejection": overruled} {
			if d == nil || d.Code != approvers.DeniedDamaged || d.State != state {
				t.Errorf("the denial for %s about a damaged request with state %s is %+v", what, state, d)
			}
		}
	}
}
