package policycmd

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
)

const refundPolicy = `version: 1
servers: {shop: {command: [countersign, shop], prefix: false}}
tools:
  issue_refund:
    risk: high
    rules:
      - when: args.amount > 500
        risk: critical
        stages: [team-lead, {approver: finance-director, quorum: 2}]
approvers:
  team-lead: {title: Team Lead, members: [U0002], max_risk: high, can_approve: [issue_refund], lead: finance-director}
  finance-director: {title: Finance Director, members: [U0003, U0004], max_risk: critical, can_approve: ["*"]}
agents: {support: {channels: ["#support"], prompt: x, tools: ["*"]}}
`

// The output groups stored calls that differ in the same way. For calls without a difference, it has no line.
func TestReplayPutsTogetherWhatDiffersAlike(t *testing.T) {
	path := filepath.Join(t.TempDir(), "countersign.yaml")
	write(t, path, []byte(refundPolicy))
	file, tools, err := policyfile.ReadGiven(path)
	if err != nil {
		t.Fatal(err)
	}
	refund := func(name string, amount int, verdict approvers.Verdict, risk approvers.Risk, who ...string) config.Fixture {
		return config.Fixture{
			Name: name, Tool: "issue_refund", Args: fmt.Appendf(nil, `{"order_id":"ORD-1","amount":%d,"currency":"USD","reason":"x"}`, amount),
			Expect: config.Expectation{Verdict: string(verdict), Risk: risk, Who: who},
		}
	}
	var out bytes.Buffer
	r := replayed{out: &out, tools: tools, policy: file.Policy, fixtures: stored, heldTo: asThen}
	r.try(refund("as it was", 5, approvers.Ask, approvers.High, "team-lead"))
	for i := range 5 {
		r.try(refund(fmt.Sprint("ran before ", i), 5+i, approvers.Auto, approvers.Medium))
	}
	r.try(refund("more people", 600, approvers.Ask, approvers.High, "team-lead"))
	if err := r.sum(); cli.Code(err) != cli.ExitNo || err.Error() != "6 calls not as planned then" {
		t.Errorf("%v", err)
	}
	const want = `differs  5 calls of issue_refund
         verdict: auto → ask
         risk: medium → high
         who: nobody → team-lead
         - issue_refund is high risk
         - Team Lead is the first role that may approve this at high risk
         such as ran before 0
                 ran before 1
                 ran before 2
differs  1 call of issue_refund
         risk: high → critical
         who: team-lead → team-lead, then 2 x finance-director
         - issue_refund is high risk
         - the rule "args.amount > 500" matches
         - that makes it critical risk
         - the policy names the stages: Team Lead, then 2 × Finance Director
         such as more people

7 calls: 1 as planned then, 6 not
`
	if out.String() != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
}
