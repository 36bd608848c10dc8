package approvers

import "time"

// Gap is a period in which no message or click of people reached the bot.
type Gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// LostClicks is the length of a gap after which the bot reminds people. Slack repeats the delivery of an event for
// about this time, so a longer gap may also lose events. Slack never repeats a click, so even a shorter gap may lose
// clicks.
const LostClicks = 6 * time.Minute

// RequestGap is a gap in which a request waited. Slack delivers a click only once, so the bot lost every click in the
// gap. Therefore the bot reminds people.
type RequestGap struct {
	Gap      Gap `json:"gap"`
	Reminder int `json:"reminder"` // the number of the reminder that mentions the gap
}

// RemindOfGap makes a reminder due immediately, because the bot may have lost a click on the request in a gap. This
// reminder counts towards the policy's number of reminders. If reminded is set, people were already reminded since the
// gap began. In this case, there is no new reminder, and the earlier reminder mentions the gap. RemindOfGap returns
// false if the request is not pending, is past its deadline, or was opened after the gap began. RemindOfGap also
// returns false if the request already records the gap.
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
