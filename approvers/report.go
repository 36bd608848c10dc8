package approvers

import "time"

// ReportPost configures the weekly report in Slack. Without a channel, no report is posted.
type ReportPost struct {
	Channel string
	Zone    *time.Location // the time zone in which weeks begin on Monday at midnight; nil: UTC
}

// The bot posts the report on Monday, at reportFrom or later. After a failure, the bot tries again until the same time
// of day on Wednesday. These times are in the zone of the ReportPost.
const (
	reportFrom = 9 // the hour of the day
	reportDays = 2
)

// Week is the time that a weekly report is about.
type Week struct {
	Since, Until time.Time // from Monday at midnight to the next Monday at midnight
	End          time.Time // the report is not posted from this time on
}

// Name returns the date of the week's Monday, such as 2026-11-16. The names of weeks sort in the order of the weeks.
func (w Week) Name() string { return w.Since.Format(time.DateOnly) }

// Due returns the week whose report may be posted now.
func (p ReportPost) Due(now time.Time) (Week, bool) {
	zone := p.Zone
	if zone == nil {
		zone = time.UTC
	}
	now = now.In(zone)
	monday := now.Day() - (int(now.Weekday())+6)%7 // the day may be below 1, which time.Date accepts
	at := func(day, hour int) time.Time { return time.Date(now.Year(), now.Month(), day, hour, 0, 0, 0, zone) }
	w := Week{Since: at(monday-7, 0), Until: at(monday, 0), End: at(monday+reportDays, reportFrom)}
	return w, p.Channel != "" && !now.Before(at(monday, reportFrom)) && now.Before(w.End)
}
