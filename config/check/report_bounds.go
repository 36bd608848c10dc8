package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/yamldoc"
)

// bounds lists caps and budgets.
func bounds(p *approvers.Policy) []string {
	var out []string
	if p.Caps.Requester.Count > 0 {
		out = append(out, fmt.Sprintf("requests that one person causes: %s; the approval of each further one needs a typed value", p.Caps.Requester))
	}
	if p.Caps.Approver > 0 {
		out = append(out, fmt.Sprintf("open cards at one place: %d; further requests are queued, and their approval needs a typed value", p.Caps.Approver))
	}
	if text := budgetText(p.Budgets); text != "" {
		out = append(out, "one person and day (UTC): "+text)
	}
	for _, a := range p.Agents {
		if a.Budgets != nil && *a.Budgets != p.Budgets {
			out = append(out, "one person and day (UTC), with agent "+a.Name+": "+budgetText(*a.Budgets))
		}
	}
	return out
}

func budgetText(b approvers.Budgets) string {
	var parts []string
	if b.Tokens > 0 {
		parts = append(parts, yamldoc.Count(b.Tokens, "token"))
	}
	if b.Calls > 0 {
		parts = append(parts, yamldoc.Count(b.Calls, "tool call"))
	}
	return strings.Join(parts, ", ")
}

// workingHours lists the roles with working hours, in file order.
func workingHours(p *approvers.Policy) []Working {
	var out []Working
	for _, r := range p.Approvers {
		if r.Hours != nil {
			out = append(out, Working{Title: r.Title, Hours: hoursText(r.Hours)})
		}
	}
	return out
}

// hoursText describes when a role works: mon-fri 09:00-17:00 Europe/Berlin.
func hoursText(h *approvers.Hours) string {
	var days []string
	for i := range config.Weekdays { // a week begins on Monday
		from := (i + 1) % len(config.Weekdays)
		if !h.Days[from] || i > 0 && h.Days[i%len(config.Weekdays)] {
			continue
		}
		to := from
		for to != 0 && h.Days[(to+1)%len(config.Weekdays)] {
			to = (to + 1) % len(config.Weekdays)
		}
		if to == from {
			days = append(days, config.Weekdays[from])
		} else {
			days = append(days, config.Weekdays[from]+"-"+config.Weekdays[to])
		}
	}
	text := fmt.Sprintf("%s %s-%s %s", strings.Join(days, ", "), clockText(h.From), clockText(h.To), h.Zone)
	switch n := len(h.Holidays); {
	case n == 1:
		text += ", but not on " + h.Holidays[0]
	case n > 1:
		text += fmt.Sprintf(", but not on %d holidays", n)
	}
	if h.Outside == approvers.OutsideEscalates {
		return text + "; outside of these hours the lead is told immediately"
	}
	return text + "; outside of these hours no waiting time passes"
}

func clockText(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60)
}

// keeping describes who may pause everything, how long data is kept, and where the heads of the audit history, the
// weekly report and the notices for the operators are posted.
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
		out = append(out, "signed heads of the history are posted to "+p.Audit.Channel+", at most one every "+yamldoc.FormatDuration(p.Audit.Every))
	}
	if p.Report.Channel != "" {
		out = append(out, fmt.Sprintf("a report about the past week is posted to %s each Monday at 09:00 (%s)", p.Report.Channel, p.Report.Zone))
	}
	if p.Operators.Channel != "" {
		out = append(out, "problems of the installation are posted to "+p.Operators.Channel)
	}
	return out
}

// ageText writes how long something is kept: 90 days, 7 years.
func ageText(d time.Duration) string {
	const oneDay = 24 * time.Hour
	const oneYear = 365 * oneDay
	switch {
	case d%oneYear == 0:
		return yamldoc.Count(int(d/oneYear), "year")
	case d%oneDay == 0:
		return yamldoc.Count(int(d/oneDay), "day")
	}
	return yamldoc.FormatDuration(d)
}
