package check

import (
	"fmt"
	"slices"

	"countersign/approvers"
)

// The method records the approvers to whom a call can be routed. If an approver has leads, but none of these leads may
// decide the call, the method records this call, too.
func (c *checker) use(o outcome) {
	if o.plan.Verdict != approvers.Ask {
		return
	}
	for i, s := range o.plan.Stages {
		able := c.leadsAt(o, i)
		for _, lead := range able {
			c.used[lead.Name] = true
		}
		for _, role := range c.rolesOf(s) {
			c.used[role.Name] = true
			if len(able) == 0 && len(c.leadsOf(role, s)) > 0 && o.tool != "" {
				c.escalates[role.Name] = append(c.escalates[role.Name], fmt.Sprintf("%s at %s risk", o.tool, o.plan.Risk))
			}
		}
	}
	if !o.plan.Routed {
		return
	}
	for _, r := range c.policy.Approvers { // any approver can be asked, because the first one may be the requester
		if r.Covers(o.tool) && r.MaxRisk >= o.plan.Risk {
			c.used[r.Name] = true
		}
	}
}

// alone warns about stages that only one person can decide.
func (c *checker) alone(o outcome) {
	for i, s := range o.plan.Stages {
		roles := c.rolesOf(s)
		people, exact := headcount(roles)
		if !exact || people != 1 || s.Group != "" || len(c.leadsAt(o, i)) > 0 {
			continue
		}
		c.warnOnce("approvers."+roles[0].Name+".members",
			fmt.Sprintf("only %s can decide as %s, and no lead can step in: while they are away, or if they ask for a call themselves, it stays undecided",
				memberText(roles[0].Members[0]), roles[0].Title), "add members, or a lead")
	}
}

// rolesOf returns the roles of a stage that exist in the policy.
func (c *checker) rolesOf(s approvers.Stage) []approvers.Role {
	var out []approvers.Role
	for _, name := range s.Roles() {
		if role, ok := c.policy.Role(name); ok {
			out = append(out, role)
		}
	}
	return out
}

// leadsOf returns a role's leads up to the top. The result leaves out the leads that the stage itself names.
func (c *checker) leadsOf(role approvers.Role, s approvers.Stage) []approvers.Role {
	var out []approvers.Role
	seen := []string{role.Name}
	for ok := true; ok && role.Lead != ""; {
		role, ok = c.policy.Role(role.Lead)
		if !ok || slices.Contains(seen, role.Name) {
			return out
		}
		seen = append(seen, role.Name)
		if !slices.Contains(s.Roles(), role.Name) {
			out = append(out, role)
		}
	}
	return out
}

// leadsAt returns the leads who may decide a stage of the outcome. The leads have the order in which they are
// notified while the stage is undecided.
func (c *checker) leadsAt(o outcome, stage int) []approvers.Role {
	var out []approvers.Role
	s := o.plan.Stages[stage]
	for _, role := range c.rolesOf(s) {
		for _, lead := range c.leadsOf(role, s) {
			able := lead.Covers(o.tool) && (stage < len(o.plan.Stages)-1 || lead.MaxRisk >= o.plan.Risk)
			if able && !slices.ContainsFunc(out, func(r approvers.Role) bool { return r.Name == lead.Name }) {
				out = append(out, lead)
			}
		}
	}
	return out
}
