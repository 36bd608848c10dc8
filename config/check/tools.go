package check

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/config"
)

// tools checks the outcomes of each tool's calls. tools checks these outcomes for agents without overrides, and for
// each agent with an override.
func (c *checker) tools() {
	for _, name := range c.everyTool() {
		var said []string // messages about the tool, so that they are not repeated for an agent's override
		if slices.Contains(c.toolNames(), name) || c.offered(name) || c.clientsRun(name) {
			said = c.outcomesOf(name, "", nil)
		}
		for _, a := range c.policy.Agents {
			if _, has := a.Overrides[name]; has {
				c.outcomesOf(name, a.Name, said)
			}
		}
	}
	c.use(outcome{plan: c.policy.Plan(asked("", "")), policy: c.policy.Defaults.UnknownTool}) // any other tool
	c.unnamedTools()
	c.warnUnknownTool()
	for _, t := range c.policy.Tools {
		c.warnIneffective(t)
	}
}

// offered reports whether some agent offers the tool to its model.
func (c *checker) offered(tool string) bool {
	return slices.ContainsFunc(c.policy.Agents, func(a approvers.Agent) bool { return a.Offers(tool) })
}

// outcomesOf reports the outcomes that nobody can approve. outcomesOf leaves out an outcome that only adds rules to a
// reported outcome.
func (c *checker) outcomesOf(tool, agent string, said []string) (reasons []string) {
	var refused [][]int
	for _, o := range c.outcomes(tool, agent) {
		if slices.ContainsFunc(refused, func(r []int) bool { return includes(o.rules, r) }) {
			continue
		}
		if o.plan.Verdict == approvers.Refuse {
			refused = append(refused, o.rules)
			reason := c.reason(o)
			if !slices.Contains(said, reason) {
				c.refused(o, reason)
			}
			reasons = append(reasons, reason)
			continue
		}
		c.use(o)
		if o.plan.Verdict == approvers.Ask {
			c.times(o)
			c.ceilings(o)
			c.alone(o)
		}
	}
	return reasons
}

// The method reports an outcome that is always refused. If one of the outcome's stages was already reported, the method
// reports nothing.
func (c *checker) refused(o outcome, reason string) {
	if slices.ContainsFunc(o.named(), func(s approvers.Stage) bool { return c.broken[o.tool+" "+config.StageName(s)] }) {
		return
	}
	if o.agent == "" && !slices.Contains(c.toolNames(), o.tool) {
		c.orphans = append(c.orphans, o)
		return
	}
	c.wrong(o.path(c.file), "nobody can approve "+o.subject()+": "+reason, c.remedy(o))
}

// unnamedTools warns about registered tools that the policy does not name and that nobody can approve.
func (c *checker) unnamedTools() {
	if len(c.orphans) == 0 {
		return
	}
	names := make([]string, len(c.orphans))
	for i, o := range c.orphans {
		names[i] = o.tool
	}
	first := c.orphans[0]
	c.warn("defaults.unknown_tool", fmt.Sprintf("calls to %s are always refused, because the policy does not name them: they count as %s risk, and %s",
		strings.Join(names, ", "), first.plan.Risk, c.reason(first)), "add them to tools, or an approver with max_risk: "+first.plan.Risk.String()+` and can_approve: ["*"]`)
}

// reason returns why an outcome is refused.
func (c *checker) reason(o outcome) string {
	if len(o.named()) > 0 {
		return o.plan.Why[len(o.plan.Why)-1]
	}
	return fmt.Sprintf("no approver with a max_risk of %s or above has it in can_approve", o.plan.Risk)
}

// remedy returns a hint. If the policy names stages for the call, the hint says to change them or their approvers.
// Otherwise the hint lists the approvers who have the tool in can_approve, but a max_risk that is too low, and those
// whose max_risk is high enough, but who lack the tool. If there are none, the hint says which approver to add.
func (c *checker) remedy(o outcome) string {
	if len(o.named()) > 0 {
		return "change the stages, or the approvers that they name"
	}
	var near []string
	for _, r := range c.policy.Approvers {
		switch {
		case r.Covers(o.tool) && r.MaxRisk < o.plan.Risk:
			near = append(near, fmt.Sprintf("%s has it, but its max_risk is %s", r.Name, r.MaxRisk))
		case !r.Covers(o.tool) && r.MaxRisk >= o.plan.Risk:
			near = append(near, fmt.Sprintf("%s may allow %s calls, but its can_approve does not have it", r.Name, o.plan.Risk))
		}
	}
	if len(near) == 0 {
		return fmt.Sprintf("add an approver with max_risk: %s and can_approve: [%s]", o.plan.Risk, o.tool)
	}
	return strings.Join(near, "; ")
}
