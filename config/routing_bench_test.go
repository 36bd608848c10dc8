package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/config"
)

// A policy of the size that the product promises to route in less than 100 µs: 10,000 tools, 1,000 approvers, and 100 rules on the tool
// that is called.
const (
	manyTools     = 10_000
	manyApprovers = 1_000
	manyRules     = 100
)

func largePolicy(t testing.TB) *approvers.Policy {
	t.Helper()
	var b strings.Builder
	b.WriteString("version: 1\ntools:\n")
	for i := range manyTools {
		fmt.Fprintf(&b, "  tool_%d: {risk: high, confirm: true", i)
		if i == manyTools/2 {
			b.WriteString(", rules: [")
			for n := range manyRules {
				fmt.Fprintf(&b, "{when: 'args.amount > %d && args.currency == \"C%d\"', risk: critical}, ", 500+n, n)
			}
			b.WriteString("]")
		}
		b.WriteString("}\n")
	}
	b.WriteString("approvers:\n")
	risks := []string{"low", "medium", "high", "critical"}
	for i := range manyApprovers {
		tools := fmt.Sprintf("tool_%d, tool_%d", i, manyTools/2)
		if i%100 == 0 {
			tools = `"*"`
		}
		fmt.Fprintf(&b, "  role-%d: {members: [U%04d, U%04d], max_risk: %s, can_approve: [%s]}\n", i, i, i+1, risks[i%4], tools)
	}
	b.WriteString("agents:\n  a: {channels: [\"*\"], tools: [\"*\"]}\n")
	file, err := config.ParsePolicy("large.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return file.Policy
}

func largeCall(amount float64) approvers.Call {
	return approvers.Call{
		Tool: fmt.Sprintf("tool_%d", manyTools/2), Requesters: []approvers.PersonID{"T1/U9"}, Authors: []approvers.PersonID{"T1/U9"},
		Facts: approvers.Facts{
			Args: map[string]any{"amount": amount, "currency": "C7"}, Requester: "U9", Agent: "a", Now: time.Unix(1_700_000_000, 0),
		},
	}
}

func BenchmarkRouting(b *testing.B) {
	p := largePolicy(b)
	for _, one := range []struct {
		name   string
		amount float64
	}{{"no rule matches", 10}, {"one rule matches", 600}} {
		b.Run(one.name, func(b *testing.B) {
			c := largeCall(one.amount)
			b.ReportAllocs()
			for b.Loop() {
				if plan := p.Plan(c); plan.Verdict != approvers.Ask {
					b.Fatalf("%s: %v", plan.Verdict, plan.Why)
				}
			}
		})
	}
}
