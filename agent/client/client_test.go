package client_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/agent/client"
	"countersign/internal/testkit"
	"countersign/internal/testkit/fakegateway"
)

// start returns a test gateway and a client of the gateway.
func start(t *testing.T) (*fakegateway.Gateway, *client.Client) {
	t.Helper()
	g := fakegateway.New(t, "../gateway/openapi.json")
	c, err := client.New(g.URL, fakegateway.Token)
	if err != nil {
		t.Fatal(err)
	}
	return g, c
}

// args has bytes that a JSON encoder would change: spaces, a number that a float can't hold, and HTML characters.
const args = `{ "amount" : 12345678901234567890.10, "note":"<a & b>" }`

var call = client.Call{Tool: "billing.refund", Args: json.RawMessage(args), Accepts: client.All, Summary: "the parcel was lost", State: "s1"}

func TestDecide(t *testing.T) {
	g, c := start(t)
	go func() {
		g.Await("the request arrives", func(list []fakegateway.Request) bool { return len(list) == 1 })
		g.Change("req_1", func(r *fakegateway.Request) { r.Status = "approved" })
	}()
	a, err := c.Decide(t.Context(), "call-1", call)
	if err != nil {
		t.Fatal(err)
	}
	if string(a.Args) != args || a.Status != client.Running {
		t.Errorf("approved %s, %s", a.Args, a.Status)
	}
	if got := g.Requests()[0]; got.Args != args || got.Key != "call-1" || got.Summary != call.Summary {
		t.Errorf("the gateway got %+v", got)
	}
	for range 2 { // a repeated report changes nothing
		if _, err := c.Report(t.Context(), a.ID, a.Run, client.Succeeded, "refunded"); err != nil {
			t.Fatal(err)
		}
	}
	if got := g.Requests()[0].Outcome; got != "succeeded refunded" {
		t.Errorf("outcome %q", got)
	}
	if _, err := c.Decide(t.Context(), "call-1", call); !errors.As(err, new(*client.Refusal)) {
		t.Errorf("the same call is allowed again: %v", err)
	}
}

// TestExecute checks that Execute waits for the result of a call that Countersign runs.
func TestExecute(t *testing.T) {
	g, c := start(t)
	go func() {
		g.Await("the request arrives", func(list []fakegateway.Request) bool { return len(list) == 1 })
		g.Change("req_1", func(r *fakegateway.Request) { r.Status = "succeeded" })
	}()
	r, err := c.Execute(t.Context(), "call-1", call)
	if err != nil || r.Status != "succeeded" {
		t.Errorf("%+v, %v", r, err)
	}
	if got := g.Requests()[0]; got.Mode != "execute" {
		t.Errorf("the gateway was asked to %s", got.Mode)
	}
}

// TestEdit checks that the client gets the approver's exact bytes after an edit. If the arguments do not have the hash
// of the request, Approved returns an error.
func TestEdit(t *testing.T) {
	g, c := start(t)
	g.OnAsk(func(r *fakegateway.Request) { r.Status, r.Edited = "approved", `{"amount":20}` })
	a, err := c.Decide(t.Context(), "k", call)
	if err != nil || string(a.Args) != `{"amount":20}` {
		t.Errorf("%v, %v", a, err)
	}
	r := &client.Request{ID: "req_9", Status: client.Approved, ArgsSHA256: client.Hash([]byte(`{"amount":20}`)), Decision: &client.Decision{Type: client.Edit, Args: json.RawMessage(`{"amount":21}`)}}
	if _, err := r.Approved(call.Args); !errors.Is(err, client.ErrOtherArguments) {
		t.Errorf("arguments that nobody approved: %v", err)
	}
	r.Decision = nil
	if _, err := r.Approved(call.Args); !errors.Is(err, client.ErrOtherArguments) {
		t.Errorf("an approval of other bytes: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for _, status := range []string{"rejected", "expired", "withdrawn", "revoked", "voided", "refused", "observed", "unknown"} {
		t.Run(status, func(t *testing.T) {
			g, c := start(t)
			g.OnAsk(func(r *fakegateway.Request) { r.Status, r.Reason = status, "too much" })
			_, err := c.Decide(t.Context(), "k", call)
			var refusal *client.Refusal
			if !errors.As(err, &refusal) || string(refusal.Request.Status) != status || !strings.Contains(err.Error(), status) || !strings.Contains(err.Error(), "too much") {
				t.Errorf("%v", err)
			}
			for _, line := range g.Log() {
				if strings.HasSuffix(line, "/claim") {
					t.Errorf("a refused call was claimed")
				}
			}
		})
	}
}

func TestPendingAtTheDeadline(t *testing.T) {
	g, c := start(t)
	var pending *client.PendingError
	for within := 1500 * time.Millisecond; ; within *= 4 { // on a busy machine, the first answer may take longer
		ctx, cancel := context.WithTimeout(t.Context(), within)
		_, err := c.Decide(ctx, "k", call)
		cancel()
		if errors.As(err, &pending) && pending.Request.ID == "req_1" && errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if !errors.Is(err, context.DeadlineExceeded) || within > testkit.Patience {
			t.Fatal(err)
		}
	}
	g.Change("req_1", func(r *fakegateway.Request) { r.Status = "approved" })
	if _, err := c.Decide(t.Context(), "k", call); err != nil {
		t.Errorf("the same key does not find the request: %v", err)
	}
	if n := len(g.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestQuestionsEndTheWait(t *testing.T) {
	g, c := start(t)
	g.Fault(func(_ http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodGet && req.Header.Get("If-None-Match") == "" {
			t.Error("the client waits for the decision and not for the next change")
		}
		return false
	})
	r, err := c.Ask(t.Context(), "k", "decide", call)
	if err != nil {
		t.Fatal(err)
	}
	asked := func(r *client.Request) bool { _, open := r.Open(); return open }
	ended := make(chan error, 1)
	go func() {
		r, err = c.Wait(t.Context(), r, asked)
		ended <- err
	}()
	g.Await("the client waits", func([]fakegateway.Request) bool { return slices.Contains(g.Log(), "GET /v1/requests/req_1") })
	g.Change("req_1", func(r *fakegateway.Request) {
		r.Questions = []map[string]any{{"question": 0, "text": "Why now?", "by": "Team Lead"}}
	})
	if err := <-ended; err != nil || !asked(r) {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err = c.Answer(t.Context(), r.ID, 0, "the customer waits"); err != nil || asked(r) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRepeats checks after which faults the client repeats a request, and how many requests the gateway receives.
func TestRepeats(t *testing.T) {
	fail := map[string]func(http.ResponseWriter){
		"unavailable": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			fakegateway.Problem(w, http.StatusServiceUnavailable, "unavailable", "the store is busy")
		},
		"proxy":   func(w http.ResponseWriter) { http.Error(w, "<h1>Bad gateway</h1>", http.StatusBadGateway) },
		"hang up": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"401": func(w http.ResponseWriter) {
			fakegateway.Problem(w, 401, "unauthorized", "there is no client with this token")
		},
		"paused": func(w http.ResponseWriter) { fakegateway.Problem(w, 503, "paused", "everything is paused") },
		"html": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte("<h1>Sign in</h1>"))
		},
		"bad JSON": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"id":`))
		},
		"another service": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"status":"approved"}`))
		},
		"redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1/v1/requests")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
	}
	for _, test := range []struct {
		fault, action string
		seen          int32 // number of requests at the gateway if the fault happens once
		err           string
	}{
		{"unavailable", "ask", 2, ""},
		{"proxy", "ask", 2, ""},
		{"hang up", "ask", 2, ""},
		{"401", "ask", 1, "unauthorized"},
		{"paused", "ask", 1, "paused"},
		{"html", "ask", 1, "instead of JSON"},
		{"bad JSON", "ask", 1, "not the expected JSON"},
		{"another service", "ask", 1, "not a request"},
		{"redirect", "ask", 1, "307"},
		{"unavailable", "claim", 1, client.ErrClaimLost.Error()}, // the claim may be stored, and only the answer failed
		{"proxy", "claim", 1, client.ErrClaimLost.Error()},
		{"hang up", "claim", 1, client.ErrClaimLost.Error()},
		{"bad JSON", "claim", 1, client.ErrClaimLost.Error()},
		{"another service", "claim", 1, client.ErrClaimLost.Error()},
		{"401", "claim", 1, "unauthorized"},
		{"unavailable", "report", 2, ""},
		{"proxy", "report", 2, ""},
		{"hang up", "report", 2, ""},
		{"hang up", "withdraw", 2, ""},
		{"hang up", "answer", 1, "can't be reached"},
	} {
		t.Run(test.action+" after "+test.fault, func(t *testing.T) {
			t.Parallel()
			g, c := start(t)
			g.OnAsk(func(r *fakegateway.Request) {
				r.Status, r.Questions = "approved", []map[string]any{{"question": 0, "text": "Why?", "by": "Lead"}}
			})
			var seen atomic.Int32
			arm := func() {
				g.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
					if seen.Add(1) > 1 {
						return false
					}
					fail[test.fault](w)
					return true
				})
			}
			if test.action == "ask" {
				arm()
			}
			r, err := c.Ask(t.Context(), "k", "decide", call)
			if test.action != "ask" {
				if err != nil {
					t.Fatal(err)
				}
				if test.action == "report" {
					if r, err = c.Claim(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
				arm()
				switch test.action {
				case "claim":
					_, err = c.Claim(t.Context(), r)
				case "report":
					_, err = c.Report(t.Context(), r.ID, r.Run, client.Failed, "")
				case "withdraw":
					_, err = c.Withdraw(t.Context(), r.ID, "")
				case "answer":
					_, err = c.Answer(t.Context(), r.ID, 0, "because")
				}
			}
			if got := seen.Load(); got != test.seen {
				t.Errorf("the gateway saw it %d times, want %d", got, test.seen)
			}
			switch {
			case test.err == "" && err != nil, test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("the error is %v, want %q", err, test.err)
			case err != nil && strings.Contains(err.Error(), fakegateway.Token):
				t.Errorf("the error has the token: %v", err)
			}
		})
	}
}

// A replica of an older version does not know the field run, and refuses a report with this field. The client then
// repeats the report without it.
func TestReportToOlderReplica(t *testing.T) {
	g, c := start(t)
	var seen []string
	g.Fault(func(w http.ResponseWriter, req *http.Request) bool {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		seen = append(seen, string(body))
		if bytes.Contains(body, []byte(`"run"`)) {
			fakegateway.Problem(w, http.StatusBadRequest, client.InvalidRequest, `"run" is not a name that is known here`)
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"req_1","status":"failed","args_sha256":%q}`, fakegateway.Hash(args))
		return true
	})
	if r, err := c.Report(t.Context(), "req_1", "exec_1", client.Failed, "no"); err != nil || r.Status != client.Failed {
		t.Errorf("%+v, %v", r, err)
	}
	want := []string{`{"run":"exec_1","status":"failed","text":"no"}`, `{"status":"failed","text":"no"}`}
	if !slices.Equal(seen, want) {
		t.Errorf("the gateway saw %q, want %q", seen, want)
	}
}

// TestUnreachable checks that the client stops its retries. A claim that did not reach the gateway must not count as
// lost.
func TestUnreachable(t *testing.T) {
	c, err := client.New("http://127.0.0.1:1", fakegateway.Token)
	if err != nil {
		t.Fatal(err)
	}
	c.Patience = 0
	if _, err := c.Claim(t.Context(), &client.Request{ID: "req_1"}); err == nil || errors.Is(err, client.ErrClaimLost) {
		t.Errorf("%v", err)
	}
	if _, err := c.Ask(t.Context(), "k", "decide", call); err == nil || !strings.Contains(err.Error(), "can't be reached") {
		t.Errorf("%v", err)
	}
}

func TestProblems(t *testing.T) {
	g, c := start(t)
	if _, err := c.Ask(t.Context(), "k", "decide", call); err != nil {
		t.Fatal(err)
	}
	other := call
	other.Args = json.RawMessage(`{}`)
	if _, err := c.Ask(t.Context(), "k", "decide", other); !client.Is(err, client.KeyReused) {
		t.Errorf("another body with the same key: %v", err)
	}
	if _, err := c.Get(t.Context(), "req_77", 0); !client.Is(err, client.NotFound) {
		t.Errorf("a request that does not exist: %v", err)
	}
	if _, err := c.Report(t.Context(), "req_1", "", client.Succeeded, ""); !client.Is(err, client.NotClaimed) {
		t.Errorf("a report without a claim: %v", err)
	}
	if _, err := c.Claim(t.Context(), &client.Request{ID: "req_1", ArgsSHA256: client.Hash([]byte(args))}); !client.Is(err, client.NotApproved) {
		t.Errorf("a claim of a pending request: %v", err)
	}
	if _, err := c.Withdraw(t.Context(), "req_1", "no longer needed"); err != nil || g.Requests()[0].Withdrawn != "no longer needed" {
		t.Errorf("%v", err)
	}
}

func TestWrongUse(t *testing.T) {
	for address, want := range map[string]string{
		"":                           "not a URL",
		"countersign.example.com":    "not a URL",
		"ftp://example.com":          "not a URL",
		"http://example.com":         "unencrypted",
		"http://localhost.evil.test": "unencrypted",
		"https://user@example.com":   "a user",
		"https://example.com?x=1":    "a query",
	} {
		if _, err := client.New(address, fakegateway.Token); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
	for _, token := range []string{"", "two words", "line\n", "ö"} {
		if _, err := client.New("https://example.com", token); err == nil {
			t.Errorf("the token %q is accepted", token)
		}
	}
	_, c := start(t)
	for _, wrong := range []string{"", "[]", "{", `"text"`, `{} {}`} {
		if _, err := c.Ask(t.Context(), "k", "decide", client.Call{Tool: "t", Args: json.RawMessage(wrong)}); err == nil {
			t.Errorf("arguments %q are accepted", wrong)
		}
	}
}

func TestReceipt(t *testing.T) {
	g, c := start(t)
	keys, err := c.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	receipt := g.Receipt("billing.refund", args, now.Add(time.Minute))
	got, err := keys.Verify(receipt, fakegateway.Audience, "billing.refund", []byte(args), now)
	if err != nil || got.Request != "req_1" {
		t.Fatalf("%+v, %v", got, err)
	}
	issued := time.Unix(got.NotBefore, 0)
	if _, err := keys.Verify(receipt, fakegateway.Audience, "billing.refund", []byte(args), issued.Add(-30*time.Second)); err != nil {
		t.Errorf("a clock that is 30 seconds behind the gateway's: %v", err)
	}
	head, rest, _ := strings.Cut(receipt, ".")
	body, signature, _ := strings.Cut(rest, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	foreign := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","kid":"k2","typ":"countersign-receipt+jwt"}`))
	untyped := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","kid":"k1","typ":"JWT"}`))
	for _, test := range []struct {
		receipt, audience, tool, args string
		at                            time.Time
		want                          string
	}{
		{receipt, "other", "billing.refund", args, now, "audience"},
		{receipt, fakegateway.Audience, "billing.charge", args, now, "tool"},
		{receipt, fakegateway.Audience, "billing.refund", `{}`, now, "arguments"},
		{receipt, fakegateway.Audience, "billing.refund", args, now.Add(time.Hour), "expired"},
		{receipt, fakegateway.Audience, "billing.refund", args, issued.Add(-31 * time.Second), "does not hold yet"},
		{head + "." + body + "." + signature[:len(signature)-4] + "AAAA", fakegateway.Audience, "billing.refund", args, now, "signature"},
		{none + "." + body + ".", fakegateway.Audience, "billing.refund", args, now, "not signed"},
		{foreign + "." + body + "." + signature, fakegateway.Audience, "billing.refund", args, now, "key"},
		{untyped + "." + body + "." + signature, fakegateway.Audience, "billing.refund", args, now, "not a receipt"},
		{head + "." + body, fakegateway.Audience, "billing.refund", args, now, "three parts"},
		{"", fakegateway.Audience, "billing.refund", args, now, "three parts"},
		{receipt + "=", fakegateway.Audience, "billing.refund", args, now, "base64"},
	} {
		if _, err := keys.Verify(test.receipt, test.audience, test.tool, []byte(test.args), test.at); !errors.Is(err, client.ErrReceipt) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v", test.want, err)
		}
	}
	for _, set := range []string{``, `{}`, `{"keys":[{"kty":"RSA","kid":"1"}]}`, `{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"1","x":"AAAA"}]}`} {
		if _, err := client.ParseKeys([]byte(set)); err == nil {
			t.Errorf("the key set %q is accepted", set)
		}
	}
}

// If the gateway answers a message, Stdio sends the message only once, even if the answer has the id in another
// notation. The test sends "initialize", because Stdio waits for the answer to this message. When Stdio returns, all
// attempts have ended.
func TestStandardInputOnce(t *testing.T) {
	for id, answer := range map[string]string{`1.0`: `1`, `"a\/b"`: `"a/b"`, `"\u0041"`: `"A"`, `12345678901234567890123`: `-1`, `7`: `7`} {
		var calls atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}`+"\n\n"+`data: {"jsonrpc":"2.0","id":`+answer+`,"result":{}}`+"\n\n")
		}))
		t.Cleanup(server.Close)
		c, err := client.New(server.URL, fakegateway.Token)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err = c.Stdio(t.Context(), strings.NewReader(`{"jsonrpc":"2.0","id":`+id+`,"method":"initialize"}`+"\n"), &out)
		if err != nil || calls.Load() != 1 || strings.Count(out.String(), "result") != 1 {
			t.Errorf("the id %s: sent %d times, %v: %s", id, calls.Load(), err, out.String())
		}
	}
}

// Stdio returns when its context ends, even if the input stays open and silent.
func TestStdioEnds(t *testing.T) {
	c, err := client.New("http://127.0.0.1:1", fakegateway.Token)
	if err != nil {
		t.Fatal(err)
	}
	in, open := io.Pipe()
	defer open.Close()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Stdio(ctx, in, io.Discard) }()
	if _, err := io.WriteString(open, "\n"); err != nil { // Stdio reads now
		t.Fatal(err)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
