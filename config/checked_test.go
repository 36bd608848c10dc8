package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/config"
)

// TestCheckedStagesCanBePassed: a policy with stages of several roles and overrides in which check finds no error lets no call be refused, as
// long as the requesters are nobody who approves.
func TestCheckedStagesCanBePassed(t *testing.T) {
	stages := []string{
		"a", "{approvers: [a, b]}", "{approvers: [b, a], quorum: 2}", "{approvers: [a, c], quorum: 2}", "{approver: c, group: \"@g\"}", "{group: \"@g\"}", "d",
		"{approvers: [c, d], quorum: 3}",
	}
	refused, passed := 0, 0
	for n := range len(stages) * len(stages) * len(stages) * 4 {
		pick := func(of int) int { i := n % of; n /= of; return i }
		text := fmt.Sprintf(`
version: 1
%s
tools:
  pay:
    risk: medium
    stages: [%s]
    rules: [{when: args.y > 1.0, stages: [%s]}]
approvers:
  a: {members: [U0001], max_risk: medium, can_approve: [pay]}
  b: {members: [U0001, U0002], max_risk: high, can_approve: ["*"]}
  c: {members: [U0003], max_risk: high, can_approve: [pay]}
  d: {members: [U0004], max_risk: critical, can_approve: [other]}
agents: {s: {tools: ["*"], overrides: {pay: {%s: [%s]}}}}
`, []string{"", "never_loosen: [pay]"}[pick(2)], stages[pick(len(stages))], stages[pick(len(stages))], []string{"risk: high, stages", "stages"}[pick(2)], stages[pick(len(stages))])
		f, err := config.ParsePolicy("p.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v:%s", err, text)
		}
		clean := len(f.Check(nil).Errors()) == 0
		some := false
		for _, agent := range []string{"", "s"} {
			for _, y := range []float64{0, 2} {
				plan := f.Policy.Plan(approvers.Call{Tool: "pay", Facts: approvers.Facts{Agent: agent, Args: map[string]any{"y": y}}})
				some = some || plan.Verdict == approvers.Refuse
			}
		}
		if clean && some {
			t.Fatalf("check found nothing, and a call is refused:%s", text)
		}
		if some {
			refused++
		}
		if clean {
			passed++
		}
	}
	if refused == 0 || passed == 0 {
		t.Fatalf("the policies tried show nothing: %d refused, %d passed", refused, passed)
	}
}

// TestSuggestedZones: every zone that may be suggested is one, on a machine without a database of its own too.
func TestSuggestedZones(t *testing.T) {
	t.Setenv("ZONEINFO", "/nowhere")
	zones := strings.Fields(read(t, "zones.txt"))
	if len(zones) < 400 || !slices.Contains(zones, "Europe/Berlin") || !slices.Contains(zones, "UTC") {
		t.Fatalf("%d zones", len(zones))
	}
	for _, name := range zones {
		if _, err := time.LoadLocation(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
