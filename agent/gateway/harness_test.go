package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// fakeCallers implements Callers with functions; a test sets only the functions that it needs.
type fakeCallers struct {
	Callers
	propose func(context.Context, workflow.CallerCall) (string, bool, error)
	publish func(id string, public []byte)
	mend    func(error) bool
}

func (f fakeCallers) Propose(ctx context.Context, c workflow.CallerCall) (string, bool, error) {
	return f.propose(ctx, c)
}

func (f fakeCallers) PublishReceiptKey(_ context.Context, id string, public []byte) error {
	if f.publish != nil {
		f.publish(id, public)
	}
	return nil
}
func (f fakeCallers) Mend(_ context.Context, err error) bool { return f.mend(err) }
func (fakeCallers) Watch(string) (<-chan struct{}, func())   { return nil, func() {} }
func (fakeCallers) Claim(context.Context, approvers.Client, string, string) error {
	return nil
}

// fakeViews returns one request, or the same error from every method.
type fakeViews struct {
	request view.CallerRequest
	keys    []settings.ReceiptKey
	err     error
}

func (f *fakeViews) Caller(context.Context, string, string) (view.CallerRequest, error) {
	return f.request, f.err
}
func (f *fakeViews) ReceiptKeys(context.Context) ([]settings.ReceiptKey, error) { return f.keys, f.err }

// testToken is the token of the test client.
const testToken = "cs_token"

var testPolicy = &approvers.Policy{Clients: []approvers.Client{{Name: "ci", Token: hashOf([]byte(testToken)), Audience: "ci"}}}

func testGateway(t *testing.T, callers Callers, views Views) *Gateway {
	t.Helper()
	g, err := New(t.Context(), Config{
		Callers: callers, Views: views, Policy: func() *approvers.Policy { return testPolicy }, Key: NewReceiptKey(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func testRequest(ctx context.Context, method, path, body string, header ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testToken)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// edited returns an approved call whose arguments an approver has changed.
func edited(args string) view.CallerRequest {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	return view.CallerRequest{
		Conversation: store.Conversation{Caller: &store.CallerRequest{Caller: approvers.Caller{Name: "ci", Mode: approvers.DecideMode}, Request: "req_1", ClientState: `"decision":{`}},
		Call:         store.Call{ID: "req_1", Tool: "deploy", Args: `{"a":0}`, CreatedAt: at},
		Request: &approvers.Request{
			State: approvers.Approved, Args: json.RawMessage(args), ClosedAt: at, RunBy: at.Add(time.Hour),
			Edits: []approvers.Edit{{Before: json.RawMessage(`{"a":0}`), After: json.RawMessage(args), Reason: `smaller "decision":{`}},
		},
		Execution: &approvers.Execution{ID: "exec_1", Tool: "deploy", ToolHash: "h", Args: json.RawMessage(args), State: approvers.ExecutionNone, CreatedAt: at},
		Policy:    testPolicy,
	}
}
