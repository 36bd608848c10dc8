package approvers

import (
	"slices"
	"time"
)

// DeferredReminder is a reminder for one person that is sent later: when the person's do-not-disturb ends, or when the
// person has had the card for the time remind_after.
type DeferredReminder struct {
	Who PersonID  `json:"who"`
	At  time.Time `json:"at"`
}

// reminds reports whether the policy allows another reminder in the current stage.
func (r Request) reminds(in DecisionContext) bool {
	t := r.times(in)
	return t.RemindAfter > 0 && r.Reminded < t.Reminders
}

// nextReminder returns the time of the next reminder for people who have not decided. If no reminder is due before the
// deadline, nextReminder returns zero.
func (r Request) nextReminder(in DecisionContext) time.Time {
	if !r.reminds(in) {
		return time.Time{}
	}
	at := r.worked(in, r.Roles(), r.times(in).RemindAfter)
	if !at.Before(r.ExpiresAt) {
		return time.Time{}
	}
	return at
}

// RemindNext returns when the next reminder is due. The reminder is for all people who have not decided, or for one
// person whose reminder was deferred. If no reminder is scheduled, RemindNext returns zero.
func (r Request) RemindNext() time.Time {
	next := r.RemindAt
	for _, o := range r.DeferredReminders {
		next = earlier(next, o.At)
	}
	return next
}

// earlier returns the earlier of two times. A zero time counts as not set.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Remind returns the people to remind now, in a ReminderDue event. Remind reminds only people who are present and have
// not decided. If a reminder for everybody is due, or if all people are notified once more after the last lead, Remind
// reminds all of these people. Otherwise, Remind reminds only people whose deferred reminder is due. If a person is in
// do-not-disturb, the person's reminder waits until do-not-disturb ends. A person who joined the stage, or got the
// card, less than half of remind_after ago is not reminded now, but with the next reminder. If there is no next
// reminder, the person's reminder is deferred (tooEarly). A reminder that a gap caused goes only to people who could
// decide before the gap. A deferred reminder that is not due yet stays, unless the person is reminded earlier. Remind
// returns false if no reminder is due.
func (r Request) Remind(in DecisionContext, people []Presence) (Request, []Event, bool) {
	next := r.RemindNext()
	if r.State != Pending || next.IsZero() || in.Now.Before(next) || r.late(in.Now) {
		return r, nil, false
	}
	all := !r.RemindAt.IsZero() && !in.Now.Before(r.RemindAt)
	round := all && r.Told < r.Rounds
	if all {
		if round {
			r.Told = r.Rounds
		} else {
			r.Reminded++
		}
		r.RemindAt = r.nextReminder(in)
	}
	before := r.DeferredReminders
	r.DeferredReminders = nil
	var told []Identity
	for _, p := range people {
		i := slices.IndexFunc(before, func(o DeferredReminder) bool { return o.Who == p.Who.ID })
		later := i >= 0 && before[i].At.After(in.Now)
		skipped := !all || askedSinceGap(r, in.Policy, p)
		wait, early := tooEarly(r, in, p, round)
		early = early && all && !remindsOfGap(r)
		switch {
		case !r.awaits(in.Policy, p.Who):
		case later && (skipped || p.Away || early):
			r.DeferredReminders = append(r.DeferredReminders, before[i])
		case p.Away, skipped && i < 0:
		case early:
			r = deferIfLast(r, in, p.Who.ID, wait)
		case p.QuietUntil.After(in.Now):
			r.DeferredReminders = append(r.DeferredReminders, DeferredReminder{Who: p.Who.ID, At: p.QuietUntil})
		default:
			told = append(told, p.Who)
		}
	}
	return r, []Event{ReminderDue{People: told}}, true
}

// deferIfLast defers a person's reminder by the time wait. If everybody gets another reminder later, or the stage ends
// before the deferred time, deferIfLast does nothing.
func deferIfLast(r Request, in DecisionContext, who PersonID, wait time.Duration) Request {
	if at := r.worked(in, r.Roles(), wait); r.RemindAt.IsZero() && at.Before(r.ExpiresAt) {
		r.DeferredReminders = append(r.DeferredReminders, DeferredReminder{Who: who, At: at})
	}
	return r
}

// tooEarly reports whether a person joined the stage, or got the card, after the stage began and less than half of
// remind_after ago. The result wait is the time until remind_after has passed since then. If all people are notified
// once more, escalate_after takes the place of remind_after, and only the time of the card counts.
func tooEarly(r Request, in DecisionContext, p Presence, round bool) (wait time.Duration, early bool) {
	since, after := p.CardAt, r.times(in).EscalateAfter
	if !round {
		joined, _ := r.TurnOf(in.Policy, p.Who)
		since, after = latest(since, joined), r.times(in).RemindAfter
	}
	had := in.Now.Sub(since)
	return after - had, since.After(r.StageAt) && had < after/2
}

// remindsOfGap reports whether a gap caused the last reminder.
func remindsOfGap(r Request) bool { return r.Gap != nil && r.Gap.Reminder == r.Reminded+r.Told }

// askedSinceGap reports whether both of these are true: a gap caused the last reminder, and the person could not decide
// or did not have the card when the gap began. Such a gap can't have lost a click of the person.
func askedSinceGap(r Request, p *Policy, one Presence) bool {
	if !remindsOfGap(r) {
		return false
	}
	since, ok := r.TurnOf(p, one.Who)
	return ok && !latest(since, one.CardAt).Before(r.Gap.Gap.From)
}
