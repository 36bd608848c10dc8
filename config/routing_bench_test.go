package config_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/config"
)

type size struct{ tools, approvers int }

// manyRules is the number of rules of the called tool. Routing a call to this tool in a policy of the size large must
// take less than 100 µs.
const manyRules = 100

var (
	large = size{tools: 10_000, approvers: 1_000}
	small = size{tools: 10, approvers: 10}
)

// threeTools has three tools: one with rules, one without rules, and one with a stage for a user group.
var threeTools = sync.OnceValues(func() (*config.File, error) {
	var b strings.Builder
	b.WriteString("version: 1\ntools:\n  ruled: {risk: high, confirm: true, rules: [")
	for n := range manyRules {
		fmt.Fprintf(&b, "{when: 'args.amount > %d && args.currency == \"C%d\"', risk: critical}, ", 500+n, n)
	}
	b.WriteString("]}\n  plain: {risk: high, confirm: true}\n  grouped: {risk: high, stages: [{group: \"@money\", quorum: 2}]}\n")
	b.WriteString("agents:\n  a: {channels: [\"*\"], tools: [\"*\"]}\n")
	return config.ParsePolicy("sized.yaml", []byte(b.String()))
})

// sizedPolicy returns a policy of the given size. The policy has the tools of threeTools and other tools. All
// approvers may approve the tools of threeTools. One approver in ten may approve all tools.
func sizedPolicy(t testing.TB, s size) *approvers.Policy {
	t.Helper()
	file, err := threeTools()
	if err != nil {
		t.Fatal(err)
	}
	p := *file.Policy
	p.Tools = slices.Clone(p.Tools)
	for i := range s.tools - len(p.Tools) {
		p.Tools = append(p.Tools, approvers.ToolPolicy{Name: fmt.Sprint("tool_", i), Risk: approvers.High, Confirm: true})
	}
	for i := range s.approvers {
		role := approvers.Role{Name: fmt.Sprint("role-", i), Title: fmt.Sprint("Role ", i), MaxRisk: approvers.Low + approvers.Risk(i%4)}
		role.CanApprove = []string{"ruled", "plain", "grouped", fmt.Sprint("tool_", i)}
		if i%10 == 7 {
			role.CanApprove = []string{"*"}
		}
		for n := range 2 {
			role.Members = append(role.Members, approvers.Member{Kind: approvers.MemberUser, Value: fmt.Sprintf("U%04d", i+n)})
		}
		p.Approvers = append(p.Approvers, role)
	}
	return p.Indexed()
}

func sizedCall(tool string, amount float64) approvers.Call {
	return approvers.Call{
		Tool: tool, Requesters: []approvers.PersonID{"T1/U9"}, Authors: []approvers.PersonID{"T1/U9"},
		Facts: approvers.Facts{
			Args: map[string]any{"amount": amount, "currency": "C7"}, Requester: "U9", Agent: "a", Now: time.Unix(1_700_000_000, 0),
		},
	}
}

// routed plans a call that must wait for people.
func routed(t testing.TB, p *approvers.Policy, c approvers.Call) {
	if plan := p.Plan(c); plan.Verdict != approvers.Ask {
		t.Fatalf("%s: %s, %v", c.Tool, plan.Verdict, plan.Why)
	}
}

// BenchmarkRouting plans calls in a large policy. The goal is a median below 100 µs, with and without a matching rule.
// docs/figures.md says how to repeat the benchmark.
func BenchmarkRouting(b *testing.B) {
	p := sizedPolicy(b, large)
	for _, one := range []struct {
		name string
		call approvers.Call
	}{
		{"100 rules, none matches", sizedCall("ruled", 10)},
		{"100 rules, one matches", sizedCall("ruled", 600)},
		{"no rules", sizedCall("plain", 10)},
		{"a tool that the policy does not name", sizedCall("unheard_of", 10)},
		{"a stage for a user group", sizedCall("grouped", 10)},
	} {
		b.Run(one.name, func(b *testing.B) {
			b.ReportAllocs()
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				routed(b, p, one.call)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/float64(time.Microsecond), "p50-µs")
		})
	}
}

// TestRoutingDoesNotGrow compares routing in a large policy with routing in a small policy, in alternating rounds. The
// large policy has a thousand times more tools and a hundred times more approvers. The size of the policy must make no
// difference. The test compares the fastest of many tries, because other work on the machine affects the fastest try
// least.
func TestRoutingDoesNotGrow(t *testing.T) {
	little, big := sizedPolicy(t, small), sizedPolicy(t, large)
	for _, one := range []struct {
		call approvers.Call
		most float64 // how many times as long the call may take in the large policy as in the small one
	}{
		{sizedCall("plain", 10), 3},
		{sizedCall("unheard_of", 10), 3},
		{sizedCall("ruled", 10), 2},
	} {
		a, b := quickest(t, little, one.call), quickest(t, big, one.call)
		for range 30 {
			a, b = min(a, quickest(t, little, one.call)), min(b, quickest(t, big, one.call))
		}
		t.Logf("%s: %s in a small policy, %s in a large one", one.call.Tool, a, b)
		if float64(b) > one.most*float64(a) {
			t.Errorf("%s takes %s in a small policy and %s in a large one: more than %g times as long", one.call.Tool, a, b, one.most)
		}
	}
}

// TestRoutingTakesLittleMoreThanItsRules compares two durations: the duration of planning a call with many rules, and
// the duration of evaluating only these rules. The test measures them in alternating rounds.
func TestRoutingTakesLittleMoreThanItsRules(t *testing.T) {
	p := sizedPolicy(t, large)
	c := sizedCall("ruled", 10)
	tool, _ := p.Tool(c.Tool, c.Facts.Agent)
	bare := func() time.Duration {
		began := time.Now()
		for _, r := range tool.Rules {
			if matched, err := r.When.Eval(c.Facts); matched || err != nil {
				t.Fatal(matched, err)
			}
		}
		return time.Since(began)
	}
	rules, plan := bare(), quickest(t, p, c)
	for range 200 {
		rules, plan = min(rules, bare()), min(plan, quickest(t, p, c))
	}
	t.Logf("rules alone %s, the plan %s", rules, plan)
	if plan > 3*rules {
		t.Errorf("a plan takes %s, and its rules alone %s", plan, rules)
	}
}

// quickest plans a call several times, and returns the shortest time.
func quickest(t testing.TB, p *approvers.Policy, c approvers.Call) time.Duration {
	shortest := time.Hour
	for range 20 {
		began := time.Now()
		routed(t, p, c)
		shortest = min(shortest, time.Since(began))
	}
	return shortest
}
