package approvers

import (
	"slices"
	"time"
)

// NobodyLeft is the cause of Unreached if no person can decide a stage any more, because people lost their accounts or
// their authority.
const NobodyLeft = "nobody who may decide is left"

// NobodyThere is the cause of Unreached if the roles or user groups to which the cards are addressed have no members
// who can get messages.
const NobodyThere = "nobody there can be written to"

// TooFew is the cause of Unreached if there are people who may decide a stage, but fewer than its quorum.
const TooFew = "too few people are left who may decide"

// Unreached records that a stage can't be completed until somebody changes Slack or the policy: Slack refused every
// card, nobody is left who may decide, or too few people are left.
type Unreached struct {
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"`   // when the problem ended; zero: the problem has not ended
	Cause  string    `json:"cause"`            // why Slack refused the last card, or NobodyThere, NobodyLeft or TooFew
	Before bool      `json:"before,omitempty"` // people saw a card of the stage before the problem began
	Empty  bool      `json:"empty,omitempty"`  // with NobodyLeft: the stage's roles have no members; if the stage has a user group, no member of the roles is in the group
	Able   int       `json:"able,omitempty"`   // if too few people are left: how many people can approve the stage, or have approved it
}

// NeedsOperator reports whether a pending request can't be decided until somebody changes Slack or the policy.
func NeedsOperator(r Request) bool {
	return r.State == Pending && r.Unreached != nil && r.Unreached.Until.IsZero()
}

// ReachesNobody reports whether nobody who may decide a pending request can see a card.
func (r Request) ReachesNobody() bool { return NeedsOperator(r) && r.Unreached.Cause != TooFew }

// HasNobodyLeft reports whether nobody is left who may decide a pending request.
func HasNobodyLeft(r Request) bool { return LacksPeople(r) == NobodyLeft }

// HasTooFew reports whether a pending request has people who may decide its stage, but fewer than the stage needs.
func HasTooFew(r Request) bool { return LacksPeople(r) == TooFew }

// LacksPeople returns NobodyLeft or TooFew if people must be added before a pending request can be decided. Otherwise,
// the result is "".
func LacksPeople(r Request) string {
	if !NeedsOperator(r) || r.Unreached.Cause != NobodyLeft && r.Unreached.Cause != TooFew {
		return ""
	}
	return r.Unreached.Cause
}

// countPeople counts the people who can approve the current stage, or have approved it. If people must be added, lacks
// is NobodyLeft or TooFew. Otherwise, lacks is "". people are all people of the stage's roles, and the invited people. A
// person who occurs twice counts once.
func countPeople(r Request, p *Policy, people []Presence) (able int, lacks string) {
	var left []PersonID
	for _, one := range people {
		if _, denied := r.Authority(p, one.Who); denied == nil && !r.counted(one.Who.ID) && !slices.Contains(left, one.Who.ID) {
			left = append(left, one.Who.ID)
		}
	}
	able = r.At(r.Stage) + len(left)
	switch {
	case len(left) == 0:
		lacks = NobodyLeft
	case able < r.stage().Quorum:
		lacks = TooFew
	}
	return able, lacks
}

// LacksMore reports whether the request must record that people have to be added before the current stage can be
// completed.
func LacksMore(r Request, p *Policy, people []Presence) bool {
	_, lacks := countPeople(r, p, people)
	return lacks != "" && LacksPeople(r) == ""
}

// recordPeople records whether enough people are left who may decide the current stage. The result named lacks is
// NobodyLeft, TooFew or "". If there is another lead, that lead is asked, and nothing is recorded. If Slack refuses the
// cards, the cause of that problem stays unless nobody is left, and only the number of people is recorded, for
// CardShown.
func recordPeople(r Request, in DecisionContext, people []Presence) (out Request, lacks string) {
	able, lacks := countPeople(r, in.Policy, people)
	_, up := r.nextLead(in.Policy)
	was := LacksPeople(r)
	u := Unreached{Since: in.Now, Cause: lacks, Before: true}
	switch {
	case r.ReachesNobody() && was == "" && lacks != NobodyLeft:
		u = *r.Unreached
		if u.Able = 0; lacks == TooFew && !up {
			u.Able = able
		}
		r.Unreached = &u
		return r, lacks
	case lacks == "" && was != "":
		return endUnreached(r, in.Now), lacks
	case lacks == "", up && was == "":
		return r, lacks
	case lacks == NobodyLeft:
		u.Empty = asksNobody(r, people)
	default:
		u.Able = able
	}
	if NeedsOperator(r) && (r.Unreached.Cause == lacks || r.Unreached.Cause == NobodyThere) {
		u.Since = r.Unreached.Since
	}
	r.Unreached = &u
	return r, lacks
}

// asksNobody reports whether nobody holds the current stage's roles. If the stage names a user group, asksNobody
// reports whether nobody in the group holds them.
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
	if NeedsOperator(r) {
		u.Able = r.Unreached.Able
	}
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

// CardShown records that a person who may decide a request's stage can see a card of the request. If too few people are
// left who may decide, this problem remains.
func CardShown(in DecisionContext, r Request) Request {
	switch {
	case !r.ReachesNobody():
		return r
	case r.Unreached.Able > 0:
		r.Unreached = &Unreached{Since: in.Now, Cause: TooFew, Before: true, Able: r.Unreached.Able}
		return r
	}
	return endUnreached(r, in.Now)
}

// endUnreached records the end of the problem in Unreached.
func endUnreached(r Request, now time.Time) Request {
	u := *r.Unreached
	u.Until = now
	r.Unreached = &u
	return r
}

// Added reports whether escalation added a role to a request because Slack refused the request's cards.
func (u *Unreached) Added(r Request, role string) bool {
	i := slices.Index(r.Joined, role)
	if u == nil || u.Cause == NobodyLeft || u.Cause == TooFew || i < 0 || i >= len(r.JoinedAt) {
		return false
	}
	at := r.JoinedAt[i]
	return !at.Before(u.Since) && (u.Until.IsZero() || !at.After(u.Until))
}

// expiryReason returns the reason with which a request expires.
func expiryReason(r Request) string {
	switch {
	case HasTooFew(r):
		return "nobody decided in time, and in the end too few people were left who may decide"
	case !r.ReachesNobody():
		return "nobody decided in time"
	case HasNobodyLeft(r):
		return "nobody decided in time, and in the end nobody was left who may decide"
	case r.Unreached.Before:
		return "nobody decided in time, and in the end its card reached nobody (" + r.Unreached.Cause + ")"
	}
	return "its card reached nobody (" + r.Unreached.Cause + ")"
}
