package gateway

import (
	"context"
	"errors"
	"io"
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

// deliveries is a test with one client, its webhook, and one approved request. The field told has the recorded results
// of deliveries.
type deliveries struct {
	*Webhooks
	request view.CallerRequest
	known   settings.Webhook
	hook    approvers.Webhook
	told    []string // "told KEY", "not told WHY", "gone WHY" or "wait"
	after   time.Duration
}

func (d *deliveries) Told(_ context.Context, _ store.Timer, _, key string) error {
	d.told = append(d.told, "told "+key)
	return nil
}

func (d *deliveries) NotTold(_ context.Context, _ store.Timer, _ string, f workflow.WebhookFailure) error {
	what := "not told "
	if f.Gone {
		what = "gone "
	}
	d.told, d.after = append(d.told, what+f.Why), f.After
	return nil
}

func (d *deliveries) WaitToTell(context.Context, store.Timer, time.Time) error {
	d.told = append(d.told, "wait")
	return nil
}

func (d *deliveries) Caller(context.Context, string, string) (view.CallerRequest, error) {
	return d.request, nil
}

func (d *deliveries) Webhook(context.Context, string, string) (settings.Webhook, error) {
	return d.known, nil
}

// webhookSecret and the two following values are the example in the specification of Standard Webhooks.
const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var webhookNow = time.Unix(1614265330, 0)

func newDeliveries(t *testing.T, url string, allow ...string) *deliveries {
	t.Helper()
	d := &deliveries{request: edited(`{"secret":"argument"}`), hook: approvers.Webhook{URL: url, Secrets: []string{"SECRET"}, Allow: allow}}
	d.Webhooks = NewWebhooks(WebhookConfig{
		Callers: d, Views: d, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return webhookNow },
		Policy: func() *approvers.Policy {
			return &approvers.Policy{Clients: []approvers.Client{{Name: "ci", Webhook: &d.hook}}}
		},
		Lookup: func(name string) (string, bool) {
			v, ok := map[string]string{"SECRET": webhookSecret, "NEW": "whsec_" + strings.Repeat("QUJD", 11), "SHORT": "whsec_QUJD", "BARE": "the secret itself"}[name]
			return v, ok
		},
	})
	return d
}

// deliver handles the timer of the delivery, and returns the last recorded result.
func (d *deliveries) deliver(t *testing.T) string {
	t.Helper()
	d.told = nil
	if err := d.Deliver(t.Context(), store.Timer{Kind: store.TimerWebhook, Ref: "req_1", Lane: "ci"}); err != nil {
		t.Fatal(err)
	}
	if len(d.told) != 1 {
		t.Fatalf("it recorded %q", d.told)
	}
	return d.told[0]
}

// For the example of the specification, sign returns the specified signature. For several secrets, sign returns
// several signatures.
func TestSignature(t *testing.T) {
	s, err := signerOf([]string{"SECRET"}, newDeliveries(t, "").Lookup)
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := s.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)); got != want {
		t.Errorf("signed as %s, want %s", got, want)
	}
	s = append(s, []byte("another secret"))
	if got := s.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)); !strings.HasPrefix(got, want+" v1,") {
		t.Errorf("with two secrets it is signed as %s", got)
	}
}

// A delivery contains the request's id, its status and the type of change. A delivery contains no data about the tool
// or its arguments.
func TestDelivery(t *testing.T) {
	var got *http.Request
	var body []byte
	status := http.StatusNoContent
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(status)
	}))
	defer receiver.Close()
	d := newDeliveries(t, receiver.URL+"/hooks?from=countersign", "127.0.0.1")
	d.hook.Secrets = []string{"NEW", "SECRET"}
	if told := d.deliver(t); told != "told request.decided 2026-05-04T12:00:00Z" {
		t.Errorf("it recorded %q", told)
	}
	if want := `{"type":"request.decided","timestamp":"2026-05-04T12:00:00Z","data":{"id":"req_1","status":"approved"}}`; string(body) != want {
		t.Errorf("the body is %s, want %s", body, want)
	}
	id, at := got.Header.Get("webhook-id"), got.Header.Get("webhook-timestamp")
	old, err := signerOf([]string{"SECRET"}, d.Lookup)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(got.Header.Get("webhook-signature"), " "+old.sign(id, at, body)) || at != "1614265330" || got.Method != http.MethodPost || got.URL.RawQuery != "from=countersign" {
		t.Errorf("the headers are %v", got.Header)
	}
	status = http.StatusServiceUnavailable
	d.deliver(t)
	if got.Header.Get("webhook-id") != id {
		t.Error("another try has another id")
	}
	d.request.Request.ClosedAt = d.request.Request.ClosedAt.Add(time.Second) // the request has a new decision
	d.deliver(t)
	if got.Header.Get("webhook-id") == id {
		t.Error("another decision has the same id")
	}

	// In the following cases, no message is sent.
	got = nil
	for what, c := range map[string]struct {
		want   string
		change func(*deliveries)
	}{
		"a change that was delivered": {"told ", func(d *deliveries) { d.request.Conversation.Caller.Told = "request.decided 2026-05-04T12:00:00Z" }},
		"a request that waits":        {"told ", func(d *deliveries) { d.request.Request.State = approvers.Pending }},
		"a webhook that is off":       {"told ", func(d *deliveries) { d.known.Off = webhookNow }},
		"a webhook that waits":        {"wait", func(d *deliveries) { d.known.Next = webhookNow.Add(time.Second) }},
	} {
		d := newDeliveries(t, receiver.URL, "127.0.0.1")
		c.change(d)
		if told := d.deliver(t); told != c.want || got != nil {
			t.Errorf("%s: it recorded %q, want %q; sent: %t", what, told, c.want, got != nil)
		}
	}
}

// A misbehaving receiver gets one HTTP request. The request occupies a worker for a limited time.
func TestHostileReceivers(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	release := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-release
		case "/huge":
			for chunk := make([]byte, 64<<10); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		case "/header":
			w.Header().Set("X", strings.Repeat("x", 128<<10))
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/later":
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/never":
			w.Header().Set("Retry-After", "99999999999999")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/see-other":
			http.Redirect(w, r, other.URL, http.StatusSeeOther)
		case "/redirect":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/itself":
			http.Redirect(w, r, "/huge", http.StatusPermanentRedirect)
		case "/packed":
			w.Header().Set("Content-Encoding", "gzip")
		}
	}))
	defer receiver.Close()
	defer close(release)
	for path, want := range map[string]string{
		"/slow": "not told there was no response in time", "/huge": "told request.decided 2026-05-04T12:00:00Z", "/header": "not told the response's header is too large",
		"/gone": "gone the receiver answered 410", "/later": "not told the receiver answered 429", "/never": "not told the receiver answered 503",
		"/see-other": "not told the receiver answered 303; redirects are not followed", "/redirect": "not told the receiver answered 307; redirects are not followed",
		"/itself": "not told the receiver answered 308; redirects are not followed", "/packed": "not told the response is compressed, which was not requested",
	} {
		d := newDeliveries(t, receiver.URL+path, "127.0.0.1")
		if path == "/slow" {
			d.within = 10 * time.Millisecond
		}
		if told := d.deliver(t); told != want {
			t.Errorf("%s: %q, want %q", path, told, want)
		}
		if after := map[string]time.Duration{"/later": 2 * time.Minute, "/never": time.Hour}[path]; d.after != after {
			t.Errorf("%s: the next try is after %s, want %s", path, d.after, after)
		}
	}
	if elsewhere > 0 {
		t.Errorf("a redirect was followed %d times", elsewhere)
	}
}

// The gateway sends messages to this machine or to a private network only with an allow entry in the policy. Without
// a secret for the signature, no message is sent.
func TestWebhookIsRefused(t *testing.T) {
	connected := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { connected++ }))
	defer receiver.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(receiver.URL, "http://"), ":")
	for _, url := range []string{
		receiver.URL, "http://localhost:" + port, "http://[::1]:" + port, "http://0.0.0.0:" + port, "http://127.1:" + port, "http://2130706433:" + port,
		"http://[::ffff:127.0.0.1]:" + port, "http://169.254.169.254/latest", "https://10.0.0.1/", "http://user@127.0.0.1:" + port,
	} {
		d := newDeliveries(t, url)
		if told := d.deliver(t); !strings.HasPrefix(told, "not told ") {
			t.Errorf("%s: %q", url, told)
		}
	}
	for names, want := range map[string]string{"MISSING": "is not set", "SHORT": "24 to 64 bytes", "BARE": "whsec_", "SECRET BARE": "BARE"} {
		d := newDeliveries(t, receiver.URL, "127.0.0.1")
		d.hook.Secrets = strings.Fields(names)
		told := d.deliver(t)
		if !strings.HasPrefix(told, "not told ") || !strings.Contains(told, want) || strings.Contains(told, "the secret itself") || strings.Contains(told, "QUJD") {
			t.Errorf("with the secrets %s: %q", names, told)
		}
		if err := CheckWebhook(d.hook, d.Lookup); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with the secrets %s, the check finds %v", names, err)
		}
	}
	if connected > 0 {
		t.Errorf("%d connections were made", connected)
	}
}

// If the process stops during a delivery, no result is recorded, so the delivery is made later.
func TestDeliveryIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	release := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		stop()
		<-release
	}))
	defer receiver.Close()
	defer close(release)
	d := newDeliveries(t, receiver.URL, "127.0.0.1")
	if err := d.Deliver(ctx, store.Timer{Kind: store.TimerWebhook, Ref: "req_1", Lane: "ci"}); !errors.Is(err, context.Canceled) || len(d.told) > 0 {
		t.Errorf("it returned %v, and recorded %q", err, d.told)
	}
}
