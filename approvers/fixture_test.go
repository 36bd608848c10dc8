package approvers_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
)

// The people of the tests. The example policy names U0001 to U0004 as approvers. Some tests add U0005 and U0006.
var (
	onSupport = person("U0001")
	onLead    = person("U0002")
	onFin1    = person("U0003")
	onFin2    = person("U0004")
	asker     = person("U0100")
	bystander = person("U0200")

	onEnterprise = approvers.Identity{ID: approvers.Who("E0001", "W0002"), Local: "U0002", Name: "W0002"} // a team lead in an enterprise
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func person(user string) approvers.Identity {
	return approvers.Identity{ID: approvers.Who("T0001", user), Name: user, Email: ""}
}

func users(ids ...string) []approvers.Member {
	var out []approvers.Member
	for _, id := range ids {
		out = append(out, approvers.Member{Kind: approvers.MemberUser, Value: id})
	}
	return out
}

// amountAbove returns the condition of the policy's only rule, compiled as package config would compile it.
func amountAbove(limit float64) approvers.Condition {
	return approvers.Condition{Text: "args.amount > 500", Eval: func(f approvers.Facts) (bool, error) {
		amount, ok := f.Args["amount"].(float64)
		if !ok {
			return false, errors.New("no such key: amount")
		}
		return amount > limit, nil
	}}
}

// Conditions that always match. The condition named failing can't be evaluated, so it counts as matched.
var (
	always  = approvers.Condition{Text: "true", Eval: func(approvers.Facts) (bool, error) { return true, nil }}
	failing = approvers.Condition{Text: "args.gone", Eval: func(approvers.Facts) (bool, error) { return false, errors.New("no such key: gone") }}
)

// example returns the first policy of docs/policy.md as plain values.
func example() *approvers.Policy {
	return &approvers.Policy{
		Hash: "policy-1",
		Defaults: approvers.Defaults{
			ExpiresAfter: 30 * time.Minute, EscalateAfter: 10 * time.Minute, RunWithin: 15 * time.Minute,
			UnknownTool: approvers.ToolPolicy{Risk: approvers.Critical, Confirm: true, WithPreview: true},
		},
		Tools: []approvers.ToolPolicy{
			{Name: "search_orders", Risk: approvers.Low},
			{Name: "update_shipping_address", Risk: approvers.Medium, MaxAuto: approvers.Limit{Count: 5, Per: time.Hour}},
			{Name: "apply_discount", Risk: approvers.Medium, Confirm: true},
			{Name: "send_email", Risk: approvers.High, Confirm: true},
			{Name: "delete_account", Risk: approvers.High, Confirm: true},
			{Name: "issue_refund", Risk: approvers.High, Confirm: true, Rules: []approvers.Rule{{
				When: amountAbove(500), Risk: approvers.Critical,
				Stages: []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}},
			}}},
			{Name: "cancel_account", Risk: approvers.Critical, Confirm: true},
		},
		Approvers: []approvers.Role{
			{
				Name: "support-agent", Title: "Support Agent", MaxRisk: approvers.Medium, Lead: "team-lead", Cards: "#support-approvals",
				Members: append(users("U0001"), approvers.Member{Kind: approvers.MemberGroup, Value: "support"},
					approvers.Member{Kind: approvers.MemberEmail, Value: "support-oncall@example.com"}),
				CanApprove: []string{"update_shipping_address", "apply_discount"},
			},
			{
				Name: "team-lead", Title: "Team Lead", Members: users("U0002"), MaxRisk: approvers.High, Lead: "finance-director",
				CanApprove: []string{"update_shipping_address", "apply_discount", "issue_refund", "send_email", "delete_account"},
			},
			{
				Name: "finance-director", Title: "Finance Director", Members: users("U0003", "U0004"), MaxRisk: approvers.Critical,
				CanApprove: []string{"*"},
			},
		},
		Agents: []approvers.Agent{{Name: "support", Channels: []string{"#support"}, Tools: []string{"*"}, MaxSteps: 10}},
	}
}

// callOf returns a call of the example's agent. The requester is asker.
func callOf(tool, args string) approvers.Call {
	values := map[string]any{}
	if err := json.Unmarshal([]byte(args), &values); err != nil {
		panic(err)
	}
	return approvers.Call{
		Tool: tool, Requesters: []approvers.PersonID{asker.ID}, Authors: []approvers.PersonID{asker.ID},
		Facts: approvers.Facts{Args: values, Requester: asker.ID.User(), Agent: "support", Now: start},
	}
}

func deciding(p *approvers.Policy, at time.Time) approvers.DecisionContext {
	return approvers.DecisionContext{Policy: p, Now: at}
}

// The function opens a request for a call under a policy.
func open(t testing.TB, p *approvers.Policy, tool, args string) approvers.Request {
	t.Helper()
	return openCall(p, callOf(tool, args), args)
}

func openCall(p *approvers.Policy, c approvers.Call, args string) approvers.Request {
	r := approvers.Request{
		ID: "req_1", Agent: "support", Tool: c.Tool, ToolHash: "tool-1", Execution: "exec_1", Args: json.RawMessage(args),
		Facts: approvers.AskFacts{Asker: c.Requesters[0], Requesters: c.Requesters, Authors: c.Authors},
		Plan:  p.Plan(c),
	}
	r.Digest = approvers.Digest(r.Execution, r.Tool, r.ToolHash, r.Args)
	r, _ = approvers.Open(deciding(p, start), r)
	return r
}

// actionBy returns a person's action on the request in its current form.
func actionBy(r approvers.Request, who approvers.Identity, at time.Time) approvers.Action {
	return approvers.Action{Who: who, At: at, Digest: r.Digest, Rendering: "rendering-1", Reason: "because", Typed: true}
}

// edited returns a call with changed arguments and the policy's plan for that call.
func edited(p *approvers.Policy, r approvers.Request, execution, args string) approvers.Edited {
	values := map[string]any{}
	if err := json.Unmarshal([]byte(args), &values); err != nil {
		panic(err)
	}
	e := approvers.Edited{Execution: execution, Args: json.RawMessage(args), Plan: p.Plan(r.AsCall(values))}
	e.Digest = approvers.Digest(execution, r.Tool, r.ToolHash, e.Args)
	return e
}

func mustApprove(t testing.TB, p *approvers.Policy, r approvers.Request, who approvers.Identity, at time.Time) approvers.Request {
	t.Helper()
	out, _, denied := r.Approve(deciding(p, at), actionBy(r, who, at))
	if denied != nil {
		t.Fatalf("%s could not approve: %v", who.Name, denied)
	}
	return out
}

func wantDenied(t testing.TB, denied *approvers.Denied, code approvers.Code) {
	t.Helper()
	switch {
	case denied == nil:
		t.Fatalf("allowed; want denied for %s", code)
	case denied.Code != code:
		t.Fatalf("denied for %s; want %s", denied.Code, code)
	}
}

func stagesOf(r approvers.Request) []string {
	var out []string
	for _, s := range r.Plan.Stages {
		out = append(out, s.Approver)
	}
	return out
}

func wantStages(t testing.TB, r approvers.Request, want ...string) {
	t.Helper()
	if got := stagesOf(r); !slices.Equal(got, want) {
		t.Fatalf("stages %v; want %v", got, want)
	}
}

// escalation returns the Escalated event, or the zero value if there is none.
func escalation(events []approvers.Event) approvers.Escalated {
	e, _ := approvers.FindEvent[approvers.Escalated](events)
	return e
}

// invites lists the people who were added to the stage.
func invites(events []approvers.Event) (out []approvers.Invite) {
	for _, e := range events {
		if e, ok := e.(approvers.PersonInvited); ok {
			out = append(out, e.Invite)
		}
	}
	return out
}

// recheckAt returns the time of the next availability check, or zero if no check is needed.
func recheckAt(events []approvers.Event) time.Time {
	e, _ := approvers.FindEvent[approvers.AvailabilityResolved](events)
	return e.RecheckAt
}

// reminded lists the people who get a reminder.
func reminded(events []approvers.Event) []approvers.Identity {
	e, _ := approvers.FindEvent[approvers.ReminderDue](events)
	return e.People
}
