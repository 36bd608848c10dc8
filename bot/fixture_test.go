package bot

import (
	"encoding/json"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// The state that golden files are drawn from: DESIGN.md's policy, and one refund that waits.

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func testPolicy() *approvers.Policy {
	defaults := approvers.Defaults{ExpiresAfter: 30 * time.Minute, EscalateAfter: 10 * time.Minute, RunWithin: 15 * time.Minute,
		UnknownTool: approvers.ToolPolicy{Risk: approvers.Critical, Confirm: true}}
	user := func(ids ...string) (out []approvers.Member) {
		for _, id := range ids {
			out = append(out, approvers.Member{Kind: approvers.MemberUser, Value: id})
		}
		return out
	}
	preview := func(text string) approvers.Preview {
		return approvers.Preview{Text: text, Render: func(args map[string]any) (string, error) {
			id, _ := args["order_id"].(string)
			return strings.ReplaceAll(text, "ORDER", id), nil
		}}
	}
	return &approvers.Policy{
		Hash: "policy-1", Defaults: defaults, EmailDomains: []string{"example.com"},
		Tools: []approvers.ToolPolicy{
			{Name: "search_orders", Risk: approvers.Low},
			{Name: "update_shipping_address", Risk: approvers.Medium, Confirm: true},
			{Name: "issue_refund", Risk: approvers.High, Confirm: true, Preview: preview("Refund for order ORDER")},
			{Name: "cancel_account", Risk: approvers.Critical, Confirm: true,
				Stages: []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}},
		},
		Approvers: []approvers.Role{
			{Name: "support-agent", Title: "Support Agent", MaxRisk: approvers.Medium, CanApprove: []string{"update_shipping_address"}, Cards: "#support-approvals", Lead: "team-lead",
				Members: append(user("U0001"), approvers.Member{Kind: approvers.MemberGroup, Value: "support"}, approvers.Member{Kind: approvers.MemberEmail, Value: "support-oncall@example.com"})},
			{Name: "team-lead", Title: "Team Lead", MaxRisk: approvers.High, CanApprove: []string{"update_shipping_address", "issue_refund", "cancel_account"}, Cards: "#support-approvals", Lead: "finance-director", Members: user("U0002")},
			{Name: "finance-director", Title: "Finance Director", MaxRisk: approvers.Critical, CanApprove: []string{"*"}, Cards: "dm", Members: user("U0003", "U0004")},
		},
		Agents: []approvers.Agent{{Name: "support", Channels: []string{"#support"}, Tools: []string{"*"}, MaxSteps: 10}},
	}
}

const refundArgs = `{ "order_id": "ORD-123", "amount": 49.990, "currency": "USD", "reason": "arrived broken" }`

func testRequest(args string) approvers.Request {
	sam := approvers.Who("T0001", "U0100")
	r := approvers.Request{
		ID: "req_1", State: approvers.Pending, Conversation: "conv_1", Turn: "turn_1", Call: "call_1", Agent: "support",
		Tool: "issue_refund", Effect: approvers.Unprotected, Execution: "exec_1", Args: json.RawMessage(args),
		Preview: "Refund of $49.99 for order ORD-123",
		Facts: approvers.AskFacts{Asker: sam, AskerName: "Sam", Requesters: []approvers.PersonID{sam}, Quote: "please refund order ORD-123, it arrived broken",
			MessageTS: "1772452800.000100", Conversation: approvers.ConversationFacts{ID: "conv_1", Channel: "C0001"}},
		Plan: approvers.Plan{Verdict: approvers.Ask, Risk: approvers.High, Known: true, Routed: true, PolicyHash: "policy-1",
			Stages:     []approvers.Stage{{Approver: "team-lead", Quorum: 1}},
			Why:        []string{"issue_refund is high risk", "Team Lead has the lowest sufficient ceiling (high)"},
			Requesters: []approvers.PersonID{sam}},
		CreatedAt: noon, ExpiresAt: noon.Add(30 * time.Minute), EscalateAt: noon.Add(10 * time.Minute),
	}
	r.Digest = approvers.Digest(r.Execution, r.Tool, r.ToolHash, r.Args)
	return r
}

// sightOf is what the desk would give for the card of a request.
func sightOf(r approvers.Request) desk.Sight {
	e := approvers.Execution{ID: r.Execution, State: approvers.ExecutionNone, Tool: r.Tool, Args: r.Args, Digest: r.Digest, Effect: r.Effect, Request: r.ID}
	return desk.Sight{
		Surface:      store.Surface{ID: "s_1", Kind: store.SurfaceCard, Ref: r.ID, Request: r.ID, To: "channel:#support-approvals", Posts: 2, Want: 3},
		Conversation: store.Conversation{ID: "conv_1", Channel: "C0001", Name: "support", Thread: "1772452800.000100"},
		Turn:         approvers.Turn{ID: "turn_1", State: approvers.TurnWaiting, Step: 1},
		Request:      &r, Execution: &e, Call: &store.Call{ID: "call_1", Tool: r.Tool, Preview: r.Preview},
		Policy: testPolicy(), Now: noon,
	}
}

func closed(r approvers.Request, s approvers.State, by, role, reason string) approvers.Request {
	r.State, r.ClosedAt, r.Reason, r.ClosedRole = s, noon.Add(4*time.Minute), reason, role
	if by != "" {
		r.ClosedBy, r.ClosedName = approvers.Who("T0001", by), "Teo"
	}
	r.EscalateAt = time.Time{}
	return r
}

func approvedBy(r approvers.Request, user, name, role string, stage int) approvers.Request {
	r.Decisions = append(r.Decisions, approvers.Decision{Kind: approvers.Approve, By: approvers.Who("T0001", user), Name: name, Role: role,
		Stage: stage, Digest: r.Digest, At: noon.Add(2 * time.Minute)})
	return r
}
