package postgres_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/config"
	"countersign/store"
	"countersign/store/postgres"
)

const tripsPolicy = `version: 1
defaults: {expires_after: 30m, escalate_after: 10m, run_within: 15m}
tools:
  issue_refund: {risk: high, confirm: true, preview: "Refund of {{money .amount .currency}} for order {{.order_id}}"}
approvers:
  team-lead: {title: Team Lead, members: [U0002], max_risk: high, can_approve: [issue_refund], cards: "#support-approvals", lead: finance-director}
  finance-director: {title: Finance Director, members: [U0003, U0004], max_risk: critical, can_approve: ["*"]}
agents:
  support: {channels: ["#support"], prompt: You help., tools: ["*"]}
`

// TestRoundTrips counts, at the wire, how often each part of a call waits for the database. It fails if a transaction
// needs another round trip.
func TestRoundTrips(t *testing.T) {
	name := empty(t)
	p, url := through(t, name)
	s := open(t, url)
	_, replica := join(t, at(name), postgres.ReplicaOptions{Name: "another way", Lease: time.Minute})
	ctx, leave, ok := replica.Enter(t.Context(), store.ShareClaim(0)) // checking a claim takes no round trip of its own
	if !ok {
		t.Fatal("the replica lacks a claim")
	}
	defer leave()
	policy, err := config.ParsePolicy("countersign.yaml", []byte(tripsPolicy))
	if err != nil {
		t.Fatal(err)
	}
	tools := &agent.Registry{}
	if err := tools.Register(agent.Tool{
		Name: "issue_refund", Description: "Pays money back.", Effect: approvers.Unprotected,
		Schema: json.RawMessage(`{"type":"object","properties":{"order_id":{"type":"string"},"amount":{"type":"number"},"currency":{"type":"string"}}}`),
		Run:    func(context.Context, agent.Invocation) (string, error) { return "done", nil },
	}); err != nil {
		t.Fatal(err)
	}
	wf := workflow.New(workflow.Config{Store: s, Policy: func() *approvers.Policy { return policy.Policy }, Tools: tools, Log: slog.New(slog.DiscardHandler)})
	inForce, err := wf.Policies.PutIntoForce(t.Context(), store.Policy{}, workflow.PolicyChange{Load: "first", Policy: policy.Policy.Hash, Content: []byte(tripsPolicy)})
	if err != nil {
		t.Fatal(err)
	}
	policy.Policy.Load = inForce.Load // checking the policy takes no round trip of its own
	counted := map[string]int64{}
	step := func(name string, do func() error) {
		t.Helper()
		from := p.Trips.Load()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		counted[name] = p.Trips.Load() - from
	}
	for round := range 2 { // in the first one statements are prepared
		ts := []string{"1780000000.000001", "1780000000.000002"}[round]
		var turn string
		var r approvers.Request
		inbox := "Ev" + ts
		step("receive", func() error {
			_, err := wf.Intake.Receive(ctx, store.Inbox{ID: inbox, Kind: store.InboxEvent, ReceivedAt: time.Now(), Payload: []byte("{}")}, ts)
			return err
		})
		step("receive again", func() error {
			_, err := wf.Intake.Receive(ctx, store.Inbox{ID: inbox, Kind: store.InboxEvent, ReceivedAt: time.Now(), Payload: []byte("{}")}, ts)
			return err
		})
		step("message", func() error {
			heard, err := wf.Intake.ReceiveMessage(ctx, workflow.IncomingMessage{
				Inbox: inbox, At: time.Now(), Team: "T0001", Thread: ts, TS: ts, Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
				Who: approvers.Identity{ID: "T0001/U0009", Name: "Robin"}, Text: "Please refund order ORD-123.", Start: true,
			})
			turn = heard.Turn
			return err
		})
		step("begin", func() error { _, err := wf.Turns.Begin(ctx, turn); return err })
		step("propose", func() error {
			return wf.Turns.Propose(ctx, workflow.Proposal{
				Turn: turn, Calls: []workflow.ModelCall{{ID: "call_1", Tool: "issue_refund", Args: `{"order_id":"ORD-123","amount":49.99,"currency":"USD"}`}},
				Authors: []approvers.PersonID{"T0001/U0009"}, Tokens: 500,
			})
		})
		err = s.View(ctx, func(x store.Reader) error {
			calls, err := x.Calls(turn)
			if err == nil {
				r, err = x.Request(calls[0].Request)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		click := "Ev" + ts + "click"
		step("receive click", func() error {
			_, err := wf.Intake.Receive(ctx, store.Inbox{ID: click, Kind: store.InboxInteraction, ReceivedAt: time.Now(), Payload: []byte("{}")}, ts)
			return err
		})
		step("decide", func() error {
			r, err = wf.Requests.Decide(ctx, workflow.Click{
				Inbox: click, At: time.Now(), Who: approvers.Identity{ID: "T0001/U0002", Name: "Sam"}, Request: r.ID, Kind: approvers.Approve,
				Digest: r.Digest, Whole: true, Rendering: r.Digest, Channel: "C0002", MessageTS: "1780000000.000100",
			})
			return err
		})
		step("claim", func() error { _, _, err := wf.Runs.Claim(ctx, r.Execution); return err })
		step("finish", func() error { return wf.Runs.Finish(ctx, r.Execution, true, "done") })
	}
	for name, most := range map[string]int64{
		"receive": 2, "receive again": 2, "receive click": 2, "message": 7, "begin": 6, "propose": 13, "decide": 4, "claim": 9, "finish": 11,
	} {
		if counted[name] > most {
			t.Errorf("%s takes %d round trips, want at most %d", name, counted[name], most)
		}
	}
	t.Log(counted)
}
