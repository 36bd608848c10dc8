package approvers_test

import (
	"slices"
	"testing"

	"countersign/approvers"
)

// TestSameStage checks that stages with the same roles in another order count as the same stage. When two such stages
// are combined, the larger quorum applies.
func TestSameStage(t *testing.T) {
	either := func(quorum int, group string, roles ...string) approvers.Stage {
		return approvers.Stage{Approver: roles[0], Or: roles[1:], Group: group, Quorum: quorum}
	}
	base := either(1, "", "team-lead", "finance-director")
	for _, c := range []struct {
		name  string
		rule  approvers.Stage
		equal bool
		want  []int // quorums
	}{
		{name: "the same", rule: either(1, "", "team-lead", "finance-director"), equal: true, want: []int{1}},
		{name: "in another order", rule: either(1, "", "finance-director", "team-lead"), equal: true, want: []int{1}},
		{name: "in another order, of more people", rule: either(2, "", "finance-director", "team-lead"), want: []int{2}},
		{name: "with another role", rule: either(2, "", "team-lead", "support-agent"), want: []int{1, 2}},
		{name: "with fewer roles", rule: either(2, "", "finance-director"), want: []int{1, 2}},
		{name: "within a group", rule: either(2, "finance", "team-lead", "finance-director"), want: []int{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := base.Equal(c.rule); got != c.equal {
				t.Errorf("equal: %t", got)
			}
			p := example()
			p.Tools = []approvers.ToolPolicy{{
				Name: "wipe", Risk: approvers.Medium, Confirm: true, Stages: []approvers.Stage{base},
				Rules: []approvers.Rule{{When: approvers.Condition{Text: "true", Eval: func(approvers.Facts) (bool, error) { return true, nil }}, Stages: []approvers.Stage{c.rule}}},
			}}
			for i := range p.Approvers {
				p.Approvers[i].CanApprove = []string{"*"}
				p.Approvers[i].Members = []approvers.Member{{Kind: approvers.MemberGroup, Value: p.Approvers[i].Name}}
			}
			plan := p.Plan(approvers.Call{Tool: "wipe"})
			var quorums []int
			for _, s := range plan.Stages {
				quorums = append(quorums, s.Quorum)
			}
			if !slices.Equal(quorums, c.want) {
				t.Errorf("quorums %v, want %v (%v)", quorums, c.want, plan.Why)
			}
		})
	}
}

// TestTwoStagesOfOneListStayTwo checks that two equal stages become one only if they come from different lists. Two
// equal stages of the same list stay two stages, for two people.
func TestTwoStagesOfOneListStayTwo(t *testing.T) {
	once := approvers.Stage{Approver: "finance-director", Quorum: 1}
	p := staged(once)
	p.Tools[5].Rules = []approvers.Rule{{When: always, Stages: []approvers.Stage{once, once}}}
	r := open(t, p, "issue_refund", small)
	wantStages(t, r, "finance-director", "finance-director")
	r = mustApprove(t, p, r, onFin1, start)
	_, _, denied := r.Approve(deciding(p, start), actionBy(r, onFin1, start))
	wantDenied(t, denied, approvers.DeniedCounted)

	waits := open(t, staged(once), "issue_refund", small)
	p.Hash = "policy-2"
	waits, _ = waits.Refresh(deciding(p, start), callOf("issue_refund", small).Facts.Args)
	wantStages(t, waits, "finance-director", "finance-director")
}

// StageRoles reads the roles of each stage from the text in the audit.
func TestStageRoles(t *testing.T) {
	plan := approvers.Plan{Stages: []approvers.Stage{{Approver: "x", Quorum: 1}, {Approver: "a", Or: []string{"2"}, Group: "eu or us x", Quorum: 12}, {Approver: "b", Group: "g", Quorum: 1}}}
	want := [][]string{{"x"}, {"a", "2"}, {"b"}}
	if got := approvers.StageRoles(plan.StageFacts()); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%s are %q, want %q", plan.StageFacts(), got, want)
	}
	if got := approvers.StageRoles(approvers.Plan{}.StageFacts()); got != nil {
		t.Errorf("no stage: %q", got)
	}
}
