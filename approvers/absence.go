package approvers

import "time"

// Absence says when a person is away and who stands in. It moves cards and reminders, never authority: whoever stands in
// decides in their own name, by a role of their own.
type Absence struct {
	Who          PersonID  `json:"who"`
	Version      uint64    `json:"version"`
	Name         string    `json:"name"`
	From         time.Time `json:"from"`
	Until        time.Time `json:"until"` // the person is back from then on
	Delegate     PersonID  `json:"delegate,omitempty"`
	DelegateName string    `json:"delegate_name,omitempty"`
}

// Covers reports whether the person is away at a time.
func (a Absence) Covers(t time.Time) bool { return !t.Before(a.From) && t.Before(a.Until) }

// Presence is what is known of one of a stage's people just now.
type Presence struct {
	Who        Identity
	QuietUntil time.Time // do-not-disturb; zero: can be disturbed
	Away       bool
	Delegate   *Identity // who stands in, for somebody who is away
}

// reachable reports whether a message to the person would be seen now.
func (p Presence) reachable(now time.Time) bool { return !p.Away && !p.QuietUntil.After(now) }

// Muster looks at who of the stage's people can be reached now. Whoever stands in for somebody away is invited, if they have the
// authority of a peer; where nobody at all can be reached, the lead is told without waiting. It returns those who were invited.
func (r Request) Muster(in Deciding, people []Presence) (Request, []Invite) {
	if r.State != Pending {
		return r, nil
	}
	var invited []Invite
	reachable := false
	for _, p := range people {
		if p.Away && p.Delegate != nil {
			if role, denied := r.Peer(in.Policy, *p.Delegate); denied == nil && !r.invites(p.Delegate.ID) {
				i := Invite{Who: p.Delegate.ID, Name: p.Delegate.Name, Role: role.Name, By: p.Who.ID, ByName: p.Who.Name, At: in.Now, Away: true}
				invited = append(invited, i)
				r.Invited = append(r.Invited[:len(r.Invited):len(r.Invited)], i)
			}
			continue
		}
		if _, denied := r.Authority(in.Policy, p.Who); denied == nil && !r.counted(p.Who.ID) {
			reachable = reachable || p.reachable(in.Now)
		}
	}
	if len(people) > 0 && !reachable && len(r.Invited) == 0 && !r.EscalateAt.IsZero() {
		r.EscalateAt = in.Now
	}
	return r, invited
}
