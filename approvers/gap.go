package approvers

import "time"

// Gap is a time in which nothing that people wrote or clicked reached the bot.
type Gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// LostClicks is the length from which clicks of a gap were lost for good and events may have been: Slack tries to
// deliver an event for about as long.
const LostClicks = 6 * time.Minute

// RequestGap is a gap in which a request waited. Slack delivers a click only once, so people are reminded.
type RequestGap struct {
	Gap      Gap `json:"gap"`
	Reminder int `json:"reminder"` // the number of the reminder that says so
}

// RemindOfGap makes a reminder due at once, because a click on the request may have been lost in a gap. The reminder
// counts as one of the policy's. If one was made since the gap began, it is the one that says so. RemindOfGap returns
// false if people need none: the request does not wait, was not shown before the gap, or the gap is known.
func RemindOfGap(r Request, now time.Time, gap Gap, reminded bool) (Request, bool) {
	if r.State != Pending || r.late(now) || !r.CreatedAt.Before(gap.From) || r.Gap != nil && r.Gap.Gap.From.Equal(gap.From) {
		return r, false
	}
	if reminded {
		r.Gap = &RequestGap{Gap: gap, Reminder: r.Reminded + r.Told}
		return r, true
	}
	r.Gap = &RequestGap{Gap: gap, Reminder: r.Reminded + r.Told + 1}
	r.RemindAt = now
	return r, true
}
