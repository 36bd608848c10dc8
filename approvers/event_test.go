package approvers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
)

// events lists the names of the events, in order.
func events(list []approvers.Event) string {
	var out []string
	for _, e := range list {
		name := strings.TrimPrefix(fmt.Sprintf("%T", e), "approvers.")
		switch e := e.(type) {
		case approvers.DecisionMade:
			name += " " + string(e.Decision.Kind)
		case approvers.DecisionsFell:
			name += fmt.Sprint(" ", len(e.Of))
		case approvers.PlanChanged:
			if e.Restarted {
				name += " restarted"
			}
		case approvers.StageStarted:
			name += fmt.Sprintf(" %s %d→%d", e.Why, e.From, e.Stage)
		case approvers.RequestClosed:
			name += " " + string(e.State)
		case approvers.Escalated:
			name += " " + e.Lead.Name
		case approvers.AvailabilityResolved:
			if !e.RecheckAt.IsZero() {
				name += " again"
			}
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

// TestEventsOfTransitions checks which events each transition returns.
func TestEventsOfTransitions(t *testing.T) {
	p := example()
	one := open(t, p, "issue_refund", small)   // one stage: the team lead
	three := open(t, p, "issue_refund", large) // the team lead, then two directors
	second := mustApprove(t, p, three, onLead, start)
	half := mustApprove(t, p, second, onFin1, start)
	approved := mustApprove(t, p, one, onLead, start)
	stricter := changed(func(p *approvers.Policy) {
		p.Tools[5].Rules[0].Stages[1].Quorum = 1
		p.Tools[5].Risk = approvers.Critical
	})
	at := start.Add(10 * time.Minute)
	late := start.Add(24 * time.Hour)
	values := callOf("issue_refund", small).Facts.Args
	type result struct {
		events []approvers.Event
		ok     bool
	}
	outcome := func(_ approvers.Request, events []approvers.Event, denied *approvers.Denied) result {
		return result{events, denied == nil}
	}
	silent := func(_ approvers.Request, events []approvers.Event) result { return result{events, true} }
	timed := func(_ approvers.Request, events []approvers.Event, due bool) result { return result{events, due} }
	in := deciding(p, start)
	for name, tt := range map[string]struct {
		got  result
		want string
	}{
		"open":                     {silent(approvers.Open(in, one)), "RequestOpened, StageStarted opened 0→0"},
		"approve the last stage":   {outcome(one.Approve(in, actionBy(one, onLead, start))), "DecisionMade approve, RequestApproved"},
		"approve a stage":          {outcome(three.Approve(in, actionBy(three, onLead, start))), "DecisionMade approve, StageStarted passed 0→1"},
		"approve, one of two":      {outcome(second.Approve(in, actionBy(second, onFin1, start))), "DecisionMade approve"},
		"reject":                   {outcome(half.Reject(in, actionBy(half, onFin2, start))), "DecisionMade reject, RequestClosed rejected"},
		"edit below the ceiling":   {outcome(one.Modify(in, actionBy(one, onLead, start), edited(p, one, "exec_2", `{"amount":20}`))), "ArgsEdited, StageStarted edited 0→0, DecisionMade modify, RequestApproved"},
		"edit above the ceiling":   {outcome(one.Modify(in, actionBy(one, onLead, start), edited(p, one, "exec_2", large))), "ArgsEdited, StageStarted edited 0→0, DecisionMade modify, StageStarted passed 0→1"},
		"edit after an approval":   {outcome(half.Modify(in, actionBy(half, onFin2, start), edited(p, half, "exec_2", `{"amount":901}`))), "ArgsEdited, DecisionsFell 2, StageStarted edited 1→0, DecisionMade modify"},
		"withdraw":                 {outcome(one.Withdraw(in, asker, false, "")), "RequestClosed withdrawn"},
		"revoke":                   {outcome(approved.Revoke(in, actionBy(approved, onLead, start))), "RequestClosed revoked"},
		"void":                     {outcome(one.Void(in, "why")), "RequestClosed voided"},
		"consume":                  {outcome(approved.Consume(in)), "RequestConsumed"},
		"expire":                   {timed(one.Expire(deciding(p, late))), "RequestClosed expired"},
		"escalate":                 {timed(one.Escalate(deciding(p, at))), "Escalated finance-director"},
		"refresh, nothing changed": {silent(one.Refresh(deciding(changed(func(*approvers.Policy) {}), start), values)), ""},
		"refresh, nobody is left":  {silent(half.Refresh(deciding(changed(func(p *approvers.Policy) { p.Approvers[1].Members = nil }), start), callOf("issue_refund", large).Facts.Args)), "RequestClosed voided"},
		"recheck, a higher risk":   {silent(approved.Recheck(deciding(stricter, start), values)), "RequestReopened, DecisionsFell 1, StageStarted reopened 0→0"},
		"hand on":                  {outcome(three.HandOn(in, actionBy(three, onLead, start), onFin1)), "PersonInvited"},
		"ask":                      {outcome(one.Say(in, actionBy(one, onLead, start), approvers.Question)), "RemarkMade"},
		"nobody can be reached":    {silent(one.ResolveAvailability(in, nil)), "LeadCalled, AvailabilityResolved"},
		"everybody is here":        {silent(one.ResolveAvailability(in, here(onLead))), "AvailabilityResolved"},
	} {
		if !tt.got.ok {
			t.Errorf("%s: denied, or not due", name)
		}
		if got := events(tt.got.events); got != tt.want {
			t.Errorf("%s: %s\nwant %s", name, got, tt.want)
		}
	}
}

// TestNetEvents checks that NetEvents drops events that later events of the same transaction replace.
func TestNetEvents(t *testing.T) {
	first, second := approvers.Stage{Approver: "a"}, approvers.Stage{Approver: "b"}
	replaced := approvers.StageStarted{Why: approvers.StageReplaced, From: 1, After: second}
	passed := approvers.StageStarted{Why: approvers.StagePassed, After: first, Stage: 1}
	edited := approvers.StageStarted{Why: approvers.StageEdited, From: 1, After: second}
	for _, tt := range []struct {
		name   string
		state  approvers.State
		events []approvers.Event
		want   string
	}{
		{"two stages", approvers.Pending, []approvers.Event{replaced, passed}, "StageStarted passed 1→1"},
		{"an edit, then the next stage", approvers.Pending, []approvers.Event{edited, passed}, "StageStarted edited 1→1"},
		{"a stage that was passed", approvers.Approved, []approvers.Event{edited, approvers.RequestApproved{}}, "RequestApproved"},
		{"an edit after a new plan", approvers.Pending, []approvers.Event{approvers.PlanChanged{}, replaced, approvers.ArgsEdited{}, edited}, "ArgsEdited, StageStarted edited 1→0"},
		{"a new plan", approvers.Pending, []approvers.Event{approvers.PlanChanged{Restarted: true}, replaced}, "PlanChanged restarted, StageStarted replaced 1→0"},
	} {
		if got := events(approvers.Request{State: tt.state}.NetEvents(tt.events)); got != tt.want {
			t.Errorf("%s: %s; want %s", tt.name, got, tt.want)
		}
	}
}
