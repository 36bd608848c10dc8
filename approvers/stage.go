package approvers

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// sameRoles reports whether two stages have the same group, and the same roles in any order.
func (s Stage) sameRoles(o Stage) bool {
	if s.Group != o.Group || len(s.Or) != len(o.Or) {
		return false
	}
	if len(s.Or) == 0 {
		return s.Approver == o.Approver
	}
	roles := s.Roles()
	return !slices.ContainsFunc(o.Roles(), func(name string) bool { return !slices.Contains(roles, name) })
}

// AsksLike reports whether two stages name the same group, and the same roles in the same order.
func (s Stage) AsksLike(o Stage) bool {
	return s.Group == o.Group && slices.Equal(s.Roles(), o.Roles())
}

// Equal reports whether two stages have the same requirements.
func (s Stage) Equal(o Stage) bool {
	return s.sameRoles(o) && s.Quorum == o.Quorum && max(s.Rejects, 1) == max(o.Rejects, 1) &&
		s.ExpiresAfter == o.ExpiresAfter && s.EscalateAfter == o.EscalateAfter
}

// String returns the stage in the form that fixtures and the audit use: "team-lead", "2 x finance-director", "a or b in
// @group".
func (s Stage) String() string {
	text := strings.Join(s.Roles(), " or ")
	if s.Group != "" {
		text += " in @" + s.Group
	}
	if s.Quorum > 1 {
		text = fmt.Sprintf("%d x %s", s.Quorum, text)
	}
	return text
}

// StageRoles returns the roles of each stage in a text that Plan.StageFacts wrote.
func StageRoles(facts string) (roles [][]string) {
	if facts == "" {
		return nil
	}
	for stage := range strings.SplitSeq(facts, ",") {
		stage, _, _ = strings.Cut(stage, " in @")
		if quorum, rest, found := strings.Cut(stage, " x "); found && strings.Trim(quorum, "0123456789") == "" {
			stage = rest
		}
		roles = append(roles, strings.Split(stage, " or "))
	}
	return roles
}

// Title returns the stage's name for people: its roles' titles, and the required group.
func (s Stage) Title(p *Policy) string {
	const most = 3
	roles := s.Roles()
	titles := make([]string, 0, most+1)
	for _, name := range roles[:min(most, len(roles))] {
		if r, ok := p.Role(name); ok && r.Title != "" {
			name = r.Title
		}
		titles = append(titles, name)
	}
	if more := len(roles) - most; more > 0 {
		titles = append(titles, fmt.Sprintf("%d others", more))
	}
	title := strings.Join(titles, " or ")
	if s.Group == "" {
		return title
	}
	return "@" + s.Group + " (" + title + ")"
}

// unionStages returns the stages of a in their order, and then the stages that only b has. For a stage in both lists,
// the result has the stricter values of the two. unionStages never merges two stages of the same list.
func unionStages(a, b []Stage) []Stage {
	out := slices.Clone(a)
	both := make([]bool, len(a))
	for _, s := range b {
		i := 0
		for i < len(a) && (both[i] || !out[i].sameRoles(s)) {
			i++
		}
		if i == len(a) {
			out = append(out, s)
			continue
		}
		both[i] = true
		out[i].Quorum = max(out[i].Quorum, s.Quorum)
		out[i].Rejects = min(max(out[i].Rejects, 1), max(s.Rejects, 1))
		out[i].ExpiresAfter = sooner(out[i].ExpiresAfter, s.ExpiresAfter)
		out[i].EscalateAfter = sooner(out[i].EscalateAfter, s.EscalateAfter)
	}
	return out
}

// sooner returns the shorter of two durations. A zero duration means that no duration is set. If one duration is
// zero, sooner returns the other duration.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// StageList names the plan's stages in order, for people.
func (plan Plan) StageList(p *Policy) string { return stageList(p, plan.Stages) }

// stageList writes stages as people read them.
func stageList(p *Policy, stages []Stage) string {
	parts := make([]string, len(stages))
	for i, s := range stages {
		parts[i] = s.Title(p)
		if s.Quorum > 1 {
			parts[i] = fmt.Sprintf("%d × %s", s.Quorum, parts[i])
		}
	}
	return strings.Join(parts, ", then ")
}

// people returns the user ids of the roles' members who are not barred. The parameter "most" is the maximum number of
// ids. If the policy names members by user group or e-mail address, open is true: only Slack can tell who these members
// are, so the caller assumes that there are enough of them. After people has found that many ids, it does not look for
// such members.
func (p *Policy) people(roles []string, most int, barred []PersonID) (ids []string, open bool) {
	for _, name := range roles {
		r, _ := p.Role(name)
		for _, m := range r.Members {
			if len(ids) == most {
				return ids, false
			}
			if m.Kind != MemberUser {
				return nil, true
			}
			if !slices.ContainsFunc(barred, func(b PersonID) bool { return b.User() == m.Value }) && !slices.Contains(ids, m.Value) {
				ids = append(ids, m.Value)
			}
		}
	}
	return ids, false
}

// canFill reports whether the roles have n different people who are not barred. If only Slack can tell who the members
// are, canFill returns true.
func (p *Policy) canFill(roles []string, n int, barred []PersonID) bool {
	ids, open := p.people(roles, n, barred)
	return open || len(ids) >= n
}

// distinct reports whether all stages can be passed by different people. No person counts twice. The function assigns
// one person to each place of each quorum (bipartite matching by augmenting paths).
func (p *Policy) distinct(stages []Stage, barred []PersonID) bool {
	taken := map[string]int{} // person → place
	var able [][]string       // place → people
	var find func(place int, seen map[string]bool) bool
	find = func(place int, seen map[string]bool) bool {
		for _, id := range able[place] {
			if seen[id] {
				continue
			}
			seen[id] = true
			if other, busy := taken[id]; !busy || find(other, seen) {
				taken[id] = place
				return true
			}
		}
		return false
	}
	places := 0 // the number of places; if a place has at least this number of candidates, one of them is always free
	for _, s := range stages {
		places += s.Quorum
	}
	for _, s := range stages {
		ids, open := p.people(s.Roles(), places, barred)
		if open || s.Group != "" {
			continue
		}
		for range s.Quorum {
			able = append(able, ids)
			if !find(len(able)-1, map[string]bool{}) {
				return false
			}
		}
	}
	return true
}
