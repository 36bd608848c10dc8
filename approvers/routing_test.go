package approvers_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
)

func TestRouting(t *testing.T) {
	stage := func(role string, quorum int) approvers.Stage { return approvers.Stage{Approver: role, Quorum: quorum} }
	tests := []struct {
		name    string
		tool    string
		args    string
		change  func(*approvers.Policy, *approvers.Call)
		verdict approvers.Verdict
		risk    approvers.Risk
		stages  []approvers.Stage
		why     string // a part of one of the reasons
	}{
		{name: "a read runs", tool: "search_orders", args: `{}`, verdict: approvers.Auto, risk: approvers.Low, why: "search_orders is low risk"},
		{name: "a reversible write runs", tool: "update_shipping_address", args: `{}`, verdict: approvers.Auto, risk: approvers.Medium},
		{name: "medium goes to the lowest ceiling", tool: "apply_discount", args: `{}`, verdict: approvers.Ask, risk: approvers.Medium,
			stages: []approvers.Stage{stage("support-agent", 1)}, why: "Support Agent is the first role that may approve this at medium risk"},
		{name: "high goes to the lead", tool: "issue_refund", args: `{"amount":49.99}`, verdict: approvers.Ask, risk: approvers.High,
			stages: []approvers.Stage{stage("team-lead", 1)}},
		{name: "exactly the rule's limit does not match", tool: "issue_refund", args: `{"amount":500}`, verdict: approvers.Ask,
			risk: approvers.High, stages: []approvers.Stage{stage("team-lead", 1)}},
		{name: "above it needs both stages", tool: "issue_refund", args: `{"amount":500.01}`, verdict: approvers.Ask, risk: approvers.Critical,
			stages: []approvers.Stage{stage("team-lead", 1), stage("finance-director", 2)}, why: `the rule "args.amount > 500" matches`},
		{name: "a rule that can't be evaluated counts as matched", tool: "issue_refund", args: `{"amount":"lots"}`, verdict: approvers.Ask,
			risk: approvers.Critical, stages: []approvers.Stage{stage("team-lead", 1), stage("finance-director", 2)}, why: "could not be evaluated"},
		{name: "critical goes to the director", tool: "cancel_account", args: `{}`, verdict: approvers.Ask, risk: approvers.Critical,
			stages: []approvers.Stage{stage("finance-director", 1)}},
		{name: "an unknown tool is critical", tool: "format_disk", args: `{}`, verdict: approvers.Ask, risk: approvers.Critical,
			stages: []approvers.Stage{stage("finance-director", 1)}, why: "the policy does not know format_disk"},
		{name: "an agent's override can ask", tool: "search_orders", args: `{}`, verdict: approvers.Ask, risk: approvers.Low,
			stages: []approvers.Stage{stage("finance-director", 1)}, // no other role's tool list has the tool
			change: func(p *approvers.Policy, _ *approvers.Call) {
				yes := true
				p.Agents[0].Overrides = map[string]approvers.Override{"search_orders": {Confirm: &yes}}
			}},
		{name: "another agent's override does not count", tool: "search_orders", args: `{}`, verdict: approvers.Auto, risk: approvers.Low,
			change: func(p *approvers.Policy, c *approvers.Call) {
				yes := true
				p.Agents[0].Overrides = map[string]approvers.Override{"search_orders": {Confirm: &yes}}
				c.Facts.Agent = "other"
			}},
		{name: "ties go to the first in the file", tool: "apply_discount", args: `{}`, verdict: approvers.Ask, risk: approvers.Medium,
			stages: []approvers.Stage{stage("first", 1)},
			change: func(p *approvers.Policy, _ *approvers.Call) {
				twin := p.Approvers[0]
				twin.Name = "first"
				p.Approvers = append([]approvers.Role{twin}, p.Approvers...)
			}},
		{name: "a ceiling without the tool is passed over", tool: "delete_account", args: `{}`, verdict: approvers.Ask, risk: approvers.High,
			stages: []approvers.Stage{stage("finance-director", 1)},
			change: func(p *approvers.Policy, _ *approvers.Call) { p.Approvers[1].CanApprove = []string{"issue_refund"} }},
		{name: "a role of requesters only is passed over", tool: "issue_refund", args: `{"amount":1}`, verdict: approvers.Ask,
			risk: approvers.High, stages: []approvers.Stage{stage("finance-director", 1)},
			change: func(_ *approvers.Policy, c *approvers.Call) { c.Requesters = []approvers.PersonID{onLead.ID} }},
		{name: "unless requesters may decide", tool: "issue_refund", args: `{"amount":1}`, verdict: approvers.Ask,
			risk: approvers.High, stages: []approvers.Stage{stage("team-lead", 1)},
			change: func(p *approvers.Policy, c *approvers.Call) {
				c.Requesters = []approvers.PersonID{onLead.ID}
				p.Tools[5].SelfApproval = true
			}},
		{name: "for high, an author counts as requester", tool: "issue_refund", args: `{"amount":1}`, verdict: approvers.Ask,
			risk: approvers.High, stages: []approvers.Stage{stage("finance-director", 1)},
			change: func(_ *approvers.Policy, c *approvers.Call) { c.Authors = append(c.Authors, onLead.ID) }},
		{name: "for medium, it does not", tool: "apply_discount", args: `{}`, verdict: approvers.Ask,
			risk: approvers.Medium, stages: []approvers.Stage{stage("support-agent", 1)},
			change: func(p *approvers.Policy, c *approvers.Call) {
				p.Approvers[0].Members = users("U0001")
				c.Authors = append(c.Authors, onSupport.ID)
			}},
		{name: "nobody's tool list", tool: "cancel_account", args: `{}`, verdict: approvers.Refuse, risk: approvers.Critical, why: "no approver's tool list has cancel_account",
			change: func(p *approvers.Policy, _ *approvers.Call) { p.Approvers[2].CanApprove = []string{"issue_refund"} }},
		{name: "nobody's ceiling", tool: "cancel_account", args: `{}`, verdict: approvers.Refuse, risk: approvers.Critical,
			change: func(p *approvers.Policy, _ *approvers.Call) { p.Approvers[2].MaxRisk = approvers.High }},
		{name: "a quorum above the members", tool: "issue_refund", args: `{"amount":501}`, verdict: approvers.Refuse, risk: approvers.Critical, why: "fewer than 2 members",
			change: func(p *approvers.Policy, _ *approvers.Call) { p.Approvers[2].Members = users("U0003") }},
		{name: "a quorum met only by counting one person twice", tool: "issue_refund", args: `{"amount":501}`, verdict: approvers.Refuse, risk: approvers.Critical,
			change: func(p *approvers.Policy, _ *approvers.Call) { p.Approvers[2].Members = users("U0003", "U0003") }},
		{name: "distinct people only with those of a role that may not", tool: "issue_refund", args: `{"amount":501}`, verdict: approvers.Refuse, risk: approvers.Critical, why: "more distinct people",
			change: func(p *approvers.Policy, _ *approvers.Call) {
				p.Approvers[0].Members, p.Approvers[1].Members = users("U0001"), users("U0003") // the support agents don't have the tool
				p.Tools[5].Rules[0].Stages[0].Or = []string{"support-agent"}
			}},
		{name: "a quorum met only with the requester", tool: "issue_refund", args: `{"amount":501}`, verdict: approvers.Refuse, risk: approvers.Critical,
			change: func(_ *approvers.Policy, c *approvers.Call) { c.Requesters = []approvers.PersonID{onFin2.ID} }},
		{name: "a user group may hold enough", tool: "issue_refund", args: `{"amount":501}`, verdict: approvers.Ask, risk: approvers.Critical,
			stages: []approvers.Stage{stage("team-lead", 1), stage("finance-director", 2)},
			change: func(p *approvers.Policy, _ *approvers.Call) {
				p.Approvers[2].Members = []approvers.Member{{Kind: approvers.MemberGroup, Value: "finance"}}
			}},
		{name: "the last stage below the risk", tool: "issue_refund", args: `{"amount":501}`, verdict: approvers.Refuse, risk: approvers.Critical, why: "the last stage, has a ceiling of high",
			change: func(p *approvers.Policy, _ *approvers.Call) { p.Approvers[2].MaxRisk = approvers.High }},
		{name: "a stage that is not an approver", tool: "cancel_account", args: `{}`, verdict: approvers.Refuse, risk: approvers.Critical, why: "which is not an approver",
			change: func(p *approvers.Policy, _ *approvers.Call) {
				p.Tools[6].Stages = []approvers.Stage{stage("nobody", 1)}
			}},
		{name: "rules combine: highest risk, union of stages, larger quorum", tool: "apply_discount", args: `{}`, verdict: approvers.Ask, risk: approvers.Critical,
			stages: []approvers.Stage{stage("team-lead", 1), stage("finance-director", 2)},
			change: func(p *approvers.Policy, _ *approvers.Call) {
				always := approvers.Condition{Text: "true", Eval: func(approvers.Facts) (bool, error) { return true, nil }}
				p.Tools[2].Rules = []approvers.Rule{
					{When: always, Risk: approvers.Critical, Stages: []approvers.Stage{stage("team-lead", 1), stage("finance-director", 1)}},
					{When: always, Risk: approvers.High, Stages: []approvers.Stage{stage("finance-director", 2)}},
				}
			}},
		{name: "a rule can't lower the risk", tool: "cancel_account", args: `{}`, verdict: approvers.Ask, risk: approvers.Critical,
			stages: []approvers.Stage{stage("finance-director", 1)},
			change: func(p *approvers.Policy, _ *approvers.Call) {
				p.Tools[6].Rules = []approvers.Rule{{When: approvers.Condition{Eval: func(approvers.Facts) (bool, error) { return true, nil }}, Risk: approvers.Low}}
			}},
		{name: "a rule with stages asks, though the tool would not", tool: "search_orders", args: `{}`, verdict: approvers.Ask, risk: approvers.Low,
			stages: []approvers.Stage{stage("finance-director", 1)},
			change: func(p *approvers.Policy, _ *approvers.Call) {
				p.Tools[0].Rules = []approvers.Rule{{
					When:   approvers.Condition{Eval: func(approvers.Facts) (bool, error) { return false, errors.New("cost limit") }},
					Stages: []approvers.Stage{stage("finance-director", 1)},
				}}
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, c := example(), callOf(tt.tool, tt.args)
			if tt.change != nil {
				tt.change(p, &c)
			}
			plan := p.Plan(c)
			if plan.Verdict != tt.verdict || plan.Risk != tt.risk || !slices.EqualFunc(plan.Stages, tt.stages, approvers.Stage.Equal) {
				t.Errorf("verdict %s, risk %s, stages %v; want %s, %s, %v\nwhy: %s",
					plan.Verdict, plan.Risk, plan.Stages, tt.verdict, tt.risk, tt.stages, strings.Join(plan.Why, "; "))
			}
			if !strings.Contains(strings.Join(plan.Why, "\n"), tt.why) {
				t.Errorf("reasons %q do not say %q", plan.Why, tt.why)
			}
			if plan.Verdict == approvers.Refuse {
				r := openCall(p, c, tt.args)
				if r.State != approvers.Refused || r.Reason == "" {
					t.Errorf("opened as %s with reason %q; want refused with a reason", r.State, r.Reason)
				}
			}
		})
	}
}

func TestAskForAnAutomaticCall(t *testing.T) {
	p := example()
	limit := approvers.Limit{Count: 5, Per: time.Hour}
	plan := p.AskFor(callOf("update_shipping_address", `{}`), limit)
	if plan.Verdict != approvers.Ask || !slices.EqualFunc(plan.Stages, []approvers.Stage{{Approver: "support-agent", Quorum: 1}}, approvers.Stage.Equal) {
		t.Errorf("verdict %s, stages %v; want the support agent asked", plan.Verdict, plan.Stages)
	}
	if !strings.Contains(strings.Join(plan.Why, "\n"), "more than 5/h automatic runs") {
		t.Errorf("reasons %q do not name the limit", plan.Why)
	}
	if plan := p.AskFor(callOf("cancel_account", `{}`), limit); strings.Contains(strings.Join(plan.Why, "\n"), "automatic") {
		t.Errorf("a call that asks anyway blames the limit: %q", plan.Why)
	}
}

func TestPlanLeavesThePolicyAlone(t *testing.T) {
	p := example()
	p.Tools[5].Stages = make([]approvers.Stage, 1, 4) // capacity for further stages, so that a wrong append would write into the policy
	p.Tools[5].Stages[0] = approvers.Stage{Approver: "finance-director", Quorum: 1}
	c := callOf("issue_refund", `{"amount":501}`)
	c.Requesters = append(make([]approvers.PersonID, 0, 4), asker.ID)
	c.Authors = []approvers.PersonID{bystander.ID}
	p.Plan(c)
	if got := p.Tools[5].Stages[0].Quorum; got != 1 {
		t.Errorf("planning changed the policy's quorum to %d", got)
	}
	if got := c.Requesters[:2][1]; got != "" {
		t.Errorf("planning wrote %q behind the caller's requesters", got)
	}
}

func TestAgentFor(t *testing.T) {
	p := example()
	p.Agents = []approvers.Agent{
		{Name: "ops", Channels: []string{"C0OPS"}, NoDM: true},
		{Name: "support", Channels: []string{"#support"}},
		{Name: "any", Channels: []string{"*"}},
	}
	tests := []struct {
		place approvers.ChannelRef
		want  string
	}{
		{approvers.ChannelRef{Channel: "C0OPS"}, "ops"},
		{approvers.ChannelRef{Channel: "C1", Name: "support"}, "support"},
		{approvers.ChannelRef{Channel: "C2", Name: "random"}, "any"},
		{approvers.ChannelRef{Channel: "D1", DM: true}, "support"}, // the first agent that accepts direct messages
		{approvers.ChannelRef{Channel: "C3", Name: ""}, "any"},     // an unknown name never equals "#"
	}
	for _, tt := range tests {
		if got, ok := p.AgentFor(tt.place); !ok || got.Name != tt.want {
			t.Errorf("at %+v: %q, %t; want %q", tt.place, got.Name, ok, tt.want)
		}
	}
	p.Agents = p.Agents[:1]
	if got, ok := p.AgentFor(approvers.ChannelRef{Channel: "D1", DM: true}); ok {
		t.Errorf("%q answers a direct message though it takes none", got.Name)
	}
}

func TestMayAsk(t *testing.T) {
	guest := person("U1")
	guest.Guest = true
	if denied := (approvers.Agent{}).MayAsk(person("U1")); denied != nil {
		t.Errorf("a member is denied: %v", denied)
	}
	wantDenied(t, (approvers.Agent{}).MayAsk(guest), approvers.DeniedGuest)
	if denied := (approvers.Agent{AllowGuests: true}).MayAsk(guest); denied != nil {
		t.Errorf("a guest is denied though the agent allows them: %v", denied)
	}
	guest.Bot = true
	wantDenied(t, (approvers.Agent{AllowGuests: true}).MayAsk(guest), approvers.DeniedBot)
}

// If never_loosen protects a tool that names no stages, neither an override nor a rule exchanges the role that routing
// chose. Their stages come after this role. Without never_loosen, their stages replace the role.
func TestNamedStagesBesideTheRoutedRole(t *testing.T) {
	director := []approvers.Stage{{Approver: "finance-director", Quorum: 1}}
	for name, c := range map[string]struct {
		never    []string
		own      []approvers.Stage
		override []approvers.Stage
		rule     []approvers.Stage
		want     []string
	}{
		"an override":                          {never: []string{"send_email"}, override: director, want: []string{"team-lead", "finance-director"}},
		"an override, every tool":              {never: []string{"*"}, override: director, want: []string{"team-lead", "finance-director"}},
		"an override, not protected":           {override: director, want: []string{"finance-director"}},
		"a rule":                               {never: []string{"send_email"}, rule: director, want: []string{"team-lead", "finance-director"}},
		"a rule, not protected":                {rule: director, want: []string{"finance-director"}},
		"a rule that names the role":           {never: []string{"*"}, rule: []approvers.Stage{{Approver: "team-lead", Quorum: 1}}, want: []string{"team-lead"}},
		"a rule that names it last":            {never: []string{"*"}, rule: []approvers.Stage{{Approver: "finance-director", Quorum: 1}, {Approver: "team-lead", Quorum: 2, Group: "emea"}}, want: []string{"finance-director", "team-lead"}},
		"a rule that names it among others":    {never: []string{"*"}, rule: []approvers.Stage{{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 1}}, want: []string{"team-lead", "team-lead"}},
		"the entry names stages of its own":    {never: []string{"*"}, own: director, override: director, want: []string{"finance-director"}},
		"the entry's stages and an override's": {never: []string{"*"}, own: []approvers.Stage{{Approver: "team-lead", Quorum: 1}}, override: director, want: []string{"team-lead", "finance-director"}},
		"no other stages":                      {never: []string{"*"}, want: []string{"team-lead"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := example()
			p.NeverLoosen = c.never
			p.Agents[0].Overrides = map[string]approvers.Override{"send_email": {Stages: c.override}}
			tool := &p.Tools[3]
			tool.Stages = c.own
			if c.rule != nil {
				tool.Rules = []approvers.Rule{{When: approvers.Condition{Text: "true", Eval: func(approvers.Facts) (bool, error) { return true, nil }}, Stages: c.rule}}
			}
			wantStages(t, open(t, p, "send_email", `{}`), c.want...)
		})
	}

	p := example()
	p.NeverLoosen = []string{"*"}
	p.Agents[0].Overrides = map[string]approvers.Override{"send_email": {Stages: director}}
	call := callOf("send_email", `{}`)
	call.Requesters = []approvers.PersonID{onLead.ID, onFin1.ID, onFin2.ID}
	plan := p.Plan(call)
	if plan.Verdict != approvers.Refuse {
		t.Errorf("%s without anybody who may decide", plan.Verdict)
	}
}
