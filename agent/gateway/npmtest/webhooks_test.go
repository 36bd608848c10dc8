// Package npmtest tests the gateway's webhooks with the library from npm that receivers use.
package npmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"countersign/agent/gateway"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/internal/testkit/npm"
	"countersign/store"
)

// newSecret and oldSecret are the webhook's secrets. The third secret does not belong to the webhook.
const (
	newSecret   = "whsec_bmV3LXNlY3JldC1mb3ItdGhlLXJlY2VpdmVyLW9mLWNp"
	oldSecret   = "whsec_b2xkLXNlY3JldC1mb3ItdGhlLXJlY2VpdmVyLW9mLWNp"
	otherSecret = "whsec_b3RoZXItc2VjcmV0LWZvci1hbm90aGVyLXJlY2VpdmVy"
)

// rejected implements the gateway's interfaces with one request, which a person has rejected.
type rejected struct{ failure string }

func (r *rejected) Caller(context.Context, string, string) (view.CallerRequest, error) {
	return view.CallerRequest{
		Conversation: store.Conversation{Caller: &store.CallerRequest{Caller: approvers.Caller{Name: "ci"}, Request: "req_1"}},
		Call:         store.Call{ID: "req_1", Outcome: approvers.OutcomeRejected},
		Request:      &approvers.Request{State: approvers.Rejected, Reason: "für später 🙂", ClosedAt: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)},
	}, nil
}

func (*rejected) Webhook(context.Context, string, string) (settings.Webhook, error) {
	return settings.Webhook{}, nil
}
func (*rejected) Told(context.Context, store.Timer, string, string) error  { return nil }
func (*rejected) WaitToTell(context.Context, store.Timer, time.Time) error { return nil }
func (r *rejected) NotTold(_ context.Context, _ store.Timer, _ string, f workflow.WebhookFailure) error {
	r.failure = f.Why
	return nil
}

// verify is the receiver's program. For each message, verify prints the type and the status, or "refused".
const verify = `
const { Webhook } = require(process.argv[1] + "/node_modules/standardwebhooks");
for (const m of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  try {
    const event = new Webhook(m.secret).verify(m.body, m.headers);
    console.log(event.type, event.data.id, event.data.status);
  } catch (err) {
    console.log("refused:", err.message);
  }
}
`

// While a secret is being replaced, a receiver with the old or the new secret accepts the messages. The library
// refuses a message if the secret, the body, the id or the time is wrong.
func TestReceiverVerifies(t *testing.T) {
	node, tool := npm.Require(t, "the library that receivers of webhooks use was")
	folder := npm.Installed(t, tool, ".", "gateway")
	type message struct {
		Secret  string            `json:"secret"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	var sent message
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = message{Body: string(body), Headers: map[string]string{}}
		for name := range r.Header {
			sent.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
	}))
	defer receiver.Close()
	world := &rejected{}
	hook := approvers.Webhook{URL: receiver.URL, Secrets: []string{"NEW", "OLD"}, Allow: []string{"127.0.0.1"}}
	webhooks := gateway.NewWebhooks(gateway.WebhookConfig{
		Callers: world, Views: world, Log: slog.New(slog.DiscardHandler),
		Policy: func() *approvers.Policy {
			return &approvers.Policy{Clients: []approvers.Client{{Name: "ci", Webhook: &hook}}}
		},
		Lookup: func(name string) (string, bool) {
			return map[string]string{"NEW": newSecret, "OLD": oldSecret}[name], true
		},
	})
	if err := webhooks.Deliver(t.Context(), store.Timer{Kind: store.TimerWebhook, Ref: "req_1", Lane: "ci"}); err != nil || sent.Body == "" {
		t.Fatalf("nothing was sent: %v, %s", err, world.failure)
	}
	with := func(change func(*message)) message {
		m := sent
		m.Secret, m.Headers = newSecret, map[string]string{}
		for name, value := range sent.Headers {
			m.Headers[name] = value
		}
		change(&m)
		return m
	}
	messages := []message{
		with(func(*message) {}),
		with(func(m *message) { m.Secret = oldSecret }),
		with(func(m *message) { m.Secret = otherSecret }),
		with(func(m *message) { m.Body = strings.Replace(m.Body, "rejected", "approved", 1) }),
		with(func(m *message) { m.Headers["webhook-id"] += "0" }),
		with(func(m *message) { m.Headers["webhook-timestamp"] = "1614265330" }),
	}
	in, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "-e", verify, folder)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the receiver: %v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(messages) {
		t.Fatalf("the receiver answers %d messages with\n%s", len(messages), out)
	}
	for i, line := range lines {
		if taken := line == "request.decided req_1 rejected"; taken != (i < 2) || !taken && !strings.HasPrefix(line, "refused:") {
			t.Errorf("message %d: %s", i, line)
		}
	}
}
