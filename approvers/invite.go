package approvers

import (
	"slices"
	"time"
)

// Invite adds one person to the current stage: a colleague handed the request on, or they stand in for somebody who is away. It
// gives nobody authority. Whoever is invited decides by a role of their own, which is looked at again at the click.
type Invite struct {
	Who    PersonID  `json:"who"`
	Name   string    `json:"name"`
	Role   string    `json:"role"` // the role of theirs that made them a peer
	By     PersonID  `json:"by"`
	ByName string    `json:"by_name"`
	At     time.Time `json:"at"`
	Away   bool      `json:"away,omitempty"` // because By is away
	Stage  int       `json:"stage,omitempty"`
}

func (r Request) invites(who PersonID) bool {
	return slices.ContainsFunc(r.Invited, func(i Invite) bool { return i.Who == who })
}

// Peer finds the role by which a person could take the place of the current stage's own people: its tool list has the tool, and
// its ceiling is no lower than the lowest of the stage's roles, and at the last stage no lower than the risk. A stage that asks for a user group
// asks it of them too.
func (r Request) Peer(p *Policy, who Identity) (Role, *Denied) {
	if code := who.trouble(); code != "" {
		return Role{}, &Denied{Code: code}
	}
	if !r.Plan.SelfOK && slices.Contains(r.Plan.Requesters, who.ID) {
		return Role{}, &Denied{Code: DeniedSelf, Role: r.title(p)}
	}
	if r.Stage >= len(r.Plan.Stages) {
		return Role{}, r.Over()
	}
	stage := r.stage()
	if stage.Group != "" && !slices.Contains(who.Groups, stage.Group) {
		return Role{}, &Denied{Code: DeniedGroup, Role: r.title(p)}
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

// lowestCeiling is the lowest ceiling among a stage's roles: a peer has one as high.
func (p *Policy) lowestCeiling(s Stage) Risk {
	lowest := Critical
	for _, name := range s.Roles() {
		if role, ok := p.Role(name); ok {
			lowest = min(lowest, role.MaxRisk)
		}
	}
	return lowest
}

// HandOn invites a colleague to the current stage. Whoever hands on keeps their own say.
func (r Request) HandOn(in Deciding, m Move, to Identity) (Request, *Denied) {
	if denied := r.waits(m); denied != nil {
		return r, denied
	}
	if _, denied := r.Authority(in.Policy, m.Who); denied != nil {
		return r, denied
	}
	if to.ID == m.Who.ID || r.counted(to.ID) || r.invites(to.ID) {
		return r, &Denied{Code: DeniedAsked}
	}
	role, denied := r.Peer(in.Policy, to)
	if denied != nil {
		return r, &Denied{Code: DeniedNotPeer, Role: r.title(in.Policy), Need: denied.Need, Detail: string(denied.Code)}
	}
	if len(r.Invited) >= maxInvited {
		return r, &Denied{Code: DeniedFull}
	}
	i := Invite{Who: to.ID, Name: to.Name, Role: role.Name, By: m.Who.ID, ByName: m.Who.Name, At: in.Now, Stage: r.Stage}
	r.Invited = append(slices.Clip(r.Invited), i)
	r.Handed = append(slices.Clip(r.Handed), i)
	return r, nil
}

// handedAt are the people to whom a stage was handed on: one that begins again has them again.
func (r Request) handedAt(stage int) []Invite {
	var out []Invite
	for _, i := range r.Handed {
		if i.Stage == stage {
			out = append(out, i)
		}
	}
	return out
}

// keepHanded forgets what was handed on at stages that another plan does not have at the same place.
func (r Request) keepHanded(was []Stage) Request {
	r.Handed = slices.DeleteFunc(slices.Clone(r.Handed), func(i Invite) bool {
		return i.Stage >= len(was) || i.Stage >= len(r.Plan.Stages) || !r.Plan.Stages[i.Stage].sameRoles(was[i.Stage])
	})
	return r
}

// maxInvited bounds how many people are added to one stage.
const maxInvited = 20
