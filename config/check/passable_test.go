package check_test

import (
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/check"
)

// TestCheckedStagesCanBePassed uses policies with overrides and with stages of several roles. If check finds no error
// in such a policy, no call is refused. The requesters of the calls are not approvers.
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
		clean := len(check.Run(f, nil).Errors()) == 0
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

// TestCheckedMeansApprovable checks that no call is refused if check finds no error. The test tries every combination
// of rules and every agent. The requesters are not approvers.
func TestCheckedMeansApprovable(t *testing.T) {
	risks := []string{"low", "medium", "high", "critical"}
	refused, passed := 0, 0
	for n := range 4 * 4 * 4 * 3 * 3 {
		pick := func(of int) int { i := n % of; n /= of; return i }
		text := fmt.Sprintf(`
version: 1
tools:
  pay:
    risk: %s
    max_auto: 5/h
    rules:
      - {when: args.x > 1, risk: %s}
      - {when: args.y > 1, stages: [%s]}
approvers:
  a: {members: [U0001], max_risk: %s, can_approve: [%s]}
  b: {members: [U0001, U0002], max_risk: high, can_approve: [pay]}
agents: {s: {tools: ["*"], overrides: {pay: {confirm: true}}}}
`, risks[pick(4)], risks[pick(4)], []string{"a, b", "b, a", "{approver: b, quorum: 2}"}[pick(3)], risks[pick(4)], []string{"pay", `"*"`, "other"}[pick(3)])
		f := parse(t, text)
		clean := len(check.Run(f, []check.Tool{{Name: "pay"}, {Name: "other"}}).Errors()) == 0
		some := false
		for _, agent := range []string{"", "s"} {
			for _, x := range []float64{0, 2} {
				for _, y := range []float64{0, 2} {
					call := approvers.Call{Tool: "pay", Facts: approvers.Facts{Agent: agent, Args: map[string]any{"x": x, "y": y}}}
					plan := f.Policy.Plan(call)
					if plan.Verdict == approvers.Auto {
						plan = f.Policy.AskFor(call, f.Policy.Tools[0].MaxAuto)
					}
					some = some || plan.Verdict == approvers.Refuse
				}
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

// TestReportOfAnOverride checks that the report has an entry of its own for an agent whose override allows break glass.
func TestReportOfAnOverride(t *testing.T) {
	f := parse(t, `
version: 1
tools: {pay: {risk: high, confirm: true}}
approvers: {a: {members: [U0001], max_risk: high, can_approve: [pay]}}
agents: {s: {tools: ["*"], overrides: {pay: {break_glass: true}}}}
`)
	notes := map[string]bool{}
	for _, g := range check.NewReport(f, []check.Tool{{Name: "pay"}}).Gates {
		notes[g.Tool+" "+g.Agent] = strings.Contains(fmt.Sprint(g.Notes), "break glass")
	}
	if own, ok := notes["pay s"]; !ok || !own || notes["pay "] {
		t.Errorf("entries, and whether they name break glass: %v", notes)
	}
}
