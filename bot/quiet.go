package bot

import (
	"context"
	"time"

	"github.com/slack-go/slack"
)

// quietPatience is how long Slack may take to say whether somebody can be disturbed. Nothing waits for that: who is not known counts as reachable.
const quietPatience = 3 * time.Second

// quietUntil is when a person's do-not-disturb ends; zero for somebody who can be disturbed, or of whom Slack does not say.
func (b *Bot) quietUntil(ctx context.Context, user string) time.Time {
	status, err := b.people.quiet.get(user, false, func() (slack.DNDStatus, error) {
		ctx, cancel := context.WithTimeout(ctx, quietPatience)
		defer cancel()
		s, err := b.api.GetDNDInfoContext(ctx, &user)
		if err != nil {
			b.Log.Info("Slack does not say whether somebody can be disturbed, so they count as reachable", "user", user, "cause", err)
			return slack.DNDStatus{}, nil // not asked again for a while: it would be the same for everybody else
		}
		return *s, nil
	})
	if err != nil {
		return time.Time{}
	}
	return quietEnd(status, b.Now())
}

// quietEnd is the end of a do-not-disturb that is on now.
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
