package approvers

import (
	"slices"
	"time"
)

// Presence is the current availability of one of a stage's people.
type Presence struct {
	Who        Identity
	QuietUntil time.Time // do-not-disturb; zero: can be disturbed
	Away       bool
	StandIn    *Presence // the stand-in of a person who is away, if any
}

// here returns the person, or the first stand-in in the chain who is not away, or nil.
func (p *Presence) here() *Presence {
	for p != nil && p.Away {
		p = p.StandIn
	}
	return p
}

// decided reports whether the person has decided the current stage, or can no longer be counted.
func (r Request) decided(who PersonID) bool {
	return r.counted(who) || slices.ContainsFunc(r.Against(r.Stage), func(d Decision) bool { return d.By == who })
}

// TurnOf returns since when a person may decide the current stage: since it began, since it was handed on to them, or
// since escalation added their role. It returns false if they may not decide, or have.
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

// ResolveAvailability checks which of the stage's people can be reached now. It invites stand-ins who have the
// authority of a peer. If nobody can be reached, it makes the escalation due. Outside of working hours it sets the next
// check to the time when the first role works.
func (r Request) ResolveAvailability(in DecisionContext, people []Presence) (Request, []Event) {
	var events []Event
	if r.State != Pending || r.late(in.Now) {
		return r, nil
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
			events = append(events, PersonInvited{Invite: invite})
			r.Invited = append(r.Invited[:len(r.Invited):len(r.Invited)], invite)
		}
		reached = reached || !here.QuietUntil.After(in.Now) && r.awaits(in.Policy, here.Who)
	}
	if reached {
		return r, append(events, AvailabilityResolved{})
	}
	if opens := r.worked(in, r.Roles(), 0); opens.After(in.Now) {
		return r, append(events, AvailabilityResolved{RecheckAt: opens})
	}
	if _, up := r.nextLead(in.Policy); up && r.EscalateAt.After(in.Now) {
		r.EscalateAt = in.Now
		events = append(events, LeadCalled{})
	}
	return r, append(events, AvailabilityResolved{})
}

// standIn returns the invitation of a stand-in for one of the stage's people. It returns false for people who are
// already part of the stage and for people without authority of their own.
func (r Request) standIn(in DecisionContext, away, here Identity) (Invite, bool) {
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
