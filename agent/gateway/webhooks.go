package gateway

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"countersign/agent/egress"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// WebhookWorkers is the number of concurrent deliveries. Each client has at most one delivery at a time.
const WebhookWorkers = 8

// Limits of a delivery.
const (
	webhookWithin    = 15 * time.Second // time limit for the receiver's answer
	webhookMostAfter = time.Hour        // the longest delay that a receiver can request with Retry-After
)

// WebhookCallers records the results of deliveries. *workflow.Callers implements this interface.
type WebhookCallers interface {
	Told(ctx context.Context, timer store.Timer, target, key string) error
	NotTold(ctx context.Context, timer store.Timer, target string, f workflow.WebhookFailure) error
	WaitToTell(ctx context.Context, timer store.Timer, until time.Time) error
}

// WebhookViews reads the requests that deliveries are about. *view.Reader implements this interface.
type WebhookViews interface {
	Caller(ctx context.Context, client, id string) (view.CallerRequest, error)
	Webhook(ctx context.Context, client, target string) (settings.Webhook, error)
}

var (
	_ WebhookCallers = (*workflow.Callers)(nil)
	_ WebhookViews   = (*view.Reader)(nil)
)

// WebhookConfig configures Webhooks. Count and Now may be nil.
type WebhookConfig struct {
	Callers WebhookCallers
	Views   WebhookViews
	Policy  func() *approvers.Policy         // the policy in force
	Lookup  func(name string) (string, bool) // finds a variable of the environment, as os.LookupEnv does
	Log     *slog.Logger
	Now     func() time.Time             // nil: time.Now
	Count   func(client, outcome string) // counts deliveries; nil: deliveries are not counted
}

// Webhooks sends clients messages about changes of their requests, in the format of Standard Webhooks. Webhooks is
// safe for concurrent use.
type Webhooks struct {
	WebhookConfig
	within time.Duration // the time limit for a receiver's answer
	mu     sync.Mutex
	out    map[string]outlet // by client
}

// outlet is the HTTP client for one target.
type outlet struct {
	target string
	client *http.Client
}

// NewWebhooks returns a Webhooks that has made no deliveries.
func NewWebhooks(c WebhookConfig) *Webhooks {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Count == nil {
		c.Count = func(string, string) {}
	}
	return &Webhooks{WebhookConfig: c, within: webhookWithin, out: map[string]outlet{}}
}

// Deliver is the handler of store.TimerWebhook. Deliver sends a message about the latest change of a request. Deliver
// sends nothing if the message was already delivered, if the webhook is switched off, or if the webhook or the request
// no longer exists. If the receiver must not be called yet, Deliver postpones the message.
func (w *Webhooks) Deliver(ctx context.Context, timer store.Timer) error {
	client, ok := w.Policy().Client(timer.Lane)
	if !ok || client.Webhook == nil {
		return w.Callers.Told(ctx, timer, "", "")
	}
	target := client.Webhook.Target()
	known, err := w.Views.Webhook(ctx, client.Name, target)
	if err != nil {
		return err
	}
	if !known.Off.IsZero() {
		w.Count(client.Name, "dropped")
		return w.Callers.Told(ctx, timer, target, "")
	}
	if w.Now().Before(known.Next) {
		return w.Callers.WaitToTell(ctx, timer, known.Next)
	}
	request, err := w.Views.Caller(ctx, client.Name, timer.Ref)
	if errors.Is(err, store.ErrNotFound) {
		return w.Callers.Told(ctx, timer, target, "")
	}
	if err != nil {
		return err
	}
	change, ok := request.Change()
	if !ok || change.Key == request.Conversation.Caller.Told {
		return w.Callers.Told(ctx, timer, target, "")
	}
	failure := w.send(ctx, client, target, messageOf(timer.Ref, change))
	if failure != nil && ctx.Err() != nil {
		return ctx.Err() // the process stops, and the next process sends the message
	}
	if failure != nil {
		call := request.Call
		w.Log.DebugContext(ctx, "a webhook was not delivered",
			"client", client.Name, "request", timer.Ref, "conversation", call.Conversation, "execution", call.Execution, "tool", call.Tool, "why", failure.Why)
		w.Count(client.Name, "failed")
		return w.Callers.NotTold(ctx, timer, target, *failure)
	}
	w.Count(client.Name, "delivered")
	return w.Callers.Told(ctx, timer, target, change.Key)
}

// message is the message about a change. Each try of a delivery sends the same message.
type message struct {
	id   string
	body []byte
}

// messageOf returns the message about a change of a request.
func messageOf(request string, c view.Change) message {
	type data struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}
	body, err := json.Marshal(struct {
		Type string    `json:"type"`
		At   time.Time `json:"timestamp"`
		Data data      `json:"data"`
	}{c.Type, c.At.UTC(), data{request, c.Status}})
	if err != nil {
		panic(err) // encoding texts and a time can't fail
	}
	sum := sha256.Sum256([]byte(request + "\n" + c.Key))
	return message{"msg_" + hex.EncodeToString(sum[:16]), body}
}

// send sends a message. If the receiver has accepted the message, send returns nil.
func (w *Webhooks) send(ctx context.Context, client approvers.Client, target string, m message) *workflow.WebhookFailure {
	failed := func(format string, args ...any) *workflow.WebhookFailure {
		return &workflow.WebhookFailure{Why: fmt.Sprintf(format, args...)}
	}
	signer, err := signerOf(client.Webhook.Secrets, w.Lookup)
	if err != nil {
		return failed("%v", err)
	}
	out, err := w.outlet(client, target)
	if err != nil {
		return failed("%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, w.within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, client.Webhook.URL, bytes.NewReader(m.body))
	if err != nil {
		return failed("the URL of the webhook can't be used")
	}
	at := strconv.FormatInt(w.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "countersign")
	req.Header.Set("Webhook-Id", m.id)
	req.Header.Set("Webhook-Timestamp", at)
	req.Header.Set("Webhook-Signature", signer.sign(m.id, at, m.body))
	resp, err := out.Do(req)
	if err != nil {
		return failed("%s", egress.Sentence(err))
	}
	_ = resp.Body.Close() // the body is not read
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	f := failed("the receiver answered %d", resp.StatusCode)
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		f.Why += "; redirects are not followed"
	}
	f.Gone = resp.StatusCode == http.StatusGone
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		f.After = min(time.Duration(min(seconds, 1<<20))*time.Second, webhookMostAfter)
	}
	return f
}

// outlet returns the HTTP client for a target. The HTTP client follows no redirects.
func (w *Webhooks) outlet(client approvers.Client, target string) (*http.Client, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.out[client.Name]; known.target == target {
		return known.client, nil
	}
	guard, err := egress.New(client.Webhook.Allow...)
	if err != nil {
		return nil, err
	}
	out := outlet{target, &http.Client{
		Transport:     guard.Transport(egress.Options{}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if w.out[client.Name].client != nil {
		w.out[client.Name].client.CloseIdleConnections()
	}
	w.out[client.Name] = out
	return out.client, nil
}

// secretPrefix is the prefix of a webhook's secret. The rest of the secret is base64.
const secretPrefix = "whsec_"

// The shortest and the longest secret, in bytes.
const (
	leastSecret = 24
	mostSecret  = 64
)

// signer has the secrets of a webhook. It signs a message with each secret.
type signer [][]byte

// signerOf reads a webhook's secrets from the environment. An error contains the name of a variable, and never the
// value of the variable.
func signerOf(names []string, lookup func(string) (string, bool)) (signer, error) {
	var s signer
	for _, name := range names {
		text, _ := lookup(name)
		if text == "" {
			return nil, fmt.Errorf("the variable %s with the webhook's secret is not set", name)
		}
		encoded, ok := strings.CutPrefix(text, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(key) < leastSecret || len(key) > mostSecret {
			return nil, fmt.Errorf("the variable %s has no secret of a webhook: it must be %q and %d to %d bytes in base64", name, secretPrefix, leastSecret, mostSecret)
		}
		s = append(s, key)
	}
	return s, nil
}

// sign returns the header with a signature for each secret.
func (s signer) sign(id, at string, body []byte) string {
	var out []string
	for _, key := range s {
		h := hmac.New(sha256.New, key)
		fmt.Fprintf(h, "%s.%s.%s", id, at, body)
		out = append(out, "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
	}
	return strings.Join(out, " ")
}

// CheckWebhook checks a webhook's address and its secrets in the environment. CheckWebhook makes no connection.
func CheckWebhook(hook approvers.Webhook, lookup func(string) (string, bool)) error {
	guard, err := egress.New(hook.Allow...)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, hook.URL, nil) //nolint:noctx // the message is never sent
	if err != nil {
		return errors.New("the URL of the webhook can't be used")
	}
	if err := guard.CheckURL(req.URL); err != nil {
		return err
	}
	_, err = signerOf(hook.Secrets, lookup)
	return err
}
