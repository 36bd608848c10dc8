package approvers

import (
	"slices"
	"time"
)

// Unreached records that Slack refused every card of a stage. So nobody who may decide the stage can see a card.
type Unreached struct {
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"`   // when a card was shown again; zero: nobody can see a card yet
	Cause  string    `json:"cause"`            // Slack's reason for the last card
	Before bool      `json:"before,omitempty"` // people saw a card of the stage earlier
}

// ReachesNobody reports whether Slack has refused all cards of a pending request.
func (r Request) ReachesNobody() bool {
	return r.State == Pending && r.Unreached != nil && r.Unreached.Until.IsZero()
}

// CardsRefused records that Slack refused every card of a request's stage. If there is another lead, the escalation
// to that lead becomes due immediately. The parameter named before is true if people could see a card of the stage
// earlier.
func CardsRefused(in DecisionContext, r Request, cause string, before bool) Request {
	u := Unreached{Since: in.Now, Cause: cause, Before: before}
	if r.ReachesNobody() {
		u.Since = r.Unreached.Since
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

// Added reports whether escalation added a role to a request because nobody could see the request's cards.
func (u *Unreached) Added(r Request, role string) bool {
	i := slices.Index(r.Joined, role)
	if u == nil || i < 0 || i >= len(r.JoinedAt) {
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
	case r.Unreached.Before:
		return "nobody decided in time, and in the end its card reached nobody (" + r.Unreached.Cause + ")"
	}
	return "its card reached nobody (" + r.Unreached.Cause + ")"
}
