package approvers

import (
	"slices"
	"time"
)

// Presence is what is known of one of a stage's people just now.
type Presence struct {
	Who        Identity
	QuietUntil time.Time // do-not-disturb; zero: can be disturbed
	Away       bool
	StandIn    *Presence // for somebody who is away: who stands in, if anybody does
}

// here is the person, or the first in the line of those who stand in who is not away; nil if nobody is here.
func (p *Presence) here() *Presence {
	for p != nil && p.Away {
		p = p.StandIn
	}
	return p
}

// decided reports whether the person has had their say on the current stage, or can't be counted any more.
func (r Request) decided(who PersonID) bool {
	return r.counted(who) || slices.ContainsFunc(r.Against(r.Stage), func(d Decision) bool { return d.By == who })
}

// TurnOf is since when a person may decide the current stage, where they may and have not: as one of its own people, because it was handed on to
// them, or since escalation added their role.
func (r Request) TurnOf(p *Policy, who Identity) (since time.Time, ok bool) {
	if !r.awaits(p, who) {
		return time.Time{}, false
	}
	for _, name := range r.stage().Roles() {
		if role, known := p.Role(name); known && role.Holds(who) {
			return r.StageAt, true
		}
	}
	for _, i := range r.Invited {
		if i.Who == who.ID {
			return latest(i.At, r.StageAt), true
		}
	}
	for i, name := range r.Joined {
		if role, known := p.Role(name); known && role.Holds(who) && i < len(r.JoinedAt) {
			return r.JoinedAt[i], true
		}
	}
	return time.Time{}, false
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// awaits reports whether the person may decide the current stage and has not.
func (r Request) awaits(p *Policy, who Identity) bool {
	_, denied := r.Authority(p, who)
	return denied == nil && !r.decided(who.ID)
}

// Mustered is what came of looking at who can be reached.
type Mustered struct {
	Invited []Invite  // who was added to the stage
	Again   time.Time // when to look again, because nobody works now; zero: no need to
}

// Muster looks at who of the stage's people can be reached now. Whoever stands in for somebody away is invited, if they have the
// authority of a peer; where nobody at all can be reached, the lead is told without waiting. Outside of working hours nobody
// has to be reachable: it is looked at again when the first role works.
func (r Request) Muster(in Deciding, people []Presence) (Request, Mustered) {
	var out Mustered
	if r.State != Pending || r.late(in.Now) {
		return r, out
	}
	reached := false
	for i := range people {
		if !r.awaits(in.Policy, people[i].Who) {
			continue
		}
		here := people[i].here()
		if here == nil {
			continue
		}
		if invite, ok := r.standIn(in, people[i].Who, here.Who); ok {
			out.Invited = append(out.Invited, invite)
			r.Invited = append(r.Invited[:len(r.Invited):len(r.Invited)], invite)
		}
		reached = reached || !here.QuietUntil.After(in.Now) && r.awaits(in.Policy, here.Who)
	}
	if reached {
		return r, out
	}
	if opens := r.worked(in, r.Roles(), 0); opens.After(in.Now) {
		out.Again = opens
		return r, out
	}
	if _, up := r.nextLead(in.Policy); up && r.EscalateAt.After(in.Now) {
		r.EscalateAt = in.Now
	}
	return r, out
}

// standIn is the invitation of somebody who stands in for one of the stage's people. It reports false for those who need none,
// because they are of the stage already, and for those who have no authority of their own.
func (r Request) standIn(in Deciding, away, here Identity) (Invite, bool) {
	if here.ID == away.ID || r.counted(here.ID) || len(r.Invited) >= maxInvited {
		return Invite{}, false
	}
	if _, denied := r.Authority(in.Policy, here); denied == nil {
		return Invite{}, false
	}
	role, denied := r.Peer(in.Policy, here)
	if denied != nil || r.invites(here.ID) {
		return Invite{}, false
	}
	return Invite{Who: here.ID, Name: here.Name, Role: role.Name, By: away.ID, ByName: away.Name, At: in.Now, Away: true}, true
}
