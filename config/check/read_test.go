package check_test

import (
	"errors"
	"strings"
	"testing"

	"countersign/config/check"
	"countersign/config/yamldoc"
)

// A wrong value in one place does not hide an unknown name in another place. Both problems are reported together.
func TestErrorsAreReportedAtOnce(t *testing.T) {
	const policy = `version: 1
paused_by: [team-laed]
tools:
  issue_refund: {risk: hihg, stages: [team-leed]}
  search: {risk: low}
approvers:
  team-lead: {members: ["@leads"], max_risk: high, can_approve: [isue_refund], lead: directr}
agents:
  support: {channels: ["#support"], tools: ["*"]}
`
	said := func(policy string) (lines []string) {
		t.Helper()
		file, err := check.Parse("p.yaml", []byte(policy))
		var problems yamldoc.Problems
		if !errors.As(err, &problems) || file != nil {
			t.Fatalf("%v, %v", file, err)
		}
		for _, p := range problems {
			lines = append(lines, p.Error())
		}
		return lines
	}
	got := strings.Join(said(policy), "\n")
	want := `p.yaml:2:13: paused_by[0]: "team-laed" is not an approver; did you mean team-lead?
p.yaml:4:24: tools.issue_refund.risk: "hihg" is not a risk level; did you mean high?
p.yaml:4:39: tools.issue_refund.stages[0]: "team-leed" is not an approver; did you mean team-lead?
p.yaml:7:66: approvers.team-lead.can_approve[0]: "isue_refund" is not a tool; did you mean issue_refund?
p.yaml:7:86: approvers.team-lead.lead: "directr" is not an approver; the approvers are team-lead`
	if got != want {
		t.Errorf("said\n%s\nwant\n%s", got, want)
	}
	// If a section can't be read, names that the section might define are not reported as unknown.
	for _, broken := range []string{
		strings.Replace(policy, "approvers:\n", "approvers: none\nx:\n", 1), strings.Replace(policy, "tools:\n", "tools: none\nx:\n", 1),
		"version: 1\ntools: [",
	} {
		for _, line := range said(broken) {
			if strings.Contains(line, "is not an approver") && strings.Contains(broken, "approvers: none") || strings.Contains(line, "is not a tool") && strings.Contains(broken, "tools: none") {
				t.Error(line)
			}
		}
	}
}
