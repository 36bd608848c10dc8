package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"countersign/approvers"
)

// How long things may be kept. What is younger than a day may still be worked on; Slack's calendar ends before a hundred years do.
const (
	oneDay     = 24 * time.Hour
	oneYear    = 365 * oneDay
	leastKept  = oneDay
	leastSaved = 30 * oneDay // of the history: whoever looks into something does so within weeks
	mostKept   = 100 * oneYear
)

// retention reads how long conversations and the history are kept.
func (v value) retention() approvers.Retention {
	var r approvers.Retention
	f := v.fields("conversations", "records")
	if v.isMapping() && !f.has("conversations") {
		v.wrong("conversations is missing", "add conversations: 90d, for how long what people wrote is kept after the last message")
	}
	kept, ok := f.age("conversations", &r.Conversations, leastKept)
	saved, okSaved := f.age("records", &r.Records, leastSaved)
	if ok && okSaved && r.Records < r.Conversations {
		saved.wrongf("write at least "+kept.shown()+", or leave it out to keep the history for ever",
			"the history is kept for %s, and conversations for %s: there would be calls without their history", saved.shown(), kept.shown())
	}
	return r
}

// How often signed heads are posted.
const (
	postsEvery  = time.Hour
	leastPosted = time.Minute
	mostPosted  = oneDay
)

// auditPost reads where signed heads of the history are posted.
func (v value) auditPost() approvers.AuditPost {
	p := approvers.AuditPost{Every: postsEvery}
	f := v.fields("channel", "every")
	channel, ok := f["channel"]
	if !ok {
		if v.isMapping() {
			v.wrong("channel is missing", `add channel: "#audit", where signed heads of the history are posted`)
		}
		return p
	}
	p.Channel, ok = channel.text(`a channel such as "#audit"`)
	if ok && !isChannel(p.Channel) {
		channel.wrong(quote(p.Channel)+" is no channel", `write a channel such as "#audit" or C0123ABCD`)
	}
	if f.duration("every", &p.Every) && (p.Every < leastPosted || p.Every > mostPosted) {
		f["every"].wrongf("write a time from 1m to 1d, such as 10m", "%s is no time between two messages", f["every"].shown())
	}
	return p
}

// age reads how long something is kept.
func (f fieldset) age(key string, to *time.Duration, least time.Duration) (value, bool) {
	v, ok := f[key]
	if !ok {
		return v, false
	}
	const hint = "write how long it is kept, such as 90d or 7y"
	if n, ok := v.node.(*ast.IntegerNode); ok {
		v.wrongf("write "+n.GetToken().Value+"d for days; the units are h, d and y", "%s has no unit", n.GetToken().Value)
		return v, false
	}
	text, ok := v.text("how long it is kept, such as 90d or 7y")
	if !ok {
		return v, false
	}
	d, err := parseAge(text)
	switch {
	case err != nil:
		v.wrong(quote(text)+" is not a time", hint)
	case d < least:
		v.wrongf(hint, "%s is too short: the shortest is %s", quote(text), span(least))
	case d > mostKept:
		v.wrong(quote(text)+" is too long: the longest is 100y", "leave it out to keep it for ever")
	default:
		*to = d
		return v, true
	}
	return v, false
}

// parseAge reads a time with years of 365 days in front.
func parseAge(text string) (time.Duration, error) {
	years, rest, found := strings.Cut(text, "y")
	if !found {
		return parseDuration(text)
	}
	n, err := strconv.Atoi(years)
	if err != nil || n < 0 || n > 200 {
		return 0, fmt.Errorf("years: %q", years)
	}
	if rest == "" {
		return time.Duration(n) * oneYear, nil
	}
	more, err := parseDuration(rest)
	if err == nil && more < 0 {
		err = fmt.Errorf("negative: %q", rest)
	}
	return time.Duration(n)*oneYear + more, err
}

// pausers reports what paused_by names that is no approver.
func (c *checker) pausers() {
	for i, name := range c.policy.PausedBy {
		at := fmt.Sprintf("paused_by[%d]", i)
		switch _, ok := c.policy.Role(name); {
		case slices.Contains(c.policy.PausedBy[:i], name):
			c.odd(at, name+" is named twice", "remove one of them")
		case !ok:
			c.wrong(at, quote(name)+" is no approver", orHint(didYouMean(name, c.roleNames()), "the approvers are "+strings.Join(c.roleNames(), ", ")))
		}
	}
}

// pauses reports whether a role's people may pause everything.
func (c *checker) pauses(role string) bool { return slices.Contains(c.policy.PausedBy, role) }

// keeping says who may pause everything, how long what is kept, and where the history is sealed.
func keeping(p *approvers.Policy) []string {
	var out []string
	var titles []string
	for _, name := range p.PausedBy {
		if role, ok := p.Role(name); ok && !slices.Contains(titles, role.Title) {
			titles = append(titles, role.Title)
		}
	}
	if len(titles) > 0 {
		out = append(out, "everything may be paused by "+strings.Join(titles, ", ")+", and by the operator")
	}
	if p.Retention.Conversations > 0 {
		out = append(out, "conversations are erased "+ageText(p.Retention.Conversations)+" after their last message")
	}
	if p.Retention.Records > 0 {
		out = append(out, "the history of a call is removed after "+ageText(p.Retention.Records))
	}
	if p.Audit.Channel != "" {
		out = append(out, "signed heads of the history are posted to "+p.Audit.Channel+", one in "+span(p.Audit.Every)+" at most")
	}
	return out
}

// ageText is how long something is kept: 90 days, 7 years.
func ageText(d time.Duration) string {
	switch {
	case d%oneYear == 0:
		return counted(int(d/oneYear), "year")
	case d%oneDay == 0:
		return counted(int(d/oneDay), "day")
	}
	return span(d)
}
