package directory

import (
	"context"
	"time"

	"github.com/slack-go/slack"
)

// quietPatience is the time limit for asking Slack whether a person can be disturbed. If Slack does not answer, the
// person counts as reachable.
const quietPatience = 3 * time.Second

// QuietUntil returns the end of a person's do-not-disturb. The time is zero if the person can be disturbed, or if Slack
// does not answer.
func (d *Users) QuietUntil(ctx context.Context, user string) time.Time {
	status, err := d.quiet.Get(ctx, user, false, func() (slack.DNDStatus, error) {
		ctx, cancel := context.WithTimeout(ctx, quietPatience)
		defer cancel()
		s, err := d.api.GetDNDInfoContext(ctx, &user)
		if err != nil {
			d.log.InfoContext(ctx, "Slack does not say whether somebody can be disturbed, so the person counts as reachable", "cause", err)
			return slack.DNDStatus{}, nil // cached, so that Slack is not asked again for a while
		}
		return *s, nil
	})
	if err != nil {
		return time.Time{}
	}
	return quietEnd(status, d.now())
}

// quietEnd returns the end of a current do-not-disturb, or zero.
func quietEnd(s slack.DNDStatus, now time.Time) (until time.Time) {
	start, end := time.Unix(int64(s.NextStartTimestamp), 0), time.Unix(int64(s.NextEndTimestamp), 0)
	if s.Enabled && !now.Before(start) && now.Before(end) {
		until = end
	}
	if snooze := time.Unix(int64(s.SnoozeEndTime), 0); s.SnoozeEnabled && now.Before(snooze) && snooze.After(until) {
		until = snooze
	}
	return until.UTC()
}
