package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/config"
)

// planSummary is the plan of a call in the notation of fixtures.
type planSummary struct {
	verdict string
	risk    approvers.Risk
	who     []string
	why     []string
}

func (o planSummary) String() string {
	words := o.verdict
	if o.risk != 0 {
		words += ", " + o.risk.String() + " risk"
	}
	if len(o.who) > 0 {
		words += ", " + strings.Join(o.who, ", then ")
	}
	if o.verdict == string(approvers.Refuse) && len(o.why) > 0 {
		words += ": " + o.why[len(o.why)-1]
	}
	return words
}

// planOf plans a fixture's call under a policy. A call that the bot would reject has the verdict refused.
func planOf(p *approvers.Policy, tools *agent.Registry, x config.Fixture, now time.Time) planSummary {
	call, err := callOf(p, tools, x, now)
	if err != nil {
		return planSummary{verdict: string(approvers.Refuse), why: []string{err.Error()}}
	}
	plan := p.Plan(call)
	o := planSummary{verdict: string(plan.Verdict), risk: plan.Risk, why: plan.Why}
	for _, s := range plan.Stages {
		o.who = append(o.who, s.String())
	}
	return o
}

// unmet lists the differences from a fixture's expectation.
func unmet(e config.Expectation, o planSummary) []string {
	var out []string
	if e.Verdict != "" && e.Verdict != o.verdict {
		out = append(out, fmt.Sprintf("verdict: %s, and %s was expected", o.verdict, e.Verdict))
	}
	if e.Risk != 0 && e.Risk != o.risk {
		out = append(out, fmt.Sprintf("risk: %s, and %s was expected", riskName(o.risk), e.Risk))
	}
	if e.Who != nil && !slices.Equal(e.Who, o.who) {
		out = append(out, fmt.Sprintf("who: %s, and %s was expected", people(o.who), people(e.Who)))
	}
	if e.Why != "" && !slices.ContainsFunc(o.why, func(w string) bool { return strings.Contains(w, e.Why) }) {
		out = append(out, fmt.Sprintf("why: no reason says %q", e.Why))
	}
	return out
}

// changes lists the differences between two plans.
func changes(before, now planSummary) []string {
	var out []string
	if before.verdict != now.verdict {
		out = append(out, fmt.Sprintf("verdict: %s → %s", before.verdict, now.verdict))
	}
	if before.risk != now.risk {
		out = append(out, fmt.Sprintf("risk: %s → %s", riskName(before.risk), riskName(now.risk)))
	}
	if !slices.Equal(before.who, now.who) {
		out = append(out, fmt.Sprintf("who: %s → %s", people(before.who), people(now.who)))
	}
	return out
}

// riskName names a risk, or a call without one.
func riskName(r approvers.Risk) string {
	if r == 0 {
		return "none"
	}
	return r.String()
}

func people(who []string) string {
	if len(who) == 0 {
		return "nobody"
	}
	return strings.Join(who, ", then ")
}
