package check

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/config"
)

// outcome is the policy's decision for a tool's calls if certain rules match.
type outcome struct {
	tool    string
	agent   string // empty: the outcome is for agents that override nothing
	rules   []int  // indexes of the rules that match
	limited bool   // the call waits only because the automatic runs are used up
	plan    approvers.Plan
	policy  approvers.ToolPolicy
}

// If a tool has at most maxRulesTogether rules, every combination of its rules is tried. With more rules, only these
// combinations are tried: no rule, each rule alone, each pair of rules, and all rules together.
const maxRulesTogether = 6

// outcomes returns the outcomes of a tool's calls. The outcomes for a part of an outcome's rules come before the
// outcome.
func (c *checker) outcomes(tool, agent string) []outcome {
	t, _ := c.policy.Tool(tool, agent)
	var out []outcome
	for _, matching := range combinations(len(t.Rules)) {
		p := c.matching(tool, matching)
		call := asked(tool, agent)
		o := outcome{tool: tool, agent: agent, rules: matching, plan: p.Plan(call), policy: t}
		if o.plan.Verdict == approvers.Auto && t.MaxAuto.Count > 0 {
			o.plan, o.limited = p.AskFor(call, t.MaxAuto), true
		}
		out = append(out, o)
	}
	return out
}

// The function returns a call for planning. The call is read-only, so the mode observe does not change its
// plan.
func asked(tool, agent string) approvers.Call {
	return approvers.Call{Tool: tool, Effect: approvers.ReadOnly, Facts: approvers.Facts{Agent: agent}}
}

// matching returns a policy with only this tool and only the given rules. The rules are changed: they always match.
// So the code that decides at run time combines exactly the given rules.
func (c *checker) matching(tool string, rules []int) *approvers.Policy {
	p := *c.policy
	p.Tools = nil
	i := slices.IndexFunc(c.policy.Tools, func(t approvers.ToolPolicy) bool { return t.Name == tool })
	if i < 0 {
		return p.Indexed()
	}
	t := c.policy.Tools[i]
	t.Rules = nil
	for _, n := range rules {
		rule := c.policy.Tools[i].Rules[n]
		rule.When.Eval = func(approvers.Facts) (bool, error) { return true, nil }
		t.Rules = append(t.Rules, rule)
	}
	p.Tools = []approvers.ToolPolicy{t}
	return p.Indexed()
}

// combinations returns sets of indexes below n. Each set comes after its subsets.
func combinations(n int) [][]int {
	out := [][]int{nil}
	if n <= maxRulesTogether {
		for set := 1; set < 1<<n; set++ {
			var rules []int
			for i := range n {
				if set&(1<<i) != 0 {
					rules = append(rules, i)
				}
			}
			out = append(out, rules)
		}
		slices.SortStableFunc(out, func(a, b []int) int { return len(a) - len(b) })
		return out
	}
	all := make([]int, n)
	for i := range n {
		all[i] = i
		out = append(out, []int{i})
		for j := range i {
			out = append(out, []int{j, i})
		}
	}
	return append(out, all)
}

// includes reports whether every rule of the smaller set is in the larger set.
func includes(larger, smaller []int) bool {
	for _, n := range smaller {
		if !slices.Contains(larger, n) {
			return false
		}
	}
	return true
}

// path returns the path of the value that causes the outcome.
func (o outcome) path(f *config.File) string {
	switch {
	case o.agent != "":
		return "agents." + o.agent + ".overrides." + o.tool
	case !f.Document.Has("tools." + o.tool):
		return "defaults.unknown_tool"
	case len(o.rules) > 0:
		return fmt.Sprintf("tools.%s.rules[%d]", o.tool, o.rules[len(o.rules)-1])
	}
	return "tools." + o.tool
}

// The method returns the condition under which the outcome applies.
func (o outcome) when() string {
	var parts []string
	for _, n := range o.rules {
		parts = append(parts, o.policy.Rules[n].When.Text)
	}
	text := strings.Join(parts, ", and ")
	if o.limited {
		after := fmt.Sprintf("after %s automatic runs", o.policy.MaxAuto)
		if text == "" {
			return after
		}
		return text + ", " + after
	}
	return text
}

// subject names the calls of the outcome: the tool, and its condition.
func (o outcome) subject() string {
	switch when := o.when(); {
	case o.limited:
		return o.tool + " " + when
	case when != "":
		return o.tool + " when " + when
	}
	return o.tool
}

// named returns the stages that the policy lists for the outcome.
func (o outcome) named() []approvers.Stage {
	named := slices.Clone(o.policy.Stages)
	for _, n := range o.rules {
		named = append(named, o.policy.Rules[n].Stages...)
	}
	return named
}
