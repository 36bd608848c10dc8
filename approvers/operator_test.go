package approvers_test

import (
	"slices"
	"testing"
	"time"

	"countersign/approvers"
)

var operator = approvers.Operates(approvers.Operator("anna"))

// breakGlassPolicy returns the example's policy with break_glass for refunds.
func breakGlassPolicy() *approvers.Policy {
	p := example()
	p.Tools[5].BreakGlass = true
	return p
}

func TestOperatorIsNobodyOfSlack(t *testing.T) {
	if operator.ID != "operator:anna" || operator.ID.Login() != "anna" || operator.Name != "operator anna" {
		t.Errorf("%+v", operator)
	}
	for _, id := range []approvers.PersonID{"", "T0001/U0002", "anna", "T0001/operator:anna"} {
		if login := id.Login(); login != "" {
			t.Errorf("%q has the login %q", id, login)
		}
	}
	p := breakGlassPolicy()
	r := open(t, p, "issue_refund", large)
	p.Approvers[1].Members = append(p.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "operator:anna"})
	for name, act := range map[string]func(approvers.DecisionContext, approvers.Action) (approvers.Request, []approvers.Event, *approvers.Denied){"break glass": r.BreakGlass, "overrule": r.Overrule} {
		for _, who := range []approvers.Identity{onLead, asker, {}} {
			if _, _, denied := act(deciding(p, start), actionBy(r, who, start)); denied == nil || denied.Code != approvers.DeniedUnidentified {
				t.Errorf("%s by %q: %v", name, who.ID, denied)
			}
		}
	}
}

// The operator's approval counts for every remaining stage. Earlier approvals of people stay recorded.
func TestBreakGlass(t *testing.T) {
	p := breakGlassPolicy()
	r := open(t, p, "issue_refund", large)
	r = mustApprove(t, p, r, onLead, start)
	r = mustApprove(t, p, r, onFin1, start)
	at := start.Add(time.Minute)
	after, _, denied := r.BreakGlass(deciding(p, at), actionBy(r, operator, at))
	if denied != nil {
		t.Fatal(denied)
	}
	d, broken := after.BrokenBy()
	if after.State != approvers.Approved || !broken || d.By != operator.ID || d.Role != "" || d.Digest != r.Digest || d.Stage != 1 || d.Reason != "because" {
		t.Fatalf("%s: %+v", after.State, d)
	}
	if after.ClosedBy != operator.ID || after.ClosedRole != "" || !after.RunBy.Equal(at.Add(15*time.Minute)) || len(after.ValidApprovals()) != 3 {
		t.Errorf("closed by %s as %q, to be run by %s, %d valid approvals", after.ClosedBy, after.ClosedRole, after.RunBy, len(after.ValidApprovals()))
	}
	if _, _, again := after.BreakGlass(deciding(p, at), actionBy(after, operator, at)); again == nil || again.Code != approvers.DeniedResolved {
		t.Errorf("once more: %v", again)
	}
	still, _ := after.Recheck(deciding(p, at), nil)
	if consumed, _, denied := still.Consume(deciding(p, at)); denied != nil || consumed.State != approvers.Consumed {
		t.Errorf("it does not run: %v", denied)
	}
	if revoked, _, denied := after.Revoke(deciding(p, at), actionBy(after, onFin2, at)); denied != nil || revoked.State != approvers.Revoked {
		t.Errorf("the last stage's people can't take it back: %v", denied)
	}
	if len(r.Decisions) != 2 || r.State != approvers.Pending {
		t.Error("the request before was changed")
	}
}

func TestBreakGlassIsDenied(t *testing.T) {
	forbids := false
	tests := []struct {
		name   string
		policy func(*approvers.Policy)
		adjust func(*approvers.Action)
		at     time.Duration
		code   approvers.Code
	}{
		{"where the policy does not allow it", func(p *approvers.Policy) { p.Tools[5].BreakGlass = false }, nil, 0, approvers.DeniedBreakGlass},
		{"where the agent's override forbids it", func(p *approvers.Policy) {
			p.Agents[0].Overrides = map[string]approvers.Override{"issue_refund": {Glass: &forbids}}
		}, nil, 0, approvers.DeniedBreakGlass},
		{"without a reason", nil, func(m *approvers.Action) { m.Reason = "" }, 0, approvers.DeniedNoReason},
		{"of other arguments than were shown", nil, func(m *approvers.Action) { m.Digest = "another" }, 0, approvers.DeniedStale},
		{"after the deadline", nil, nil, 31 * time.Minute, approvers.DeniedLate},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := breakGlassPolicy()
			r := open(t, p, "issue_refund", small)
			if tt.policy != nil {
				tt.policy(p)
			}
			m := actionBy(r, operator, start.Add(tt.at))
			if tt.adjust != nil {
				tt.adjust(&m)
			}
			after, _, denied := r.BreakGlass(deciding(p, start.Add(tt.at)), m)
			wantDenied(t, denied, tt.code)
			if after.State != approvers.Pending || len(after.Decisions) != 0 {
				t.Errorf("it was denied, and the request is %s with %d decisions", after.State, len(after.Decisions))
			}
		})
	}
}

// An override can allow break_glass for one agent, but not for a protected tool.
func TestOverridesAllowNoProtectedBreakGlass(t *testing.T) {
	p, breaks := example(), true
	p.Agents[0].Overrides = map[string]approvers.Override{"issue_refund": {Glass: &breaks}}
	if tool, _ := p.Tool("issue_refund", "support"); !tool.BreakGlass {
		t.Error("the override does nothing")
	}
	for _, protected := range []string{"issue_refund", "*"} {
		p.NeverLoosen = []string{protected}
		if tool, _ := p.Tool("issue_refund", "support"); tool.BreakGlass {
			t.Errorf("never_loosen %s protects nothing", protected)
		}
	}
}

// A call that an operator approved must wait for approval if the policy became stricter before the run. The call also
// waits if the policy does not allow break_glass any more.
func TestBreakGlassIsHeldAgainstThePolicyOfNow(t *testing.T) {
	for name, change := range map[string]func(*approvers.Policy){
		"break glass is off":    func(p *approvers.Policy) { p.Tools[5].BreakGlass = false },
		"a stricter last stage": func(p *approvers.Policy) { p.Tools[5].Rules[0].Stages[1].ExpiresAfter = time.Minute },
	} {
		p := breakGlassPolicy()
		r := open(t, p, "issue_refund", large)
		r, _, denied := r.BreakGlass(deciding(p, start), actionBy(r, operator, start))
		if denied != nil {
			t.Fatal(denied)
		}
		now := example()
		now.Tools[5].BreakGlass, now.Hash = true, "policy-2"
		if still, _ := r.Recheck(deciding(now, start), callOf("issue_refund", large).Facts.Args); still.State != approvers.Approved {
			t.Fatalf("%s: under the same policy it is %s", name, still.State)
		}
		change(now)
		if after, _ := r.Recheck(deciding(now, start), callOf("issue_refund", large).Facts.Args); after.State != approvers.Pending || len(after.ValidApprovals()) != 0 {
			t.Errorf("%s: %s with %d valid approvals", name, after.State, len(after.ValidApprovals()))
		}
	}
}

// An operator can stop a waiting call until its deadline, and an approved call until its run begins.
func TestOverrule(t *testing.T) {
	p := example()
	pending := open(t, p, "issue_refund", large)
	p.Tools[5].Rules[0].Stages[0].Rejects = 3 // an operator's single rejection ends the request, despite the policy
	pending = mustApprove(t, p, pending, onLead, start)
	r, _, denied := pending.Overrule(deciding(p, start), approvers.Action{Who: operator, At: start, Reason: "a flood"})
	if denied != nil || r.State != approvers.Rejected || r.ClosedBy != operator.ID || r.Reason != "a flood" {
		t.Fatalf("%s by %s: %q, %v", r.State, r.ClosedBy, r.Reason, denied)
	}
	if d := r.Decisions[len(r.Decisions)-1]; d.Kind != approvers.Reject || d.By != operator.ID || d.Digest != pending.Digest || d.Role != "" {
		t.Errorf("recorded as %+v", d)
	}
	if res := r.ClosedResult(p); res.Status != approvers.OutcomeRejected || res.DecidedBy != "the operator" || res.Reason != "a flood" {
		t.Errorf("the agent is told %+v", res)
	}
	approved := mustApprove(t, p, mustApprove(t, p, pending, onFin1, start), onFin2, start)
	r, _, denied = approved.Overrule(deciding(p, start), approvers.Action{Who: operator, At: start, Reason: "a flood"})
	if denied != nil || r.State != approvers.Revoked || r.ClosedBy != operator.ID {
		t.Fatalf("overruled after the approval: %s by %s, %v", r.State, r.ClosedBy, denied)
	}
	consumed, _, _ := approved.Consume(deciding(p, start))
	for what, c := range map[string]struct {
		r    approvers.Request
		m    approvers.Action
		code approvers.Code
	}{
		"what began":           {consumed, approvers.Action{Who: operator, At: start, Reason: "x"}, approvers.DeniedStarted},
		"what is over":         {r, approvers.Action{Who: operator, At: start, Reason: "x"}, approvers.DeniedResolved},
		"without a reason":     {pending, approvers.Action{Who: operator, At: start}, approvers.DeniedNoReason},
		"approved, no reason":  {approved, approvers.Action{Who: operator, At: start}, approvers.DeniedNoReason},
		"after the deadline":   {pending, approvers.Action{Who: operator, At: start.Add(time.Hour), Reason: "x"}, approvers.DeniedLate},
		"by somebody of Slack": {pending, approvers.Action{Who: onFin1, At: start, Reason: "x"}, approvers.DeniedUnidentified},
	} {
		after, _, denied := c.r.Overrule(deciding(p, start), c.m)
		wantDenied(t, denied, c.code)
		if after.State != c.r.State {
			t.Errorf("%s: it is %s", what, after.State)
		}
	}
}

// After an approval by an operator, each role is notified once: the roles of every stage, and all their leads.
func TestConcerned(t *testing.T) {
	p := example()
	p.Approvers = append(p.Approvers, approvers.Role{Name: "board", Title: "Board", MaxRisk: approvers.Critical, CanApprove: []string{"*"}})
	p.Approvers[2].Lead = "board"
	for tool, want := range map[string][]string{
		"apply_discount": {"support-agent", "team-lead", "finance-director", "board"},
		"issue_refund":   {"team-lead", "finance-director", "board"},
	} {
		if got := open(t, p, tool, large).Concerned(p); !slices.Equal(got, want) {
			t.Errorf("%s: %v; want %v", tool, got, want)
		}
	}
}

// If an operator approved a call, the count that leads to trust in the tool begins again at zero.
func TestBreakGlassEarnsNoTrust(t *testing.T) {
	p := breakGlassPolicy()
	p.Tools[5].Rules = nil
	p.Tools[5].Grants, p.Tools[5].TrustAfter = approvers.GrantTerms{Uses: 1, Within: time.Hour, AtMost: []string{"amount"}}, 5
	r := open(t, p, "issue_refund", small)
	usual := mustApprove(t, p, r, onLead, start)
	row, _, _ := approvers.Trust{}.Grow(deciding(p, start), usual)
	if row.Row != 1 {
		t.Fatalf("a usual call makes a row of %d", row.Row)
	}
	broken, _, denied := r.BreakGlass(deciding(p, start), actionBy(r, operator, start))
	if denied != nil {
		t.Fatal(denied)
	}
	if row, _, _ = row.Grow(deciding(p, start), broken); row.Row != 0 {
		t.Errorf("the row is %d long", row.Row)
	}
}
