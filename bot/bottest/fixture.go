package bottest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// Noon is the current time in all fixtures.
var Noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func Policy() *approvers.Policy {
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
			{Name: "support-agent", Title: "Support Agent", MaxRisk: approvers.Medium, CanApprove: []string{"update_shipping_address"},
				Cards: "#support-approvals", Lead: "team-lead", Members: append(user("U0001"),
					approvers.Member{Kind: approvers.MemberGroup, Value: "support"},
					approvers.Member{Kind: approvers.MemberEmail, Value: "support-oncall@example.com"})},
			{Name: "team-lead", Title: "Team Lead", MaxRisk: approvers.High, CanApprove: []string{"update_shipping_address", "issue_refund", "cancel_account"},
				Cards: "#support-approvals", Lead: "finance-director", Members: user("U0002")},
			{Name: "finance-director", Title: "Finance Director", MaxRisk: approvers.Critical, CanApprove: []string{"*"}, Cards: "dm", Members: user("U0003", "U0004")},
		},
		Agents: []approvers.Agent{{Name: "support", Channels: []string{"#support"}, Tools: []string{"*"}, MaxSteps: 10}},
	}
}

const RefundArgs = `{ "order_id": "ORD-123", "amount": 49.990, "currency": "USD", "reason": "arrived broken" }`

func Request(args string) approvers.Request {
	sam := approvers.Who("T0001", "U0100")
	r := approvers.Request{
		ID: "req_1", State: approvers.Pending, Conversation: "conv_1", Turn: "turn_1", Call: "call_1", Agent: "support",
		Tool: "issue_refund", Effect: approvers.Unprotected, Execution: "exec_1", Args: json.RawMessage(args),
		Preview: "Refund of $49.99 for order ORD-123",
		Facts: approvers.AskFacts{Asker: sam, AskerName: "Sam", Requesters: []approvers.PersonID{sam}, Quote: "please refund order ORD-123, it arrived broken",
			MessageTS: "1772452800.000100", Conversation: approvers.ConversationFacts{ID: "conv_1", Channel: "C0001"}},
		Plan: approvers.Plan{Verdict: approvers.Ask, Risk: approvers.High, Known: true, Routed: true, PolicyHash: "policy-1",
			Stages:     []approvers.Stage{{Approver: "team-lead", Quorum: 1}},
			Why:        []string{"issue_refund is high risk", "Team Lead is the first role that may approve this at high risk"},
			Requesters: []approvers.PersonID{sam}},
		CreatedAt: Noon, ExpiresAt: Noon.Add(30 * time.Minute), EscalateAt: Noon.Add(10 * time.Minute),
	}
	r.Digest = approvers.Digest(r.Execution, r.Tool, r.ToolHash, r.Args)
	return r
}

// ViewModel returns the view model of a request's card as the workflow would.
func ViewModel(r approvers.Request) view.Model {
	e := approvers.Execution{ID: r.Execution, State: approvers.ExecutionNone, Tool: r.Tool, Args: r.Args, Digest: r.Digest, Effect: r.Effect, Request: r.ID}
	return view.Model{
		Message:      store.OutboxMessage{ID: "s_1", Kind: store.OutboxCard, Ref: r.ID, Request: r.ID, To: "channel:#support-approvals", Posts: 2, Revision: 3},
		Conversation: store.Conversation{ID: "conv_1", Channel: "C0001", Name: "support", Thread: "1772452800.000100"},
		Turn:         approvers.Turn{ID: "turn_1", State: approvers.TurnWaiting, Step: 1},
		Request:      &r, Execution: &e, Call: &store.Call{ID: "call_1", Tool: r.Tool, Preview: r.Preview},
		Policy: Policy(), Now: Noon,
	}
}

func Closed(r approvers.Request, s approvers.State, by, role, reason string) approvers.Request {
	r.State, r.ClosedAt, r.Reason, r.ClosedRole = s, Noon.Add(4*time.Minute), reason, role
	if by != "" {
		r.ClosedBy, r.ClosedName = approvers.Who("T0001", by), "Teo"
	}
	r.EscalateAt = time.Time{}
	return r
}

func ApprovedBy(r approvers.Request, user, name, role string, stage int) approvers.Request {
	r.Decisions = append(r.Decisions, approvers.Decision{Kind: approvers.Approve, By: approvers.Who("T0001", user), Name: name, Role: role,
		Stage: stage, Digest: r.Digest, At: Noon.Add(2 * time.Minute)})
	return r
}

// Golden compares v, which is data for Slack, with the golden file of the given name.
func Golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(bytes.ReplaceAll(bytes.ReplaceAll(bytes.ReplaceAll(got, []byte(`\u003c`), []byte("<")), []byte(`\u003e`), []byte(">")), []byte(`\u0026`), []byte("&")), '\n')
	path := filepath.Join("testdata", name+".json")
	if *updateGolden {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs from what was agreed on (-want +got):\n%s", path, diff)
	}
}

// GrantingPolicy returns a policy that allows grants for refunds.
func GrantingPolicy() *approvers.Policy {
	p := Policy()
	p.Tools[2].Grants = approvers.GrantTerms{Uses: 5, Within: 2 * time.Hour, AtMost: []string{"amount"}, Same: []string{"currency"}}
	p.Tools[2].TrustAfter = 20
	return p
}

func MustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func Tool(name, schema string, effect approvers.Effect) workflow.Tool {
	return workflow.Tool{Name: name, Hash: "hash-" + name, Effect: effect, Timeout: time.Minute, Schema: json.RawMessage(schema),
		Check: func(args json.RawMessage) error {
			var v struct {
				Amount *float64 `json:"amount"`
			}
			if err := json.Unmarshal(args, &v); err != nil {
				return err
			}
			if v.Amount != nil && (*v.Amount < 0.01 || *v.Amount > 5000) {
				return errors.New("amount: must be between 0.01 and 5000; order_id: is odd")
			}
			return nil
		}}
}

func WalkBlocks(v any, fn func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			WalkBlocks(one, fn)
		}
	case map[string]any:
		fn(v)
		for _, one := range v {
			WalkBlocks(one, fn)
		}
	}
}

// EveryClaim returns everything that a tool's source can claim about the tool, such as that the tool only reads.
func EveryClaim() workflow.Claims {
	yes, no := true, false
	return workflow.Claims{Title: "Look something up", ReadOnly: &no, Destructive: &yes, Idempotent: &no, OpenWorld: &yes}
}

var updateGolden = flag.Bool("update", false, "rewrite the golden files")

const WorkspaceURL = "https://acme.slack.example/"

const RefundSchema = `{"type":"object","additionalProperties":false,"required":["order_id","amount"],"properties":{
	"order_id":{"type":"string","description":"The order"},
	"amount":{"type":"number","minimum":0.01,"maximum":5000},
	"currency":{"type":"string","enum":["USD","EUR"]},
	"reason":{"type":"string","maxLength":500},
	"notify":{"type":"boolean"},
	"count":{"type":"integer"},
	"day":{"type":"string","format":"date"},
	"mail":{"type":"string","format":"email"},
	"link":{"type":"string","format":"uri"},
	"lines":{"type":"array","items":{"type":"object"}}}}`

const SecretArgs = `{"order_id":"ORD-7","card":{"number":"4111 1111 1111 4242","name":"Ann"},"pin":"0815-4711","note":"hunter2-is-it"}`

const SecretSchema = `{"type":"object","properties":{"order_id":{"type":"string"},` +
	`"card":{"type":"object","properties":{"number":{"type":"string","x-secret":true},"name":{"type":"string"}}},` +
	`"pin":{"type":"string","format":"password"},"note":{"type":"string"}}}`
