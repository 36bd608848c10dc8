package approvers

import (
	"slices"
	"time"
)

// Presence is the current availability of a person of a stage.
type Presence struct {
	Who        Identity
	QuietUntil time.Time // do-not-disturb; zero: can be disturbed
	CardAt     time.Time // when the person got a card of their own; zero: the person has none, for example because the card is in a channel
	Away       bool
	StandIn    *Presence // for a person who is away: the stand-in, if there is one
}

// here returns the first person who is not away: the person, the person's stand-in, the stand-in's stand-in, and so on.
// If all of them are away, here returns nil.
func (p *Presence) here() *Presence {
	for p != nil && p.Away {
		p = p.StandIn
	}
	return p
}

// decided reports whether the person has decided the current stage, or has an approval of an earlier stage that counts.
func (r Request) decided(who PersonID) bool {
	return r.counted(who) || slices.ContainsFunc(r.Against(r.Stage), func(d Decision) bool { return d.By == who })
}

// TurnOf returns the time since which a person may decide the current stage. This time is the start of the stage,
// unless the person joined the stage later. A person joins a stage when the person is invited, or when escalation adds
// the person's role. TurnOf returns false if the person may not decide the stage, or has already decided it.
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

// IsOut reports whether a person is a requester, or has decided. Such a person can't decide the current stage under any
// role.
func IsOut(r Request, who Identity) bool {
	return !r.Plan.SelfOK && bars(r, who) || r.decided(who.ID)
}

// awaits reports whether the person may decide the current stage and has not decided it.
func (r Request) awaits(p *Policy, who Identity) bool {
	_, denied := r.Authority(p, who)
	return denied == nil && !r.decided(who.ID)
}

// ResolveAvailability checks which of the stage's people can be reached now. ResolveAvailability invites stand-ins who
// have the authority of a peer. If nobody can be reached during working hours, ResolveAvailability makes the escalation
// to the next lead due. If no role of the stage works now, ResolveAvailability schedules the next check for the time at
// which the first role starts work. If too few people, or none, are left who may decide the stage, the escalation to
// the next lead is also due. If there is no next lead, ResolveAvailability records the problem, and the stage is
// checked again later.
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
			people = append(people[:len(people):len(people)], *here)
		}
		reached = reached || !here.QuietUntil.After(in.Now) && r.awaits(in.Policy, here.Who)
	}
	r, lacks := recordPeople(r, in, people)
	if reached && lacks == "" {
		return r, append(events, AvailabilityResolved{})
	}
	if opens := r.worked(in, r.Roles(), 0); opens.After(in.Now) {
		if again := in.Now.Add(recheckPeople); LacksPeople(r) != "" && again.Before(opens) {
			opens = again
		}
		return r, append(events, AvailabilityResolved{RecheckAt: opens})
	}
	if lead, up := r.nextLead(in.Policy); up && r.EscalateAt.After(in.Now) {
		r.EscalateAt = in.Now
		r.Calls = callOf(r, in.Policy, lead, people, lacks)
		events = append(events, LeadCalled{})
	}
	if LacksPeople(r) != "" { // so check again later: no event tells the bot that a role has new members
		return r, append(events, AvailabilityResolved{RecheckAt: in.Now.Add(recheckPeople)})
	}
	return r, append(events, AvailabilityResolved{})
}

// If a stage has too few people who may decide, recheckPeople is the time between two checks of the stage.
const recheckPeople = 5 * time.Minute

// LeadCall is the reason why a lead was notified before the escalation was due. A LeadCall exists only if people of
// the stage are deactivated, or if nobody, or too few people, may decide the stage. If people are only absent or in
// do-not-disturb, there is no LeadCall.
type LeadCall struct {
	Lead        string        `json:"lead"`
	Deactivated []Deactivated `json:"deactivated,omitempty"` // the people of the stage whose accounts are deactivated; empty: nobody could decide, for other reasons
	Others      bool          `json:"others,omitempty"`      // other people could decide, but can't be reached
	TooFew      bool          `json:"too_few,omitempty"`     // other people could decide, but fewer than the stage needs
}

// Deactivated is a person whose account is deactivated.
type Deactivated struct {
	Who  PersonID `json:"who"`
	Name string   `json:"name"`
}

// callOf returns the request's list of lead calls, with a new entry for this lead. If none of the reasons for a
// LeadCall applies, callOf adds no entry.
func callOf(r Request, p *Policy, lead Role, people []Presence, lacks string) []LeadCall {
	call := LeadCall{Lead: lead.Name, Others: AwaitsAnybody(r, p, people), TooFew: lacks == TooFew}
	for _, one := range people {
		if one.Who.Deleted && !r.decided(one.Who.ID) {
			call.Deactivated = append(call.Deactivated, Deactivated{Who: one.Who.ID, Name: one.Who.Name})
		}
	}
	calls := slices.DeleteFunc(slices.Clone(r.Calls), func(c LeadCall) bool { return c.Lead == lead.Name })
	if len(call.Deactivated) == 0 && call.Others && !call.TooFew {
		return calls
	}
	return append(calls, call)
}

// AwaitsAnybody reports whether the current stage still waits for at least one of the people. People who can't be
// reached also count.
func AwaitsAnybody(r Request, p *Policy, people []Presence) bool {
	return slices.ContainsFunc(people, func(one Presence) bool { return r.awaits(p, one.Who) })
}

// CallOf returns the reason why a lead was notified before the time of the escalation. CallOf returns false if no
// reason is recorded.
func CallOf(r Request, lead string) (LeadCall, bool) {
	i := slices.IndexFunc(r.Calls, func(c LeadCall) bool { return c.Lead == lead })
	if i < 0 {
		return LeadCall{}, false
	}
	return r.Calls[i], true
}

// standIn returns the invitation of a stand-in for one of the stage's people. standIn returns false for people who are
// already part of the stage, and for people without their own authority.
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
