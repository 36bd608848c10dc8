package config

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
)

// tools checks what each tool's calls come to, for agents in general and for each that overrides something.
func (c *checker) tools() {
	for _, name := range c.allTools() {
		var said []string // what was reported of the tool, so that an agent's override is not blamed for it again
		if slices.Contains(c.toolNames(), name) || c.offered(name) {
			said = c.outcomesOf(name, "", nil)
		}
		for _, a := range c.policy.Agents {
			if _, has := a.Overrides[name]; has {
				c.outcomesOf(name, a.Name, said)
			}
		}
	}
	c.use(outcome{plan: c.policy.Plan(approvers.Call{}), policy: c.policy.Defaults.UnknownTool}) // a tool that nobody thought of
	c.unnamedTools()
	c.unknownSense()
	for _, t := range c.policy.Tools {
		c.sense(t)
	}
}

// offered reports whether some agent's model is offered the tool.
func (c *checker) offered(tool string) bool {
	return slices.ContainsFunc(c.policy.Agents, func(a approvers.Agent) bool { return a.Offers(tool) })
}

// outcomesOf reports the outcomes that nobody could ever allow. One that only adds rules to such an outcome is no news.
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
			c.distinct(o)
			c.silence(o)
		}
	}
	return reasons
}

// refused reports an outcome that is always refused, unless a stage of it was reported already.
func (c *checker) refused(o outcome, reason string) {
	if slices.ContainsFunc(o.named(), func(role string) bool { return c.broken[o.tool+" "+role] }) {
		return
	}
	if o.agent == "" && !slices.Contains(c.toolNames(), o.tool) {
		c.orphans = append(c.orphans, o)
		return
	}
	subject := "nobody can approve " + o.tool
	switch when := o.when(); {
	case o.limited:
		subject += " " + when
	case when != "":
		subject += " when " + when
	}
	c.wrong(o.path(c.file), subject+": "+reason, c.remedy(o))
}

// unnamedTools warns of the registered tools that the policy does not name and that nobody could approve.
func (c *checker) unnamedTools() {
	if len(c.orphans) == 0 {
		return
	}
	names := make([]string, len(c.orphans))
	for i, o := range c.orphans {
		names[i] = o.tool
	}
	first := c.orphans[0]
	c.odd("defaults.unknown_tool", fmt.Sprintf("calls of %s are always refused, because the policy does not name them: they count as %s risk, and %s",
		strings.Join(names, ", "), first.plan.Risk, c.reason(first)), "add them to tools, or an approver with max_risk: "+first.plan.Risk.String()+` and can_approve: ["*"]`)
}

// reason says why an outcome is refused.
func (c *checker) reason(o outcome) string {
	if len(o.named()) > 0 {
		return o.plan.Why[len(o.plan.Why)-1]
	}
	return fmt.Sprintf("no approver with a max_risk of %s or above has it in can_approve", o.plan.Risk)
}

// remedy says which approver comes nearest, and what it lacks.
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

// use notes which approvers a call can come to, and which of them would have nobody to pass it on to.
func (c *checker) use(o outcome) {
	if o.plan.Verdict != approvers.Ask {
		return
	}
	for i, s := range o.plan.Stages {
		last := i == len(o.plan.Stages)-1
		role, _ := c.policy.Role(s.Approver)
		c.used[role.Name] = true
		chain := c.leadsOf(role)
		able := c.able(chain, o, last)
		for _, lead := range able {
			c.used[lead.Name] = true
		}
		if len(chain) > 0 && len(able) == 0 && o.tool != "" {
			c.escalates[role.Name] = append(c.escalates[role.Name], fmt.Sprintf("%s at %s risk", o.tool, o.plan.Risk))
		}
	}
	if !o.plan.Routed {
		return
	}
	for _, r := range c.policy.Approvers { // whoever else could be routed to, where the first is the requester
		if r.Covers(o.tool) && r.MaxRisk >= o.plan.Risk {
			c.used[r.Name] = true
		}
	}
}

// leadsOf follows a role's leads to the top.
func (c *checker) leadsOf(role approvers.Role) []approvers.Role {
	var out []approvers.Role
	for ok := true; ok && role.Lead != ""; {
		role, ok = c.policy.Role(role.Lead)
		if !ok || slices.ContainsFunc(out, func(o approvers.Role) bool { return o.Name == role.Name }) {
			return out
		}
		out = append(out, role)
	}
	return out
}

// able are those of the roles that may decide the outcome's stage, as escalation sees it.
func (c *checker) able(roles []approvers.Role, o outcome, last bool) []approvers.Role {
	var out []approvers.Role
	for _, r := range roles {
		if r.Covers(o.tool) && (!last || r.MaxRisk >= o.plan.Risk) {
			out = append(out, r)
		}
	}
	return out
}

// silence warns where a request would expire before anybody is told that it waits.
func (c *checker) silence(o outcome) {
	if len(c.escalating(o)) == 0 || o.policy.EscalateAfter < o.policy.ExpiresAfter {
		return
	}
	path := o.path(c.file)
	for _, p := range []string{"tools." + o.tool + ".escalate_after", "tools." + o.tool + ".expires_after", "defaults.escalate_after", "defaults.expires_after"} {
		if _, ok := c.file.marks[p]; ok {
			path = p
			break
		}
	}
	p := c.file.problem(Warning, path, fmt.Sprintf("no lead is ever told: a request expires after %s, and a lead would be told after %s", span(o.policy.ExpiresAfter), span(o.policy.EscalateAfter)),
		"let escalate_after be shorter than expires_after")
	if !slices.Contains(c.problems, p) {
		c.problems = append(c.problems, p)
	}
}

// escalating are the stages that have a lead who could be told.
func (c *checker) escalating(o outcome) []approvers.Stage {
	var out []approvers.Stage
	for i, s := range o.plan.Stages {
		role, _ := c.policy.Role(s.Approver)
		if len(c.able(c.leadsOf(role), o, i == len(o.plan.Stages)-1)) > 0 {
			out = append(out, s)
		}
	}
	return out
}
