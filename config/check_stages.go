package config

import (
	"fmt"
	"strings"

	"countersign/approvers"
)

// stages checks each stage that the policy names by itself.
func (c *checker) stages() {
	c.stageList("defaults.unknown_tool.stages", "", c.policy.Defaults.UnknownTool.Stages)
	for _, t := range c.policy.Tools {
		c.stageList("tools."+t.Name+".stages", t.Name, t.Stages)
		for i, r := range t.Rules {
			c.stageList(fmt.Sprintf("tools.%s.rules[%d].stages", t.Name, i), t.Name, r.Stages)
		}
	}
}

func (c *checker) stageList(path, tool string, stages []approvers.Stage) {
	for i, s := range stages {
		at := fmt.Sprintf("%s[%d]", path, i)
		role, ok := c.policy.Role(s.Approver)
		people, exact := headcount(role)
		switch {
		case !ok:
			c.wrong(at, quote(s.Approver)+" is no approver", orHint(didYouMean(s.Approver, c.roleNames()), "the approvers are "+strings.Join(c.roleNames(), ", ")))
		case tool != "" && !role.Covers(tool):
			c.wrong(at, fmt.Sprintf("%s may not approve %s, so this stage could never be passed", role.Title, tool), fmt.Sprintf("add %s to can_approve of %s", tool, role.Name))
		case exact && s.Quorum > people && people > 0:
			c.wrong(at, fmt.Sprintf("asks for %d people, and %s has %d", s.Quorum, role.Title, people), "lower the quorum, or add members")
		default:
			continue
		}
		c.broken[tool+" "+s.Approver] = true
	}
}

// headcount is how many people a role has. It is exact where all of them are named by their id: the members of groups and the owners of
// addresses are known to Slack alone.
func headcount(r approvers.Role) (n int, exact bool) {
	people := map[string]bool{}
	for _, m := range r.Members {
		if m.Kind != approvers.MemberUser {
			return 0, false
		}
		people[m.Value] = true
	}
	return len(people), true
}

// distinct reports stages that could not all be passed because one person counts once: the same few people are needed in several. Leads
// count too, as they may decide in place of whom they were told of.
func (c *checker) distinct(o outcome) {
	var seats [][]string // who could sit in each
	for i, s := range o.plan.Stages {
		role, _ := c.policy.Role(s.Approver)
		roles := append([]approvers.Role{role}, c.able(c.leadsOf(role), o, i == len(o.plan.Stages)-1)...)
		var people []string
		for _, r := range roles {
			if _, exact := headcount(r); !exact {
				people = nil
				break
			}
			for _, m := range r.Members {
				people = append(people, m.Value)
			}
		}
		if people == nil {
			continue // somebody will be there whom only Slack knows
		}
		for range s.Quorum {
			seats = append(seats, people)
		}
	}
	same := o.tool + fmt.Sprint(o.plan.Stages) // an agent's override need not be blamed for the tool's own stages
	if filled := seat(seats); filled < len(seats) && !c.crowded[same] {
		c.crowded[same] = true
		c.wrong(o.path(c.file), fmt.Sprintf("the stages need %d different people, and their members are only enough for %d: one person counts once", len(seats), filled),
			"add members, or lower a quorum")
	}
}

// seat finds how many of the seats can be filled by different people.
func seat(seats [][]string) int {
	holder := map[string]int{} // by person: the seat
	var place func(seat int, tried map[string]bool) bool
	place = func(seat int, tried map[string]bool) bool {
		for _, person := range seats[seat] {
			if tried[person] {
				continue
			}
			tried[person] = true
			other, taken := holder[person]
			if !taken || place(other, tried) {
				holder[person] = seat
				return true
			}
		}
		return false
	}
	filled := 0
	for i := range seats {
		if place(i, map[string]bool{}) {
			filled++
		}
	}
	return filled
}
