package approvers_test

import (
	"slices"

	"countersign/approvers"
)

// decisionOracle is an independent model of a request. decisionOracle records people's actions, and the request's
// requirements according to docs/policy.md and docs/adr (3, 5 and 6). decisionOracle does not call the code under
// test.
type decisionOracle struct {
	call    approvers.Call
	need    reading
	hash    string // hash of the policy from which the field need was computed
	state   approvers.State
	stage   int
	words   []word   // each person's last decision at each stage; only decisions about the current arguments
	leads   []string // roles that escalation added to the stage
	invited []approvers.PersonID
	handed  map[int][]approvers.PersonID // by stage: the people to whom the stage was handed on
	edits   int
	secrets []string             // arguments that were masked when the call was proposed
	seen    []approvers.PersonID // the people to whom the masked values of the current arguments were revealed
	begun   bool                 // the stage has just begun, so its deadlines must be checked
}

// word is a person's last decision about a stage.
type word struct {
	who     approvers.PersonID
	yes     bool
	stage   int
	ceiling approvers.Risk // the highest ceiling among the roles under which the decision was allowed
	role    string         // the role that was recorded with the decision
	glass   bool           // an operator's decision, for all remaining stages
}

// begin starts a stage.
func (a *decisionOracle) begin(stage int) {
	a.stage, a.leads, a.invited, a.begun = stage, nil, slices.Clone(a.handed[stage]), true
}

// anew restarts the stages. Earlier decisions no longer count. If a new stage is for the same people as an old stage,
// the people to whom the old stage was handed on remain.
func (a *decisionOracle) anew(was []approvers.Stage) {
	for i := range a.handed {
		if i >= len(was) || i >= len(a.need.stages) || !alike(was[i], a.need.stages[i]) {
			delete(a.handed, i)
		}
	}
	a.words, a.state = nil, approvers.Pending
	a.begin(0)
}

func (a *decisionOracle) current() approvers.Stage { return a.need.stages[a.stage] }

func (a *decisionOracle) last() bool { return a.stage == len(a.need.stages)-1 }

// counted reports whether a person has approved any stage.
func (a *decisionOracle) counted(who approvers.PersonID) bool {
	return slices.ContainsFunc(a.words, func(w word) bool { return w.yes && w.who == who })
}

// agreedBefore reports whether a person has approved an earlier stage.
func (a *decisionOracle) agreedBefore(who approvers.PersonID) bool {
	return slices.ContainsFunc(a.words, func(w word) bool { return w.yes && w.who == who && w.stage < a.stage })
}

// The method lists the people who approved a stage, if yes is true, or the people who rejected the stage.
func (a *decisionOracle) said(stage int, yes bool) (out []approvers.PersonID) {
	for _, w := range a.words {
		if w.stage == stage && w.yes == yes {
			out = append(out, w.who)
		}
	}
	slices.Sort(out)
	return out
}

func (a *decisionOracle) rejected(who approvers.PersonID) bool {
	return slices.Contains(a.said(a.stage, false), who)
}

// The method records a person's decision about the current stage. A person's last decision counts.
func (a *decisionOracle) say(said word) {
	said.stage = a.stage
	a.words = append(slices.DeleteFunc(slices.Clone(a.words), func(w word) bool { return w.who == said.who && w.stage == a.stage }), said)
	yes := said.yes
	switch s := a.current(); {
	case !yes && len(a.said(a.stage, false)) >= max(s.Rejects, 1):
		a.state = approvers.Rejected
	case yes && len(a.said(a.stage, true)) >= s.Quorum && a.last():
		a.state = approvers.Approved
	case yes && len(a.said(a.stage, true)) >= s.Quorum:
		a.begin(a.stage + 1)
	}
}

// full reports whether a person is a full member of the workspace, according to Slack.
func full(who approvers.Identity) bool {
	return who.ID != "" && !who.Guest && !who.Bot && !who.Deleted && !who.Foreign
}

func holds(r approvers.Role, who approvers.Identity) bool {
	return slices.ContainsFunc(r.Members, func(m approvers.Member) bool {
		return m.Kind == approvers.MemberUser && approvers.Who("T1", m.Value) == who.ID ||
			m.Kind == approvers.MemberGroup && slices.Contains(who.Groups, m.Value) ||
			m.Kind == approvers.MemberEmail && m.Value == who.Email
	})
}

// The method lists the roles under which a person could decide the current stage, even if the stage does not name
// these roles.
func (a *decisionOracle) can(p *approvers.Policy, who approvers.Identity) (out []approvers.Role) {
	if !full(who) || slices.Contains(a.need.barred(), who.ID) {
		return nil
	}
	for _, r := range p.Approvers {
		if holds(r, who) && lists(r, a.call.Tool) && (!a.last() || r.MaxRisk >= a.need.risk) {
			out = append(out, r)
		}
	}
	return out
}

// The method lists the roles under which a person may decide the current stage. The result contains the stage's own
// roles, if the person is in the stage's user group. The result also contains the roles of the leads who were notified.
// If there are no such roles and the person was invited, the result contains the roles of a peer.
func (a *decisionOracle) may(p *approvers.Policy, who approvers.Identity) (out []approvers.Role) {
	s := a.current()
	for _, r := range a.can(p, who) {
		own := slices.Contains(rolesOf(s), r.Name) && (s.Group == "" || slices.Contains(who.Groups, s.Group))
		if own || slices.Contains(a.leads, r.Name) {
			out = append(out, r)
		}
	}
	if len(out) == 0 && slices.Contains(a.invited, who.ID) {
		return a.peer(p, who)
	}
	return out
}

// peer lists the roles under which a person could decide in place of the stage's own people. The ceiling of such a
// role is at least the lowest ceiling of the stage's roles.
func (a *decisionOracle) peer(p *approvers.Policy, who approvers.Identity) []approvers.Role {
	s := a.current()
	if s.Group != "" && !slices.Contains(who.Groups, s.Group) {
		return nil
	}
	return slices.DeleteFunc(a.can(p, who), func(r approvers.Role) bool { return r.MaxRisk < lowest(p, s) })
}

// lowest returns the lowest ceiling among a stage's own roles.
func lowest(p *approvers.Policy, s approvers.Stage) approvers.Risk {
	out := approvers.Critical
	for _, r := range p.Approvers {
		if slices.Contains(rolesOf(s), r.Name) {
			out = min(out, r.MaxRisk)
		}
	}
	return out
}

// The function lists, for each role of a stage, all leads above the role, from the nearest up. An empty name
// marks the end of each role's list.
func above(p *approvers.Policy, s approvers.Stage) (out []string) {
	find := func(name string) int {
		return slices.IndexFunc(p.Approvers, func(r approvers.Role) bool { return r.Name == name })
	}
	for _, name := range rolesOf(s) {
		seen := []string{}
		for i := find(name); i >= 0 && !slices.Contains(seen, p.Approvers[i].Name); i = find(p.Approvers[i].Lead) {
			seen = append(seen, p.Approvers[i].Name)
		}
		out = append(out, seen[min(1, len(seen)):]...)
		out = append(out, "")
	}
	return out
}

// The method lists, for each of the stage's roles, the nearest lead who was not notified and could decide the stage.
func (a *decisionOracle) up(p *approvers.Policy) (out []string) {
	s, found := a.current(), false
	for _, name := range above(p, s) {
		i := slices.IndexFunc(p.Approvers, func(r approvers.Role) bool { return r.Name == name })
		switch {
		case name == "":
			found = false
		case found || i < 0 || slices.Contains(rolesOf(s), name) || slices.Contains(a.leads, name):
		case lists(p.Approvers[i], a.call.Tool) && (!a.last() || p.Approvers[i].MaxRisk >= a.need.risk):
			out, found = append(out, name), true
		}
	}
	return out
}

// policyIs checks a waiting or approved request against the current policy. The request must meet the requirements of
// both the old and the new policy.
func (a *decisionOracle) policyIs(p *approvers.Policy) {
	if a.hash == p.Hash || a.state != approvers.Pending && a.state != approvers.Approved {
		return
	}
	a.hash = p.Hash
	was := a.need
	a.need = was.and(p, a.call.Tool, read(p, a.call))
	grown := a.need.risk != was.risk || !sameStages(a.need.stages[:a.stage+1], was.stages[:a.stage+1]) ||
		a.state == approvers.Approved && len(a.need.stages) > len(was.stages) ||
		slices.ContainsFunc(a.words, func(w word) bool { return w.yes && !a.stands(p, w) }) ||
		was.blind && slices.ContainsFunc(a.words, func(w word) bool { return w.yes && !w.glass && a.mustSee(p, w.who) })
	switch {
	case a.need.verdict == approvers.Refuse:
		a.state = approvers.Voided
	case grown:
		a.anew(was.stages)
	case a.state == approvers.Pending: // roles that are no longer leads are removed, because their people can't decide as leads
		a.leads = slices.DeleteFunc(slices.Clone(a.leads), func(name string) bool { return !slices.Contains(above(p, a.current()), name) })
	}
}

// The method reports whether an approval counts under a later policy. An approval counts if the person may still
// decide, according to data that is known without a call to Slack.
func (a *decisionOracle) stands(p *approvers.Policy, w word) bool {
	if w.glass {
		return settings(p, a.call.Tool, a.call.Facts.Agent).BreakGlass
	}
	s := a.need.stages[w.stage]
	return !slices.Contains(a.need.barred(), w.who) && slices.ContainsFunc(p.Approvers, func(r approvers.Role) bool {
		asked := slices.Contains(rolesOf(s), r.Name) || slices.Contains(above(p, s), r.Name) || r.MaxRisk >= lowest(p, s)
		return asked && r.Name == w.role && lists(r, a.call.Tool) && (w.stage < len(a.need.stages)-1 || r.MaxRisk >= a.need.risk) &&
			slices.ContainsFunc(r.Members, func(m approvers.Member) bool {
				return m.Kind != approvers.MemberUser || approvers.Who("T1", m.Value) == w.who
			})
	})
}

// masked lists the arguments that the card does not show.
func (a *decisionOracle) masked(p *approvers.Policy) []string {
	return append(slices.Clone(a.secrets), settings(p, a.call.Tool, a.call.Facts.Agent).Secrets...)
}

// mustSee reports whether the masked values must be revealed to a person before the person may approve.
func (a *decisionOracle) mustSee(p *approvers.Policy, who approvers.PersonID) bool {
	return len(a.masked(p)) > 0 && !a.need.blind && !slices.Contains(a.seen, who)
}
