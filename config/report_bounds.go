package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"countersign/approvers"
)

// bounds say how much is put before people and how much one person may use up.
func bounds(p *approvers.Policy) []string {
	var out []string
	if p.Caps.Requester.Count > 0 {
		out = append(out, fmt.Sprintf("requests that one person causes: %s; beyond it each asks for a typed value", p.Caps.Requester))
	}
	if p.Caps.Approver > 0 {
		out = append(out, fmt.Sprintf("open cards at one place: %d; what comes on top waits in line, and asks for a typed value", p.Caps.Approver))
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
		parts = append(parts, counted(b.Tokens, "token"))
	}
	if b.Calls > 0 {
		parts = append(parts, counted(b.Calls, "tool call"))
	}
	return strings.Join(parts, ", ")
}

// counted is a number with its noun: 1 token, 200,000 tokens.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return grouped(strconv.Itoa(n)) + " " + noun
}

// workingHours are the roles that have some, in file order.
func workingHours(p *approvers.Policy) []Working {
	var out []Working
	for _, r := range p.Approvers {
		if r.Hours != nil {
			out = append(out, Working{Title: r.Title, Hours: hoursText(r.Hours)})
		}
	}
	return out
}

// hoursText says when a role works: mon-fri 09:00-17:00 Europe/Berlin.
func hoursText(h *approvers.Hours) string {
	var days []string
	for i := range weekdays { // a week begins on Monday
		from := (i + 1) % len(weekdays)
		if !h.Days[from] || i > 0 && h.Days[i%len(weekdays)] {
			continue
		}
		to := from
		for to != 0 && h.Days[(to+1)%len(weekdays)] {
			to = (to + 1) % len(weekdays)
		}
		if to == from {
			days = append(days, weekdays[from])
		} else {
			days = append(days, weekdays[from]+"-"+weekdays[to])
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
		return text + "; outside of it the lead is told at once"
	}
	return text + "; outside of it the clocks stand still"
}

func clockText(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60)
}
