package approvers_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// stricter returns a policy in which one setting is stricter, and the name of this setting. If no setting of this
// kind can be made stricter, the policy is unchanged.
func stricter(t *rapid.T, was *approvers.Policy, n int) (*approvers.Policy, string) {
	p := copied(was)
	p.Hash = fmt.Sprint("policy-", n)
	tool := &p.Tools[rapid.IntRange(0, len(p.Tools)-1).Draw(t, "tool")]
	what := one(t, "stricter", "risk", "confirm", "rule", "stage first", "stage last", "quorum", "rejects", "ceiling", "member", "list", "self", "masked", "blind", "glass", "never_loosen", "observe", "role")
	switch what {
	case "risk":
		tool.Risk = min(tool.Risk+1, approvers.Critical)
	case "confirm":
		tool.Confirm = true
	case "rule":
		tool.Rules = append(tool.Rules, drawRule(t))
	case "stage first":
		tool.Stages = together([]approvers.Stage{drawStage(t)}, tool.Stages)
	case "stage last":
		tool.Stages = together(tool.Stages, []approvers.Stage{drawStage(t)})
	case "self":
		tool.SelfApproval = false
	case "masked":
		tool.Secrets = []string{"amount"}
	case "blind":
		tool.Blind = false
	case "glass":
		tool.BreakGlass = false
	case "never_loosen":
		p.NeverLoosen = []string{"*"}
	case "observe":
		tool.Mode = approvers.Observe
	case "quorum", "rejects":
		stricterStage(t, p, tool, what)
	default:
		stricterRole(t, p, what)
	}
	return p, what
}

func stricterStage(t *rapid.T, p *approvers.Policy, tool *approvers.ToolPolicy, what string) {
	stages := tool.Stages
	if o := p.Agents[0].Overrides[tool.Name]; len(o.Stages) > 0 && rapid.Bool().Draw(t, "the override's") {
		stages = o.Stages
	} else if len(tool.Rules) > 0 && rapid.Bool().Draw(t, "the rule's") {
		stages = tool.Rules[0].Stages
	}
	if len(stages) == 0 {
		return
	}
	s := &stages[rapid.IntRange(0, len(stages)-1).Draw(t, "stage")]
	if what == "quorum" {
		s.Quorum++
	} else {
		s.Rejects = max(s.Rejects-1, 1)
	}
}

func stricterRole(t *rapid.T, p *approvers.Policy, what string) {
	if len(p.Approvers) == 0 {
		return
	}
	i := rapid.IntRange(0, len(p.Approvers)-1).Draw(t, "role")
	r := &p.Approvers[i]
	switch what {
	case "ceiling":
		r.MaxRisk = max(r.MaxRisk-1, approvers.Low)
	case "member":
		r.Members = r.Members[:max(len(r.Members)-1, 1)]
	case "list":
		without := one(t, "without", someTools...)
		r.CanApprove = slices.DeleteFunc(slices.Clone(someTools), func(tool string) bool { return tool == without || !lists(*r, tool) })
	case "role":
		p.Approvers = slices.Delete(p.Approvers, i, i+1)
	}
}

// copied returns a copy of a policy. The changes that stricter makes in the copy don't change the original.
func copied(was *approvers.Policy) *approvers.Policy {
	p := *was
	p.Tools, p.Approvers, p.Agents = slices.Clone(was.Tools), slices.Clone(was.Approvers), slices.Clone(was.Agents)
	for i, tool := range p.Tools {
		p.Tools[i].Stages, p.Tools[i].Rules = slices.Clone(tool.Stages), slices.Clone(tool.Rules)
		for n, rule := range tool.Rules {
			p.Tools[i].Rules[n].Stages = slices.Clone(rule.Stages)
		}
	}
	for i, a := range p.Agents {
		overrides := map[string]approvers.Override{}
		for name, o := range a.Overrides {
			o.Stages = slices.Clone(o.Stages)
			overrides[name] = o
		}
		p.Agents[i].Overrides = overrides
	}
	return &p
}
