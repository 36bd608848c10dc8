package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// Limits on retention. There is a minimum, because data younger than a day may be in use. There is also a maximum of a
// hundred years.
const (
	oneDay     = 24 * time.Hour
	oneYear    = 365 * oneDay
	leastKept  = oneDay
	leastSaved = 30 * oneDay // minimum for the history, because people may investigate a call weeks later
	mostKept   = 100 * oneYear
)

// readRetention reads the retention of conversations and of the history.
func readRetention(v yamldoc.Value) approvers.Retention {
	var r approvers.Retention
	f := v.Fields("conversations", "records")
	if v.IsMapping() && !f.Has("conversations") {
		v.Wrong("conversations is missing", "add conversations: 90d, the time for which a conversation is kept after its last message")
	}
	kept, ok := readAge(f, "conversations", &r.Conversations, leastKept)
	saved, okSaved := readAge(f, "records", &r.Records, leastSaved)
	if ok && okSaved && r.Records < r.Conversations {
		saved.Wrongf("write at least "+kept.Shown()+", or leave it out to keep the history for ever",
			"the history is kept for %s, and conversations for %s: there would be calls without their history", saved.Shown(), kept.Shown())
	}
	return r
}

// Limits on the interval between posts of signed heads.
const (
	postsEvery  = time.Hour
	leastPosted = time.Minute
	mostPosted  = oneDay
)

// readAuditPost reads the channel in which signed heads of the history are posted.
func readAuditPost(v yamldoc.Value) approvers.AuditPost {
	p := approvers.AuditPost{Every: postsEvery}
	f := v.Fields("channel", "every")
	if p.Channel = readPostChannel(v, f, "#audit", "signed heads of the history are posted"); !f.Has("channel") {
		return p
	}
	if f.Duration("every", &p.Every) && (p.Every < leastPosted || p.Every > mostPosted) {
		f["every"].Wrongf("write a time from 1m to 1d, such as 10m", "%s is not a time between two messages", f["every"].Shown())
	}
	return p
}

// readReportPost reads the channel in which the weekly report is posted.
func readReportPost(v yamldoc.Value) approvers.ReportPost {
	p := approvers.ReportPost{Zone: time.UTC}
	f := v.Fields("channel", "zone")
	p.Channel = readPostChannel(v, f, "#approvals", "a report is posted each Monday")
	if z, ok := f["zone"]; ok {
		p.Zone = readZone(z)
	}
	return p
}

// readOperatorPost reads the channel in which notices for the operators are posted.
func readOperatorPost(v yamldoc.Value) approvers.OperatorPost {
	return approvers.OperatorPost{Channel: readPostChannel(v, v.Fields("channel"), "#ops", "problems of the installation are posted")}
}

// readPostChannel reads the channel in which something is posted.
func readPostChannel(v yamldoc.Value, f yamldoc.Fields, like, what string) string {
	channel, ok := f["channel"]
	if !ok {
		if v.IsMapping() {
			v.Wrong("channel is missing", fmt.Sprintf("add channel: %q, where %s", like, what))
		}
		return ""
	}
	name, ok := channel.Text(fmt.Sprintf("a channel such as %q", like))
	if ok && !isChannel(name) {
		channel.Wrong(yamldoc.Quote(name)+" is not a channel", yamldoc.OrHint(meantChannel(name), fmt.Sprintf("write a channel such as %q or C0123ABCD", like)))
	}
	return name
}

// readAge reads a retention time.
func readAge(f yamldoc.Fields, key string, to *time.Duration, least time.Duration) (yamldoc.Value, bool) {
	v, ok := f[key]
	if !ok {
		return v, false
	}
	const hint = "write how long it is kept, such as 90d or 7y"
	if n, ok := v.Integer(); ok {
		v.Wrongf("write "+n+"d for days; the units are h, d and y", "%s has no unit", n)
		return v, false
	}
	text, ok := v.Text("how long it is kept, such as 90d or 7y")
	if !ok {
		return v, false
	}
	d, err := parseAge(text)
	switch {
	case err != nil:
		v.Wrong(yamldoc.Quote(text)+" is not a time", hint)
	case d < least:
		v.Wrongf(hint, "%s is too short: the shortest is %s", yamldoc.Quote(text), yamldoc.FormatDuration(least))
	case d > mostKept:
		v.Wrong(yamldoc.Quote(text)+" is too long: the longest is 100y", "leave it out to keep it for ever")
	default:
		*to = d
		return v, true
	}
	return v, false
}

// parseAge parses a duration that may start with a number of years. A year has 365 days.
func parseAge(text string) (time.Duration, error) {
	years, rest, found := strings.Cut(text, "y")
	if !found {
		return yamldoc.ParseDuration(text)
	}
	n, err := strconv.Atoi(years)
	if err != nil || n < 0 || n > 200 {
		return 0, fmt.Errorf("years: %q", years)
	}
	if rest == "" {
		return time.Duration(n) * oneYear, nil
	}
	more, err := yamldoc.ParseDuration(rest)
	if err == nil && more < 0 {
		err = fmt.Errorf("negative: %q", rest)
	}
	return time.Duration(n)*oneYear + more, err
}
