package approvers

import "time"

// Gap is a time in which nothing that people wrote or clicked reached the bot.
type Gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// LostClicks is the length of the shortest gap in which clicks are lost for good. Slack retries an event for about the
// same time, so events may be lost, too.
const LostClicks = 6 * time.Minute

// RequestGap is a gap in which a request waited. Slack delivers a click only once, so people are reminded.
type RequestGap struct {
	Gap      Gap `json:"gap"`
	Reminder int `json:"reminder"` // the number of the reminder that mentions the gap
}

// RemindOfGap makes a reminder due immediately, because a click on the request may have been lost in a gap. The
// reminder counts as one of the policy's. If reminded is set, people were reminded since the gap began: that reminder
// then mentions the gap, and no other is made. RemindOfGap returns false if people need no reminder: the request does
// not wait, was opened after the gap began, or has the gap recorded already.
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
