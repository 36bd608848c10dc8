package approvers

import (
	"fmt"
	"strings"
)

// Explain plans a call as [Policy.Plan] does, and also returns the steps that led to the plan.
func (p *Policy) Explain(c Call) (Plan, []string) {
	var steps []string
	plan := p.plan(c, func(format string, args ...any) { steps = append(steps, fmt.Sprintf(format, args...)) })
	return plan, steps
}

// planTrace records the steps of a plan; nil records nothing.
type planTrace func(format string, args ...any)

func (n planTrace) tool(p *Policy, c Call, t ToolPolicy, known bool) {
	if n == nil {
		return
	}
	_, named := p.tool(c.Tool)
	why, distrusted := p.Distrusts(c.Tool)
	x, presumed := p.Presumes(c.Tool)
	switch {
	case distrusted:
		n("%s is not as the operator pinned it: %s. It counts as an unknown tool, even if the policy names it: %s risk, %s.",
			c.Tool, why, t.Risk, waitsOrRuns(t.Confirm))
	case named:
		n("The policy knows %s: %s risk, %s.", c.Tool, t.Risk, waitsOrRuns(t.Confirm))
	case known:
		n("%s is a built-in tool: %s risk, %s.", c.Tool, t.Risk, waitsOrRuns(t.Confirm))
	case presumed:
		n("The policy does not name %s; %s: %s risk, %s.", c.Tool, x.Why, t.Risk, waitsOrRuns(t.Confirm))
	default:
		n("The policy does not name %s, so what it says of unknown tools holds: %s risk, %s.", c.Tool, t.Risk, waitsOrRuns(t.Confirm))
	}
	if a, ok := p.Agent(c.Facts.Agent); ok {
		if _, has := a.Overrides[c.Tool]; has {
			n("The agent %s overrides parts of that; they are counted in.", a.Name)
			if p.neverLoosens(c.Tool) {
				n("never_loosen protects %s: the override only makes it stricter.", c.Tool)
			}
		}
	}
	if len(t.Stages) > 0 {
		n("Its stages are %s.", stageList(p, p.resolve(t.Stages, c.Tool, t.Risk)))
	}
}

func waitsOrRuns(confirm bool) string {
	if confirm {
		return "waits for people"
	}
	return "runs without asking"
}

func (n planTrace) rule(i int, rule Rule, matched bool, err error) {
	switch {
	case n == nil:
	case err != nil:
		n("Rule %d, %s: could not be evaluated (%s), so it counts as matched%s.", i+1, rule.When.Text, err, rule.adds())
	case matched:
		n("Rule %d, %s: matches%s.", i+1, rule.When.Text, rule.adds())
	default:
		n("Rule %d, %s: does not match.", i+1, rule.When.Text)
	}
}

// adds describes the rule's additions to the tool's policy.
func (r Rule) adds() string {
	var parts []string
	if r.Risk != 0 {
		parts = append(parts, fmt.Sprintf("at least %s risk", r.Risk))
	}
	if r.Confirm {
		parts = append(parts, "waits for people")
	}
	for _, s := range r.Stages {
		name := strings.Join(s.Roles(), " or ")
		if s.Group != "" {
			name = strings.TrimSpace(name + " @" + s.Group)
		}
		parts = append(parts, fmt.Sprintf("a stage of %d × %s", s.Quorum, name))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

func (n planTrace) role(r Role, format string, args ...any) {
	if n != nil {
		n("%s (%s) "+format+".", append([]any{r.Name, r.Title}, args...)...)
	}
}

func (n planTrace) verdict(p *Policy, plan Plan, t ToolPolicy) {
	if n == nil {
		return
	}
	verdict := plan.Verdict
	if verdict == Observed {
		n("The policy only observes this tool: it is not run, and nobody is asked. Otherwise:")
		verdict = plan.Would
	}
	switch verdict {
	case Refuse:
		n("Nobody could allow it, so it is refused: %s.", plan.Why[len(plan.Why)-1])
	case Ask:
		n("It is %s risk and waits for %s.", plan.Risk, stageList(p, plan.Stages))
	case Auto:
		if t.MaxAuto.Count > 0 {
			n("It is %s risk and runs without asking, at most %s in a conversation; then people are asked.", plan.Risk, t.MaxAuto)
			return
		}
		n("It is %s risk and runs without asking.", plan.Risk)
	}
}
