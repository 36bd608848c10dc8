package check_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/config"
	"countersign/config/check"
)

// If all sources are known, check reports tools that no source offers. If a source is not known, check does not
// report such tools.
func TestToolsThatNobodyOffers(t *testing.T) {
	const rest = `tools: {issue_refund: {risk: high, stages: [lead]}, search: {risk: low}}
approvers: {lead: {title: Lead, members: [U0001], max_risk: critical, can_approve: [issue_refund, gone]}}
agents: {support: {channels: ["#support"], prompt: x, tools: ["*"]}}
`
	const shop = "servers: {shop: {command: [shop]}}\n"
	builtIn := check.Tool{Name: "ask_people"}
	for _, tt := range []struct {
		name, policy string
		tools        []check.Tool
		want         []string
	}{
		{"no source is named", rest, []check.Tool{builtIn}, []string{
			`warning: tools: nothing offers issue_refund, search yet; name where they come from under servers, http or openapi; until then nobody can call them`,
			`approvers.lead.can_approve[1]: "gone" is not a tool; the tools are issue_refund, search, ask_people`,
		}},
		{"what the server offers is not known", shop + rest, []check.Tool{builtIn}, []string{
			`warning: servers.shop: its tools are not known, so it is unclear whether it offers issue_refund, search; pin its tools: countersign tools pin`,
			`warning: approvers.lead.can_approve[1]: "gone" is not a tool of this policy; the tools are issue_refund, search, ask_people`,
		}},
		{"it is known", shop + rest, []check.Tool{builtIn, {Name: "issue_refund", Source: "shop"}}, []string{
			`warning: tools.search: nothing offers a tool of this name, so this governs nothing; remove it, or name where it comes from under servers, http or openapi`,
			`approvers.lead.can_approve[1]: "gone" is not a tool; the tools are issue_refund, search, ask_people`,
		}},
		{"nothing is known", rest, nil, []string{
			`warning: approvers.lead.can_approve[1]: "gone" is not a tool of this policy; the tools are issue_refund, search`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file, err := config.ParsePolicy("p.yaml", []byte("version: 1\n"+tt.policy))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range check.Run(file, tt.tools) {
				line := p.Error()
				if _, rest, ok := strings.Cut(line, ": "); ok && strings.Contains(line, "offers") || strings.Contains(line, "is not a tool") {
					got = append(got, rest)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
