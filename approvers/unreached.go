package approvers

import (
	"slices"
	"time"
)

// NobodyLeft is the cause of Unreached if everybody who could decide a stage has lost their account or their authority.
const NobodyLeft = "nobody who may decide is left"

// NobodyThere is the cause of Unreached if the roles or user groups to which the cards are addressed have no members
// who can get messages.
const NobodyThere = "nobody there can be written to"

// Unreached records that nobody who may decide a stage can see a card. Either Slack refused every card, or nobody is
// left who may decide.
type Unreached struct {
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"`   // when a card was shown again; zero: nobody can see a card yet
	Cause  string    `json:"cause"`            // Slack's reason for the last card, NobodyThere or NobodyLeft
	Before bool      `json:"before,omitempty"` // people saw a card of the stage earlier
	Empty  bool      `json:"empty,omitempty"`  // with NobodyLeft: the stage's roles, or its user group, have no members
}

// ReachesNobody reports whether nobody who may decide a pending request can see a card.
func (r Request) ReachesNobody() bool {
	return r.State == Pending && r.Unreached != nil && r.Unreached.Until.IsZero()
}

// HasNobodyLeft reports whether nobody is left who may decide a pending request.
func HasNobodyLeft(r Request) bool { return r.ReachesNobody() && r.Unreached.Cause == NobodyLeft }

// countPeople records whether anybody is left who may decide the current stage, and whether somebody may decide it
// again. If there is another lead, that lead is asked, and nothing is recorded. people are all people of the stage's
// roles, and the invited people.
func countPeople(r Request, in DecisionContext, people []Presence) Request {
	mayDecide := slices.ContainsFunc(people, func(one Presence) bool {
		_, denied := r.Authority(in.Policy, one.Who)
		return denied == nil && !r.counted(one.Who.ID)
	})
	_, up := r.nextLead(in.Policy)
	switch {
	case mayDecide && HasNobodyLeft(r):
		return CardShown(in, r)
	case !mayDecide && !up && !HasNobodyLeft(r):
		r.Unreached = &Unreached{Since: in.Now, Cause: NobodyLeft, Before: true, Empty: asksNobody(r, people)}
	}
	return r
}

// asksNobody reports whether the current stage has no people at all, because its roles or its user group are empty.
func asksNobody(r Request, people []Presence) bool {
	group := r.stage().Group
	return len(people) == 0 || group != "" && len(r.Joined) == 0 &&
		!slices.ContainsFunc(people, func(one Presence) bool { return slices.Contains(one.Who.Groups, group) })
}

// CardsRefused records that Slack refused every card of a request's stage. If there is another lead, the escalation
// to that lead becomes due immediately. The parameter named before is true if people could see a card of the stage
// earlier.
func CardsRefused(in DecisionContext, r Request, cause string, before bool) Request {
	u := Unreached{Since: in.Now, Cause: cause, Before: before}
	if r.ReachesNobody() {
		u.Since = r.Unreached.Since
	}
	if HasNobodyLeft(r) {
		u.Cause, u.Empty = NobodyLeft, r.Unreached.Empty
	}
	r.Unreached = &u
	if _, ok := r.nextLead(in.Policy); ok && (r.EscalateAt.IsZero() || r.EscalateAt.After(in.Now)) {
		r.EscalateAt = in.Now
	}
	return r
}

// CardShown records that a person who may decide a request's stage can see a card of the request.
func CardShown(in DecisionContext, r Request) Request {
	if !r.ReachesNobody() {
		return r
	}
	u := *r.Unreached
	u.Until = in.Now
	r.Unreached = &u
	return r
}

// Added reports whether escalation added a role to a request because Slack refused the request's cards.
func (u *Unreached) Added(r Request, role string) bool {
	i := slices.Index(r.Joined, role)
	if u == nil || u.Cause == NobodyLeft || i < 0 || i >= len(r.JoinedAt) {
		return false
	}
	at := r.JoinedAt[i]
	return !at.Before(u.Since) && (u.Until.IsZero() || !at.After(u.Until))
}

// expiryReason returns the reason with which a request expires.
func expiryReason(r Request) string {
	switch {
	case !r.ReachesNobody():
		return "nobody decided in time"
	case HasNobodyLeft(r):
		return "nobody decided in time, and in the end nobody was left who may decide"
	case r.Unreached.Before:
		return "nobody decided in time, and in the end its card reached nobody (" + r.Unreached.Cause + ")"
	}
	return "its card reached nobody (" + r.Unreached.Cause + ")"
}
