package wording

import (
	"fmt"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/bot/render/block"
)

// IfNobodyActs describes what happens if nobody acts, with the times.
func (w RequestWords) IfNobodyActs(r approvers.Request, now time.Time) []*block.RichText {
	return []*block.RichText{w.IfNobody(r, ""), w.StandsStill(r, now)}
}

// IfNobody describes, in chronological order, what happens if nobody decides. On a card with several calls, the
// sentence about the deadline begins with the words in the parameter which.
func (w RequestWords) IfNobody(r approvers.Request, which string) *block.RichText {
	line := block.Say("⏳ ")
	if !r.EscalateAt.IsZero() && r.EscalateAt.Before(r.ExpiresAt) {
		line.Say(w.lead(r)+" at ").At(r.EscalateAt, block.Clock).Say(". ")
	}
	end, since := w.silence(r), " ("+block.RoughDuration(r.ExpiresAt.Sub(r.CreatedAt))+" after it was asked)"
	if which != "" {
		end, since = which+" "+strings.ToLower(end[:1])+end[1:], ""
	}
	return line.Strong(end).Say(" at ").At(r.ExpiresAt, deadlineFormat(r)).Say(since + unless(r) + ".")
}

// Deadline describes in one sentence what happens at the deadline of a request.
func (w RequestWords) Deadline(r approvers.Request) *block.RichText {
	return block.Say(w.silence(r)+" at ").At(r.ExpiresAt, deadlineFormat(r)).Say(unless(r) + ".")
}

// silence describes what happens if nobody decides.
func (w RequestWords) silence(r approvers.Request) string {
	if lead, up := w.afterSilence(r); up {
		return "Goes to " + lead
	}
	return "Rejected"
}

func deadlineFormat(r approvers.Request) string {
	if r.ExpiresAt.Sub(r.CreatedAt) < maxClock {
		return block.Clock
	}
	return block.DayTime
}

// maxClock determines how a deadline is shown. If the deadline is less than maxClock after the request was made, only
// the time of day is shown. Otherwise the day is also shown.
const maxClock = 8 * time.Hour

// unless returns the condition that prevents the effect of a deadline.
func unless(r approvers.Request) string {
	switch need := r.CurrentStage().Quorum - r.At(r.Stage); {
	case r.At(r.Stage) == 0:
		return " unless decided"
	case need > 1:
		return fmt.Sprintf(" unless %d more agree", need)
	}
	return " unless one more agrees"
}

// afterSilence simulates all escalations of a request that nobody decides. The result lead is the role that gets the
// request at its deadline. The result "up" is false if the request is rejected instead.
func (w RequestWords) afterSilence(r approvers.Request) (lead string, up bool) {
	for range 100 { // a safe limit: a policy has fewer leads and rounds
		after, _, due := r.Escalate(approvers.DecisionContext{Policy: w.Policy, Now: r.EscalateAt})
		if !due {
			break
		}
		r = after
	}
	after, _, _ := r.Expire(approvers.DecisionContext{Policy: w.Policy, Now: r.ExpiresAt})
	if after.State != approvers.Pending || len(after.Joined) == len(r.Joined) {
		return "", false
	}
	return w.Title(after.Joined[len(after.Joined)-1]), true
}

// lead simulates the next escalation of a request, and names the recipient.
func (w RequestWords) lead(r approvers.Request) string {
	_, events, ok := r.Escalate(approvers.DecisionContext{Policy: w.Policy, Now: r.EscalateAt})
	told, _ := approvers.FindEvent[approvers.Escalated](events)
	switch {
	case !ok:
		return "The next lead is asked too"
	case told.Again:
		return "Everybody is asked once more"
	}
	return w.Title(told.Lead.Name) + " is asked too"
}

// StandsStill returns the note that deadlines are stopped, if all approvers are outside their working hours. Otherwise
// StandsStill returns no note.
func (w RequestWords) StandsStill(r approvers.Request, now time.Time) *block.RichText {
	var first approvers.Role
	var opens time.Time
	for _, name := range r.Roles() {
		role, ok := w.Policy.Role(name)
		if !ok {
			continue
		}
		if role.Hours.Open(now) {
			return new(block.RichText)
		}
		if at := role.Hours.After(now, 0); opens.IsZero() || at.Before(opens) {
			first, opens = role, at
		}
	}
	if opens.IsZero() {
		return new(block.RichText)
	}
	return block.Say("🕘 Outside working hours of "+w.Title(first.Name)+" ("+hours(*first.Hours)+"): the clock stands still until ").At(opens, block.DayTime).Say(".")
}

// hours formats working hours: "Mon–Fri 09:00–17:00 Europe/Berlin".
func hours(h approvers.Hours) string {
	return workdays(h.Days) + " " + wallClock(h.From) + "–" + wallClock(h.To) + " " + h.Zone.String()
}

func wallClock(since time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(since.Hours()), int(since.Minutes())%60)
}

// workdays names the given days, beginning with Monday. Three or more consecutive days become a range.
func workdays(days [7]bool) string {
	var parts []string
	day := func(i int) time.Weekday { return time.Weekday((i + 1) % 7) }
	short := func(i int) string { return day(i).String()[:3] }
	for i := 0; i < 7; i++ {
		if !days[day(i)] {
			continue
		}
		last := i
		for last < 6 && days[day(last+1)] {
			last++
		}
		if last == i+1 {
			last = i
		}
		if part := short(i); last == i {
			parts = append(parts, part)
		} else {
			parts = append(parts, part+"–"+short(last))
		}
		i = last
	}
	if len(parts) == 1 && parts[0] == "Mon–Sun" {
		return "every day"
	}
	return strings.Join(parts, ", ")
}
