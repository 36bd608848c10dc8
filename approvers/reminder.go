package approvers

import (
	"slices"
	"time"
)

// Owed is a reminder that waits for the end of somebody's do-not-disturb.
type Owed struct {
	Who PersonID  `json:"who"`
	At  time.Time `json:"at"`
}

// reminds reports whether the policy has the current stage's people reminded, or reminded again.
func (r Request) reminds(in Deciding) bool {
	t := r.times(in)
	return t.RemindAfter > 0 && r.Reminded < t.Reminders
}

// nextReminder is when those who have not decided are reminded next; zero: not any more.
func (r Request) nextReminder(in Deciding) time.Time {
	if !r.reminds(in) {
		return time.Time{}
	}
	at := r.worked(in, r.Roles(), r.times(in).RemindAfter)
	if !at.Before(r.ExpiresAt) {
		return time.Time{}
	}
	return at
}

// RemindNext is when somebody is reminded next: all who have not decided, or one whose do-not-disturb ends. Zero: nobody any more.
func (r Request) RemindNext() time.Time {
	next := r.RemindAt
	for _, o := range r.Owed {
		next = earlier(next, o.At)
	}
	return next
}

// earlier is the earlier of two times, where zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Remind says which of the stage's people are reminded now: of those who have not decided and are here, all when a reminder is due or the
// escalation chain has ended once more, and otherwise those whose do-not-disturb has ended since. Whoever is in do-not-disturb
// is owed it until that ends. It reports false while nothing is due.
func (r Request) Remind(in Deciding, people []Presence) (Request, []Identity, bool) {
	next := r.RemindNext()
	if r.State != Pending || next.IsZero() || in.Now.Before(next) || r.late(in.Now) {
		return r, nil, false
	}
	all := !r.RemindAt.IsZero() && !in.Now.Before(r.RemindAt)
	if all {
		if r.Told < r.Rounds {
			r.Told = r.Rounds
		} else {
			r.Reminded++
		}
		r.RemindAt = r.nextReminder(in)
	}
	before := r.Owed
	r.Owed = nil
	var told []Identity
	for _, p := range people {
		i := slices.IndexFunc(before, func(o Owed) bool { return o.Who == p.Who.ID })
		switch {
		case p.Away || !r.awaits(in.Policy, p.Who):
		case !all && i < 0:
		case !all && before[i].At.After(in.Now):
			r.Owed = append(r.Owed, before[i])
		case p.QuietUntil.After(in.Now):
			r.Owed = append(r.Owed, Owed{Who: p.Who.ID, At: p.QuietUntil})
		default:
			told = append(told, p.Who)
		}
	}
	return r, told, true
}
