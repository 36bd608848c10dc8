package check

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/yamldoc"
)

// stages checks each stage that the policy names.
func (c *checker) stages() { c.eachStageList(c.stageList) }

// eachStageList visits every list of stages in the policy.
func (c *checker) eachStageList(visit func(path, tool string, stages []approvers.Stage)) {
	visit("defaults.unknown_tool.stages", "", c.policy.Defaults.UnknownTool.Stages)
	for _, t := range c.policy.Tools {
		visit("tools."+t.Name+".stages", t.Name, t.Stages)
		for i, r := range t.Rules {
			visit(fmt.Sprintf("tools.%s.rules[%d].stages", t.Name, i), t.Name, r.Stages)
		}
	}
	for _, a := range c.policy.Agents {
		for tool, o := range a.Overrides {
			visit("agents."+a.Name+".overrides."+tool+".stages", tool, o.Stages)
		}
	}
}

// unknownRoles adds a problem for each missing role of a stage. The result named known is true if all roles exist.
func (c *checker) unknownRoles(at string, s approvers.Stage) (known bool) {
	known = true
	for i, name := range s.Roles() {
		if _, ok := c.policy.Role(name); !ok && name != "" {
			known = false
			c.wrong(stageRolePath(c.file, at, i), yamldoc.Quote(name)+" is not an approver",
				yamldoc.OrHint(yamldoc.DidYouMean(name, c.roleNames()), "the approvers are "+strings.Join(c.roleNames(), ", ")))
		}
	}
	return known
}

func (c *checker) stageList(path, tool string, stages []approvers.Stage) {
	for i, s := range stages {
		at := fmt.Sprintf("%s[%d]", path, i)
		if !c.stageRoles(at, tool, s) || !c.stagePeople(at, s) {
			c.broken[tool+" "+config.StageName(s)] = true
		}
	}
}

// stageRoles checks that the roles of a stage exist and may approve the tool. passable is true if all roles exist and
// at least one role may approve the tool.
func (c *checker) stageRoles(at, tool string, s approvers.Stage) (passable bool) {
	if s.Approver == "" {
		if tool != "" && !slices.ContainsFunc(c.policy.Approvers, func(r approvers.Role) bool { return r.Covers(tool) }) {
			c.wrong(at, fmt.Sprintf("no approver's can_approve has %s, so nobody of %s could pass this stage: a group's people decide by the roles that they hold", tool, config.GroupText(s.Group)),
				fmt.Sprintf("add an approver with members: [%q] and can_approve: [%s]", config.GroupText(s.Group), tool))
			return false
		}
		return true
	}
	var unfit []int
	known := c.unknownRoles(at, s)
	for i, name := range s.Roles() {
		if role, ok := c.policy.Role(name); ok && tool != "" && !role.Covers(tool) {
			unfit = append(unfit, i)
		}
	}
	for _, i := range unfit {
		role, _ := c.policy.Role(s.Roles()[i])
		hint := fmt.Sprintf("add %s to can_approve of %s", tool, role.Name)
		if len(unfit) < len(s.Roles()) {
			c.warn(stageRolePath(c.file, at, i), fmt.Sprintf("%s may not approve %s, so its people don't count at this stage", role.Title, tool), hint+", or take it out of approvers")
			continue
		}
		c.wrong(stageRolePath(c.file, at, i), fmt.Sprintf("%s may not approve %s, so this stage could never be passed", role.Title, tool), hint)
	}
	return known && len(unfit) < len(s.Roles())
}

// ceilings checks the roles of an outcome's last stage. ceilings warns about a role with a max_risk below the
// outcome's risk, if another role of the same stage may approve.
func (c *checker) ceilings(o outcome) {
	last := o.plan.Stages[len(o.plan.Stages)-1]
	at := c.stagePath(o, last)
	if len(last.Or) == 0 || at == "" {
		return
	}
	for i, name := range last.Roles() {
		role, _ := c.policy.Role(name)
		if path := stageRolePath(c.file, at, i); role.Covers(o.tool) && role.MaxRisk < o.plan.Risk && path != at {
			c.warnOnce(path, fmt.Sprintf("%s may allow up to %s risk, so its people don't count for %s, which is %s", role.Title, role.MaxRisk, o.subject(), o.plan.Risk),
				"raise max_risk of "+role.Name+", or name it at an earlier stage")
		}
	}
}

func stageRolePath(f *config.File, at string, i int) string {
	if path := fmt.Sprintf("%s.approvers[%d]", at, i); f.Document.Has(path) {
		return path
	}
	return at
}

// stagePeople checks that a stage has enough people, if the number of people is known. stagePeople returns false if
// the quorum can't be reached.
func (c *checker) stagePeople(at string, s approvers.Stage) bool {
	roles := c.rolesOf(s)
	people, exact := headcount(roles)
	if !exact || people == 0 || s.Group != "" {
		return true
	}
	title := s.Title(c.policy)
	if s.Quorum > people {
		c.wrong(at, fmt.Sprintf("asks for %d people, and %s has %d", s.Quorum, title, people), "lower the quorum, or add members")
		return false
	}
	switch enough := people - s.Quorum + 1; {
	case s.Rejects > people:
		c.wrong(at+".rejects", fmt.Sprintf("asks for %d rejections, and %s has %d, so nobody could ever reject it", s.Rejects, title, people), "lower rejects, or add members")
	case s.Rejects > enough:
		c.warn(at+".rejects", fmt.Sprintf("after %s the quorum of %d can't be reached any more, and the call would still wait: %s has %d", yamldoc.Count(enough, "rejection"), s.Quorum, title, people),
			fmt.Sprintf("write rejects: %d, or add members", enough))
	}
	return true
}

// headcount returns the number of different people in the roles. The count is exact only if all members are named by
// user id. Only Slack can tell who the members of groups and the owners of e-mail addresses are.
func headcount(roles []approvers.Role) (n int, exact bool) {
	people := map[string]bool{}
	for _, r := range roles {
		for _, m := range r.Members {
			if m.Kind != approvers.MemberUser {
				return 0, false
			}
			people[m.Value] = true
		}
	}
	return len(people), true
}
