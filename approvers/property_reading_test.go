package approvers_test

import (
	"cmp"
	"slices"
	"time"

	"countersign/approvers"
)

// reading holds the requirements of a call under a policy, according to docs/policy.md and docs/adr (3 and 4).
// reading does not use the code under test.
type reading struct {
	verdict approvers.Verdict
	risk    approvers.Risk
	stages  []approvers.Stage
	routed  bool // the stage was chosen by ceiling
	asked   []approvers.PersonID
	selfOK  bool
	blind   bool
}

// settings returns the policy's settings of a tool for an agent's calls.
func settings(p *approvers.Policy, tool, agent string) approvers.ToolPolicy {
	t := p.Defaults.UnknownTool
	if i := slices.IndexFunc(p.Tools, func(o approvers.ToolPolicy) bool { return o.Name == tool }); i >= 0 {
		t = p.Tools[i]
	}
	protected := slices.Contains(p.NeverLoosen, tool) || slices.Contains(p.NeverLoosen, "*")
	for _, a := range p.Agents {
		if o, ok := a.Overrides[tool]; ok && a.Name == agent {
			t = overridden(t, o, protected)
		}
	}
	t.ExpiresAfter = cmp.Or(t.ExpiresAfter, p.Defaults.ExpiresAfter)
	t.EscalateAfter = cmp.Or(t.EscalateAfter, p.Defaults.EscalateAfter)
	t.RunWithin = cmp.Or(t.RunWithin, p.Defaults.RunWithin)
	t.RemindAfter = cmp.Or(t.RemindAfter, p.Defaults.RemindAfter)
	t.Reminders = cmp.Or(t.Reminders, p.Defaults.Reminders)
	t.Repeat = cmp.Or(t.Repeat, p.Defaults.Repeat)
	t.OnExpiry = cmp.Or(t.OnExpiry, p.Defaults.OnExpiry)
	if p.Mode == approvers.Observe {
		t.Mode = approvers.Observe
	}
	return t
}

// keepsRouted reports whether the routed role decides a tool's calls even if rules or an override name stages.
func keepsRouted(p *approvers.Policy, tool string) bool {
	t := p.Defaults.UnknownTool
	if i := slices.IndexFunc(p.Tools, func(o approvers.ToolPolicy) bool { return o.Name == tool }); i >= 0 {
		t = p.Tools[i]
	}
	return len(t.Stages) == 0 && (slices.Contains(p.NeverLoosen, tool) || slices.Contains(p.NeverLoosen, "*"))
}

// overridden applies an agent's override to the tool's settings. If the tool is protected, only the override's stricter
// values apply.
func overridden(t approvers.ToolPolicy, o approvers.Override, protected bool) approvers.ToolPolicy {
	if o.Risk != 0 && (!protected || o.Risk > t.Risk) {
		t.Risk = o.Risk
	}
	if o.Confirm != nil && (!protected || *o.Confirm) {
		t.Confirm = *o.Confirm
	}
	if o.Mode != nil && (!protected || *o.Mode == approvers.Observe) {
		t.Mode = *o.Mode
	}
	if o.Glass != nil && (!protected || !*o.Glass) {
		t.BreakGlass = *o.Glass
	}
	switch {
	case len(o.Stages) > 0 && protected:
		t.Stages = together(t.Stages, o.Stages)
	case len(o.Stages) > 0:
		t.Stages = o.Stages
	}
	return t
}

// read determines the requirements of a call.
func read(p *approvers.Policy, c approvers.Call) reading {
	out, waits, named := gather(p, c)
	if waits {
		out = out.asking(p, c.Tool, named)
	}
	if t := settings(p, c.Tool, c.Facts.Agent); t.Mode == approvers.Observe && c.Effect != approvers.ReadOnly {
		out.verdict = approvers.Observed
	}
	return out
}

// gather combines the tool's policy with all rules that match a call. The result says whether the call waits, and for
// which stages.
func gather(p *approvers.Policy, c approvers.Call) (out reading, waits bool, named []approvers.Stage) {
	t := settings(p, c.Tool, c.Facts.Agent)
	out = reading{verdict: approvers.Auto, risk: t.Risk, asked: slices.Clone(c.Requesters), selfOK: t.SelfApproval, blind: t.Blind}
	waits, named = t.Confirm, t.Stages
	for _, rule := range t.Rules {
		if matches, err := rule.When.Eval(c.Facts); !matches && err == nil {
			continue
		}
		out.risk = max(out.risk, rule.Risk)
		waits = waits || rule.Confirm || len(rule.Stages) > 0
		named = together(named, rule.Stages)
	}
	if out.risk >= approvers.High {
		out.asked = append(out.asked, c.Authors...)
	}
	return out, waits, named
}

// asking determines the stages, with the routed role if the role decides in any case.
func (n reading) asking(p *approvers.Policy, tool string, named []approvers.Stage) reading {
	routed := n.waitingFor(p, tool, nil)
	switch {
	case len(named) == 0, keepsRouted(p, tool) && routed.verdict == approvers.Refuse:
		return routed
	case keepsRouted(p, tool):
		role := []string{routed.stages[0].Approver}
		if !slices.ContainsFunc(named, func(s approvers.Stage) bool { return slices.Equal(rolesOf(s), role) }) {
			named = append(slices.Clone(routed.stages), named...)
		}
	}
	return n.waitingFor(p, tool, named)
}

// waitingFor determines the stages. The stages are the named stages. If no stages are named, the only stage is for
// the role with the lowest sufficient ceiling.
func (n reading) waitingFor(p *approvers.Policy, tool string, named []approvers.Stage) reading {
	n.verdict, n.stages, n.routed = approvers.Ask, nil, len(named) == 0
	for i, s := range named {
		if s.Approver == "" {
			s = groupAlone(p, tool, s, i == len(named)-1, n.risk)
		}
		n.stages = append(n.stages, s)
	}
	if n.routed {
		for _, role := range byCeiling(p, tool) {
			if s := (approvers.Stage{Approver: role.Name, Quorum: 1}); role.MaxRisk >= n.risk && n.possible(p, tool, []approvers.Stage{s}) {
				n.stages = []approvers.Stage{s}
				break
			}
		}
	}
	if len(n.stages) == 0 || !n.possible(p, tool, n.stages) {
		n.verdict, n.stages = approvers.Refuse, nil
	}
	return n
}

// byCeiling lists the roles that have the tool, by rising ceiling. Roles with the same ceiling are in the order of the
// file.
func byCeiling(p *approvers.Policy, tool string) []approvers.Role {
	roles := slices.DeleteFunc(slices.Clone(p.Approvers), func(r approvers.Role) bool { return !lists(r, tool) })
	slices.SortStableFunc(roles, func(a, b approvers.Role) int { return cmp.Compare(a.MaxRisk, b.MaxRisk) })
	return roles
}

// If a stage names only a user group, groupAlone adds the roles under which the group's members decide.
func groupAlone(p *approvers.Policy, tool string, s approvers.Stage, last bool, risk approvers.Risk) approvers.Stage {
	s.Or = nil
	for _, role := range byCeiling(p, tool) {
		switch {
		case last && role.MaxRisk < risk:
		case s.Approver == "":
			s.Approver = role.Name
		default:
			s.Or = append(s.Or, role.Name)
		}
	}
	return s
}

func lists(r approvers.Role, tool string) bool {
	return slices.Contains(r.CanApprove, "*") || slices.Contains(r.CanApprove, tool)
}

func rolesOf(s approvers.Stage) []string { return append([]string{s.Approver}, s.Or...) }

// alike reports whether two stages are for the same people.
func alike(a, b approvers.Stage) bool {
	return a.Group == b.Group && slices.Equal(slices.Sorted(slices.Values(rolesOf(a))), slices.Sorted(slices.Values(rolesOf(b))))
}

// together returns the union of stages in their order. Two equal stages become one stage with the larger quorum, the
// smaller number of rejections and the shorter times.
func together(a, b []approvers.Stage) []approvers.Stage {
	out, left := slices.Clone(a), slices.Clone(b)
	for i := range out {
		n := slices.IndexFunc(left, func(s approvers.Stage) bool { return alike(out[i], s) })
		if n < 0 {
			continue
		}
		o, s := &out[i], left[n]
		left = slices.Delete(left, n, n+1)
		o.Quorum, o.Rejects = max(o.Quorum, s.Quorum), min(max(o.Rejects, 1), max(s.Rejects, 1))
		o.ExpiresAfter, o.EscalateAfter = shorter(o.ExpiresAfter, s.ExpiresAfter), shorter(o.EscalateAfter, s.EscalateAfter)
	}
	return append(out, left...)
}

// shorter returns the shorter of two stages' times. Zero means that a stage sets no time.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// barred lists the people who may not decide.
func (n reading) barred() []approvers.PersonID {
	if n.selfOK {
		return nil
	}
	return n.asked
}

// The method reports whether all stages could be passed if each person counts once. If a member is a user group or an
// e-mail address, only Slack can tell which people are meant. So a role with such a member counts as a role that
// could contain anybody.
func (n reading) possible(p *approvers.Policy, tool string, stages []approvers.Stage) bool {
	var places [][]string
	for i, s := range stages {
		var people []string
		able, anybody := false, s.Group != ""
		for _, role := range p.Approvers {
			if !slices.Contains(rolesOf(s), role.Name) || !lists(role, tool) || i == len(stages)-1 && role.MaxRisk < n.risk {
				continue
			}
			able = true
			for _, m := range role.Members {
				if m.Kind != approvers.MemberUser {
					anybody = true
				} else if !slices.Contains(n.barred(), approvers.Who("T1", m.Value)) {
					people = append(people, m.Value)
				}
			}
		}
		if !able {
			return false
		}
		for range s.Quorum {
			if !anybody {
				places = append(places, slices.Compact(slices.Sorted(slices.Values(people))))
			}
		}
	}
	return seated(places, map[string]bool{})
}

// seated reports whether different people can be assigned to all places. seated tries every assignment.
func seated(places [][]string, taken map[string]bool) bool {
	if len(places) == 0 {
		return true
	}
	for _, who := range places[0] {
		if taken[who] {
			continue
		}
		taken[who] = true
		if seated(places[1:], taken) {
			return true
		}
		delete(taken, who)
	}
	return false
}

// The method combines two readings. The result has the requirements of a call whose policy changed while the call
// waited.
func (n reading) and(p *approvers.Policy, tool string, now reading) reading {
	out := reading{
		verdict: n.verdict, risk: max(n.risk, now.risk), selfOK: n.selfOK && now.selfOK, blind: n.blind && now.blind,
		asked: append(slices.Clone(n.asked), now.asked...), stages: together(n.stages, now.stages),
		routed: n.routed && (now.routed || len(now.stages) == 0),
	}
	if out.routed { // the role with the highest ceiling is asked last, where ceilings apply
		slices.SortStableFunc(out.stages, func(a, b approvers.Stage) int { return cmp.Compare(ceiling(p, a.Approver), ceiling(p, b.Approver)) })
	}
	for i := len(out.stages) - 1; i >= 0; i-- { // the last stage whose ceiling suffices is asked last
		s := out.stages[i]
		if slices.ContainsFunc(byCeiling(p, tool), func(r approvers.Role) bool { return slices.Contains(rolesOf(s), r.Name) && r.MaxRisk >= out.risk }) {
			out.stages = append(slices.Delete(slices.Clone(out.stages), i, i+1), s)
			break
		}
	}
	if now.verdict == approvers.Refuse || now.verdict == approvers.Observed || !out.possible(p, tool, out.stages) {
		out.verdict = approvers.Refuse
	}
	return out
}

func ceiling(p *approvers.Policy, role string) approvers.Risk {
	for _, r := range p.Approvers {
		if r.Name == role {
			return r.MaxRisk
		}
	}
	return 0
}

// sameStages reports whether two lists name the same stages in the same order.
func sameStages(a, b []approvers.Stage) bool {
	return slices.EqualFunc(a, b, func(a, b approvers.Stage) bool {
		return alike(a, b) && a.Quorum == b.Quorum && max(a.Rejects, 1) == max(b.Rejects, 1) && a.ExpiresAfter == b.ExpiresAfter && a.EscalateAfter == b.EscalateAfter
	})
}
