package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
)

// printPlan prints the plan of a call with its times.
func printPlan(out io.Writer, p *approvers.Policy, c approvers.Call, plan approvers.Plan) {
	fmt.Fprintf(out, "%s: %s, %s risk\n", c.Tool, verdictWords[plan.Verdict], plan.Risk)
	if len(plan.Stages) == 0 {
		return
	}
	in := approvers.DecisionContext{Policy: p, Now: c.Facts.Now}
	r, _ := approvers.Open(in, approvers.Request{Tool: c.Tool, Agent: c.Facts.Agent, Plan: waiting(plan), Facts: approvers.AskFacts{Requesters: c.Requesters}})
	for i, s := range plan.Stages {
		fmt.Fprintf(out, "  stage %d of %d  %s\n", i+1, len(plan.Stages), stageWords(p, s))
	}
	fmt.Fprintf(out, "  first stage   until %s", r.ExpiresAt.UTC().Format("2006-01-02 15:04")+" UTC")
	for up := r; ; {
		if up.EscalateAt.IsZero() {
			break
		}
		next, events, due := up.Escalate(approvers.DecisionContext{Policy: p, Now: up.EscalateAt})
		told, _ := approvers.FindEvent[approvers.Escalated](events)
		if !due || told.Again || !up.EscalateAt.Before(r.ExpiresAt) {
			break
		}
		fmt.Fprintf(out, "; %s joins at %s", told.Lead.Name, clockText(up.EscalateAt, c.Facts.Now))
		up = next
	}
	fmt.Fprintln(out)
	t, _ := p.Tool(c.Tool, c.Facts.Agent)
	silence := "it is rejected"
	if t.OnExpiry == approvers.ExpiryEscalates {
		silence = "it goes to the next lead; when there is none, it is rejected"
	}
	fmt.Fprintf(out, "  silence       %s\n", silence)
	if barred := barredWords(c, plan); barred != "" {
		fmt.Fprintf(out, "  barred        %s\n", barred)
	}
}

// clockText formats a time, with its day unless that is the given day.
func clockText(t, day time.Time) string {
	t, day = t.UTC().Truncate(time.Second), day.UTC()
	form := "15:04"
	if t.Second() != 0 {
		form = time.TimeOnly
	}
	if t.YearDay() != day.YearDay() || t.Year() != day.Year() {
		form = time.DateOnly + " " + form
	}
	return t.Format(form)
}

// barredWords lists who can't approve the call, with the reasons.
func barredWords(c approvers.Call, plan approvers.Plan) string {
	if plan.SelfOK {
		return ""
	}
	var parts []string
	for _, p := range plan.Requesters {
		why := "who asked"
		if !slices.Contains(c.Requesters, p) {
			why = "whose words the model was given"
		}
		parts = append(parts, p.User()+", "+why)
	}
	return strings.Join(parts, "; ")
}

// waiting returns a plan as it would be outside observe mode.
func waiting(plan approvers.Plan) approvers.Plan {
	if plan.Verdict == approvers.Observed {
		plan.Verdict = plan.Would
	}
	return plan
}

var verdictWords = map[approvers.Verdict]string{
	approvers.Auto: "runs without asking", approvers.Ask: "waits for people", approvers.Refuse: "is refused",
	approvers.Observed: "is not run, because the policy only observes",
}

// stageWords describes a stage with its people.
func stageWords(p *approvers.Policy, s approvers.Stage) string {
	words := s.String()
	var members []string
	for _, name := range s.Roles() {
		role, _ := p.Role(name)
		for _, m := range role.Members {
			who := m.Value
			if m.Kind == approvers.MemberGroup {
				who = "@" + who
			}
			members = append(members, who)
		}
	}
	if s.Group != "" {
		return words + " (its people who hold the role)"
	}
	return words + " (" + strings.Join(members, ", ") + ")"
}
