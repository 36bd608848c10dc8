package approvers

import (
	"slices"
	"time"
)

// Invite adds one person to the current stage. The person is a stand-in for an absent person, or a colleague to whom
// an approver handed on the request. An invitation gives no authority. The invited person decides under one of the
// person's own roles. The invited person's role is checked at the click.
type Invite struct {
	Who    PersonID  `json:"who"`
	Name   string    `json:"name"`
	Role   string    `json:"role"` // the invited person's role at the time of the invitation, which makes the person a peer
	By     PersonID  `json:"by"`
	ByName string    `json:"by_name"`
	At     time.Time `json:"at"`
	Away   bool      `json:"away,omitempty"` // the person is the stand-in of By, who is away
	Stage  int       `json:"stage,omitempty"`
}

func (r Request) invites(who PersonID) bool {
	return slices.ContainsFunc(r.Invited, func(i Invite) bool { return i.Who == who })
}

// Peer returns the role under which a person could decide in place of the current stage's own people. The role must list
// the request's tool. The role's ceiling must be at least the lowest ceiling of the stage's roles and, at the last stage,
// at least the call's risk. If the stage names a user group, the person must be in this group.
func (r Request) Peer(p *Policy, who Identity) (Role, *Denied) {
	if code := who.trouble(); code != "" {
		return Role{}, &Denied{Code: code}
	}
	if !r.Plan.SelfOK && bars(r, who) {
		return Role{}, &Denied{Code: DeniedSelf, Role: r.title(p)}
	}
	if r.Stage >= len(r.Plan.Stages) {
		return Role{}, r.Over()
	}
	stage := r.stage()
	if stage.Group != "" && !slices.Contains(who.Groups, stage.Group) {
		return Role{}, stage.denyGroup(who, r.title(p))
	}
	need := p.lowestCeiling(stage)
	if r.last() {
		need = max(need, r.Plan.Risk)
	}
	for _, role := range p.Approvers {
		if role.MaxRisk >= need && role.Covers(r.Tool) && role.Holds(who) {
			return role, nil
		}
	}
	return Role{}, &Denied{Code: DeniedNotPeer, Role: r.title(p), Need: need}
}

// lowestCeiling returns the lowest ceiling among a stage's roles. A peer needs at least this ceiling.
func (p *Policy) lowestCeiling(s Stage) Risk {
	lowest := Critical
	for _, name := range s.Roles() {
		if role, ok := p.Role(name); ok {
			lowest = min(lowest, role.MaxRisk)
		}
	}
	return lowest
}

// HandOn invites a colleague to the current stage. The person who hands the request on can still decide.
func (r Request) HandOn(in DecisionContext, m Action, to Identity) (Request, []Event, *Denied) {
	if denied := r.waits(m); denied != nil {
		return r, nil, denied
	}
	if _, denied := r.Authority(in.Policy, m.Who); denied != nil {
		return r, nil, denied
	}
	role, denied := HandOnRole(r, in.Policy, m.Who.ID, to)
	if denied != nil {
		return r, nil, denied
	}
	if len(r.Invited) >= maxInvited {
		return r, nil, &Denied{Code: DeniedFull}
	}
	i := Invite{Who: to.ID, Name: to.Name, Role: role.Name, By: m.Who.ID, ByName: m.Who.Name, At: in.Now, Stage: r.Stage}
	r.Invited = append(slices.Clip(r.Invited), i)
	r.Handed = append(slices.Clip(r.Handed), i)
	return r, []Event{PersonInvited{Invite: i}}, nil
}

// HandOnRole returns the role under which a colleague could decide, if a person hands the request on to the colleague.
func HandOnRole(r Request, p *Policy, by PersonID, to Identity) (Role, *Denied) {
	if to.ID == by || r.counted(to.ID) || r.invites(to.ID) {
		return Role{}, &Denied{Code: DeniedAsked}
	}
	role, denied := r.Peer(p, to)
	if denied != nil {
		return Role{}, &Denied{Code: DeniedNotPeer, Role: r.title(p), Need: denied.Need, Detail: string(denied.Code)}
	}
	return role, nil
}

// handedAt returns the people to whom a stage was handed on. If the stage restarts, these people are also invited to
// the restarted stage.
func (r Request) handedAt(stage int) []Invite {
	var out []Invite
	for _, i := range r.Handed {
		if i.Stage == stage {
			out = append(out, i)
		}
	}
	return out
}

// If the new plan changes a stage's roles or user group, keepHanded removes the people to whom this stage was handed
// on.
func (r Request) keepHanded(was []Stage) Request {
	r.Handed = slices.DeleteFunc(slices.Clone(r.Handed), func(i Invite) bool {
		return i.Stage >= len(was) || i.Stage >= len(r.Plan.Stages) || !r.Plan.Stages[i.Stage].sameRoles(was[i.Stage])
	})
	return r
}

// maxInvited limits the number of people who can be added to one stage.
const maxInvited = 20
