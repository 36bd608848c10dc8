package check

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/yamldoc"
)

// roles checks the members and the lead of each approver.
func (c *checker) roles() {
	for _, r := range c.policy.Approvers {
		path := "approvers." + r.Name
		if len(r.Members) == 0 {
			c.wrong(path+".members", "has nobody in it, so nobody could decide as "+r.Title, "add at least one member")
		}
		if len(r.Members) > 0 && !slices.ContainsFunc(r.Members, func(m approvers.Member) bool { return m.Kind != approvers.MemberEmail || c.policy.CountsEmail(m.Value) }) {
			c.wrong(path+".members", "names people by addresses that don't count, so nobody could decide as "+r.Title, "add email_domains at the top level, or name the user ids (U…)")
		}
		for i, m := range r.Members {
			if m.Kind == approvers.MemberEmail && !c.policy.CountsEmail(m.Value) {
				_, domain, _ := strings.Cut(m.Value, "@")
				at := fmt.Sprintf("%s.members[%d]", path, i)
				c.warn(at, memberText(m)+" does not count: anybody who gets that address in Slack would be "+r.Title, "name the user id (U…), or trust the addresses of that domain with email_domains: ["+domain+"] at the top level")
			}
			if slices.Contains(r.Members[:i], m) {
				c.wrong(fmt.Sprintf("%s.members[%d]", path, i), memberText(m)+" is named twice", "one person counts once: remove one of them")
			}
		}
		if len(r.CanApprove) == 0 && !c.pauses(r.Name) {
			c.warn(path+".can_approve", "is empty, so no call ever comes to "+r.Title, `name tools, or "*" for every tool`)
		}
		c.lead(r)
		if r.Lead == "" && r.Hours != nil && r.Hours.Outside == approvers.OutsideEscalates {
			c.warn(path+".hours.outside", "outside of these hours nobody is told: "+r.Title+" has no lead, so calls wait", "add a lead, or write outside: wait")
		}
	}
}

func memberText(m approvers.Member) string {
	if m.Kind == approvers.MemberGroup {
		return config.GroupText(m.Value)
	}
	return m.Value
}

// lead checks that the lead exists and that the chain of leads ends.
func (c *checker) lead(r approvers.Role) {
	path := "approvers." + r.Name + ".lead"
	if r.Lead == "" {
		return
	}
	if _, ok := c.policy.Role(r.Lead); !ok {
		c.wrong(path, yamldoc.Quote(r.Lead)+" is not an approver", yamldoc.OrHint(yamldoc.DidYouMean(r.Lead, c.roleNames()), "the approvers are "+strings.Join(c.roleNames(), ", ")))
		return
	}
	if r.Lead == r.Name {
		c.wrong(path, r.Name+" can't be its own lead", "name another approver, or leave lead out")
		return
	}
	way := []string{r.Name}
	for at := r; at.Lead != ""; {
		if at.Lead == r.Name {
			// A circle of leads is reported once, at its first approver in the file.
			if c.firstOf(way) == r.Name {
				c.wrong(path, "the leads go round in a circle: "+strings.Join(append(way, r.Name), " → "), "take the lead from one of them")
			}
			return
		}
		next, ok := c.policy.Role(at.Lead)
		if !ok || slices.Contains(way, next.Name) {
			return
		}
		way, at = append(way, next.Name), next
	}
}

// firstOf returns the role among the given names that comes first in the file.
func (c *checker) firstOf(names []string) string {
	for _, r := range c.policy.Approvers {
		if slices.Contains(names, r.Name) {
			return r.Name
		}
	}
	return ""
}

// The method reports approvers who have leads, but have calls that none of these leads may decide.
func (c *checker) leads() {
	for _, r := range c.policy.Approvers {
		calls := c.escalates[r.Name]
		if len(calls) == 0 {
			continue
		}
		lead, _ := c.policy.Role(r.Lead)
		c.wrong("approvers."+r.Name+".lead",
			fmt.Sprintf("%s can't approve %s, so nobody is told when %s is silent", lead.Title, strings.Join(yamldoc.SortedUnique(calls), ", "), r.Title),
			fmt.Sprintf("add it to can_approve of %s and raise max_risk where needed, or name another lead", lead.Name))
	}
}

// idle warns about approvers whom no call can reach by routing, by a stage, or as a lead. If the file has errors,
// idle reports nothing, because one of these errors is probably the cause.
func (c *checker) idle() {
	if len(c.problems.Errors()) > 0 {
		return
	}
	for _, r := range c.policy.Approvers {
		if !c.used[r.Name] && len(r.CanApprove) > 0 && !c.pauses(r.Name) {
			c.warn("approvers."+r.Name, "no call can come to "+r.Title+": nothing that it may approve ever waits at its level",
				"is a tool, a stage or a lead missing that should name it?")
		}
	}
}

// pausers reports names in paused_by that are not approvers, or are listed twice.
func (c *checker) pausers() {
	for i, name := range c.policy.PausedBy {
		at := fmt.Sprintf("paused_by[%d]", i)
		switch _, ok := c.policy.Role(name); {
		case slices.Contains(c.policy.PausedBy[:i], name):
			c.warn(at, name+" is named twice", "remove one of them")
		case !ok:
			c.wrong(at, yamldoc.Quote(name)+" is not an approver", yamldoc.OrHint(yamldoc.DidYouMean(name, c.roleNames()), "the approvers are "+strings.Join(c.roleNames(), ", ")))
		}
	}
}

// pauses reports whether a role's people may pause everything.
func (c *checker) pauses(role string) bool { return slices.Contains(c.policy.PausedBy, role) }
