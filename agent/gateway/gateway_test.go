package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"countersign/agent/client"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/internal/testkit"
	"countersign/store"
)

// OpenReceiptKey returns the same key whenever it opens the same file. A key file is refused if other users can read
// it, or if it contains no key.
func TestReceiptKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	made, err := OpenReceiptKey(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenReceiptKey(path)
	if err != nil || made.ID() != again.ID() || made.ID() == NewReceiptKey().ID() {
		t.Errorf("opened again, the key is %s instead of %s (%v)", again.ID(), made.ID(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReceiptKey(path); !errors.Is(err, ErrKeyFile) {
		t.Errorf("a file that others can read: %v", err)
	}
	for _, text := range []string{"", "countersign-receipt-key:", "countersign-receipt-key:AAAA", "another-key:" + strings.Repeat("A", 43) + "="} {
		other := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenReceiptKey(other); !errors.Is(err, ErrKeyFile) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestChanged(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{`{"a":1,"b":2}`, `{ "b":2, "a":1.0 }`, "/a"}, // numbers are equal if their text is equal
		{`{"a":{"x":1,"y":[1]},"b":2}`, `{"a":{"x":1,"y":[2],"z":0}}`, "/a/y /a/z /b"},
		{`{"a/b~c":1}`, `{}`, "/a~1b~0c"},
		{`{"a":{}}`, `{"a":null}`, "/a"},
		{`{"a":[1,{"b":2}]}`, `{"a":[1,{"b":2}]}`, ""},
	} {
		if got := strings.Join(changed(json.RawMessage(c.before), json.RawMessage(c.after)), " "); got != c.want {
			t.Errorf("%s to %s: %q, want %q", c.before, c.after, got, c.want)
		}
	}
}

// tokenOf returns a token only if the request has exactly one Authorization header.
func TestTokenOf(t *testing.T) {
	for _, c := range []struct {
		headers []string
		want    string
	}{
		{nil, ""}, {[]string{"Bearer t"}, "t"}, {[]string{"bearer  t "}, "t"}, {[]string{"Basic t"}, ""}, {[]string{"Bearer"}, ""},
		{[]string{"Bearer t", "Bearer u"}, ""}, {[]string{"t"}, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for _, h := range c.headers {
			r.Header.Add("Authorization", h)
		}
		if got := tokenOf(r); got != c.want {
			t.Errorf("%q: %q, want %q", c.headers, got, c.want)
		}
	}
}

// Every entry in problems has a status and a title. openapi.json describes every entry.
func TestProblemsAreDescribed(t *testing.T) {
	for code, p := range problems {
		if p.status < 400 || p.title == "" {
			t.Errorf("%s has no answer", code)
		}
	}
	names := []string{"invalid_request", "no_key", "key_in_flight", "too_large", "not_json", "too_many_waiting", "unavailable", "refused", "unauthorized", held.name}
	for code := range problems {
		names = append(names, string(code))
	}
	for _, name := range names {
		if !strings.Contains(string(Description()), name+": ") {
			t.Errorf("openapi.json does not explain %s", name)
		}
	}
	secret := errors.New("the password of the database is x")
	if p := problemOf(secret); p.status != http.StatusServiceUnavailable || strings.Contains(p.Error(), "password") {
		t.Errorf("an internal error is answered as %v", p)
	}
	if p := problemOf(&workflow.CallerProblem{Code: workflow.CallerClaimed, Request: "req_1"}); p.status != http.StatusConflict || p.id != "req_1" {
		t.Errorf("a second claim is answered as %v", p)
	}
}

// If a record is damaged, the gateway asks the workflow to close the record, and reads the request again. If the
// stored receipt keys are lost, the gateway publishes its own key.
func TestDamagedRecords(t *testing.T) {
	damaged := &store.DamagedError{Damage: store.Damage{Bucket: "calls", ID: "req_1", Why: "a test says so"}}
	published := 0
	views := &fakeViews{request: edited(`{"a":1}`), err: damaged}
	callers := fakeCallers{
		mend: func(err error) bool { views.err = nil; return errors.Is(err, store.ErrDamaged) },
		publish: func(id string, public []byte) {
			published++
			views.err, views.keys = nil, []settings.ReceiptKey{{ID: id, Public: public}}
		},
	}
	g := testGateway(t, callers, views)
	for _, path := range []string{"/v1/requests/req_1", "/.well-known/jwks.json"} {
		views.err, views.keys, published = damaged, nil, 0
		reply := httptest.NewRecorder()
		g.ServeHTTP(reply, testRequest(t.Context(), http.MethodGet, path, ""))
		if reply.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, reply.Code, reply.Body)
		}
		if keys := strings.HasSuffix(path, "jwks.json"); keys && (published != 1 || !strings.Contains(reply.Body.String(), g.Key.ID())) {
			t.Errorf("%d keys were published: %s", published, reply.Body)
		}
	}
}

// For every input, members returns an error, or keeps the exact bytes of each value.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{}`, `{"args":{"a" : 1.0e2,"b":"\u00e9"},"tool":"x"}`, `{"args":1,"args":2}`, `{"tool":"\ud800"}`, "{\"tool\":\"\xff\"}", `[`, `{"args":{}}x`} {
		f.Add([]byte(seed))
	}
	known := []string{"args", "tool"}
	f.Fuzz(func(t *testing.T, body []byte) {
		of, err := members(body, known...)
		var p problem
		if err != nil {
			if !errors.As(err, &p) || p.status != http.StatusBadRequest {
				t.Fatalf("%q is refused with %v", body, err)
			}
			return
		}
		for name, value := range of {
			if !slices.Contains(known, name) || !json.Valid(value) || !strings.Contains(string(body), string(value)) {
				t.Fatalf("%q has %q: %q", body, name, value)
			}
		}
	})
}

// Idle connections stay open only while there are few connections. For this reason, a client that collects
// connections does not block other clients.
func TestCrowdedConnections(t *testing.T) {
	srv := server(testGateway(t, fakeCallers{}, &fakeViews{}), 2)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	asks := func(c *http.Client) bool {
		t.Helper()
		resp, err := c.Get("http://" + l.Addr().String() + "/v1/openapi.json")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp.Close
	}
	callers := make([]*http.Client, 4)
	for i := range callers {
		callers[i] = &http.Client{Transport: &http.Transport{}}
		t.Cleanup(callers[i].CloseIdleConnections)
		if closed := asks(callers[i]); closed != (i >= 2) {
			t.Errorf("with %d connections, the last one is closed: %t", i+1, closed)
		}
	}
	for range 500 { // until the server has counted the closed connections
		if !asks(callers[0]) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("connections are closed although there are few again")
}

// After a restore, nobody knows whether a call that was open in the backup has run. The same is true of a call if the
// records of its run are lost. So no answer says that the call did not run. The client sees that such a call is lost. A
// call that the client claimed and did not report is not lost.
func TestLostRequests(t *testing.T) {
	asked := edited(`{"a":1}`)
	asked.Request.State, asked.Request.Lost, asked.Request.Reason, asked.Call.Outcome = approvers.Voided, true, "check first", approvers.OutcomeVoided
	automatic := asked
	automatic.Request, automatic.Call.Result = nil, `{"reason":"check first"}`
	automatic.Execution = &approvers.Execution{State: approvers.ExecutionNone, Loss: approvers.LossRestored}
	voided := edited(`{"a":1}`)
	voided.Request.State, voided.Call.Outcome = approvers.Voided, approvers.OutcomeVoided
	damaged := automatic
	damaged.Execution, damaged.Call.Outcome = nil, approvers.OutcomeUnknown
	ran := asked
	ran.Execution = &approvers.Execution{State: approvers.ExecutionSucceeded, Loss: approvers.LossRestored}
	unknown := func(loss approvers.Loss, r *approvers.Request) view.CallerRequest {
		c := edited(`{"a":1}`)
		c.Request, c.Execution = r, &approvers.Execution{State: approvers.ExecutionUnknown, Loss: loss, Args: []byte(`{"a":1}`)}
		return c
	}
	for _, c := range []struct {
		name                        string
		request                     view.CallerRequest
		status, disposition, reason string
		lost                        bool
	}{
		{"lost", asked, "voided", uncertain, "check first", true},
		{"lost without a request", automatic, "voided", uncertain, "check first", true},
		{"voided", voided, "voided", denied, "", false},
		{"its records are lost", damaged, "unknown", uncertain, "check first", true},
		{"lost, and reported", ran, "succeeded", executed, "check first", false},
		{"not reported", unknown(approvers.LossUnreported, &approvers.Request{State: approvers.Consumed}), "unknown", uncertain, "", false},
		{"not reported, without a request", unknown(approvers.LossUnreported, nil), "unknown", uncertain, "", false},
		{"its run is lost, and its request is rebuilt", unknown(approvers.LossDamaged, &approvers.Request{State: approvers.Consumed, Damaged: true}), "unknown", uncertain, "", true},
		{"its run is lost, and it had no request", unknown(approvers.LossDamaged, nil), "unknown", uncertain, "", true},
	} {
		s, err := testGateway(t, fakeCallers{}, nil).stateOf(c.request)
		if err != nil || s.Status != c.status || s.Disposition != c.disposition || s.Reason != c.reason {
			t.Errorf("%s: %+v, %v", c.name, s, err)
		}
		var r client.Request
		if err := json.Unmarshal(s.json(), &r); err != nil || r.Lost() != c.lost {
			t.Errorf("%s: the client sees that it is lost: %t, %v\n%s", c.name, r.Lost(), err, s.json())
		}
	}
}

// The state of a request has the disposition that follows from the run. Until the run has ended, there is none.
func TestDispositions(t *testing.T) {
	for name, c := range map[string]struct {
		run         approvers.ExecutionState
		unrun       bool
		request     approvers.State
		outcome     approvers.Outcome
		disposition string
	}{
		"waits for people":        {request: approvers.Pending},
		"approved":                {request: approvers.Approved},
		"runs":                    {run: approvers.ExecutionExecuting, request: approvers.Consumed},
		"ran":                     {run: approvers.ExecutionSucceeded, request: approvers.Consumed, outcome: approvers.OutcomeExecuted, disposition: "approved-executed"},
		"ran and failed":          {run: approvers.ExecutionFailed, request: approvers.Consumed, outcome: approvers.OutcomeError, disposition: "execution-error"},
		"failed before it ran":    {run: approvers.ExecutionFailed, unrun: true, request: approvers.Consumed, outcome: approvers.OutcomeError, disposition: "denied-not-executed"},
		"ran with unknown result": {run: approvers.ExecutionUnknown, request: approvers.Consumed, outcome: approvers.OutcomeUnknown, disposition: "outcome-unknown"},
		"rejected":                {request: approvers.Rejected, outcome: approvers.OutcomeRejected, disposition: "denied-not-executed"},
	} {
		r := edited(`{"a":1}`)
		r.Request.State, r.Call.Outcome = c.request, c.outcome
		r.Execution.State, r.Execution.Unrun = c.run, c.unrun
		if s, err := testGateway(t, fakeCallers{}, nil).stateOf(r); err != nil || s.Disposition != c.disposition {
			t.Errorf("%s: the status is %s and the disposition %q, want %q (%v)", name, s.Status, s.Disposition, c.disposition, err)
		}
	}
}

// The status unknown can change, because people may report the outcome. If the records of the run are lost, nobody can
// report the outcome, so a stream of events ends.
func TestStreamOfUnknown(t *testing.T) {
	for name, run := range map[string]*approvers.Execution{"known run": {ID: "exec_1", Tool: "deploy", State: approvers.ExecutionUnknown}, "lost run": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				request := edited(`{"a":1}`)
				request.Request, request.Execution, request.Call.Outcome = nil, run, approvers.OutcomeUnknown
				g := testGateway(t, fakeCallers{}, &fakeViews{request: request})
				began, stream := time.Now(), httptest.NewRecorder()
				g.ServeHTTP(stream, testRequest(t.Context(), http.MethodGet, "/v1/requests/req_1", "", "Accept", "text/event-stream"))
				if ended := time.Since(began) < longest; ended != (run == nil) || !strings.Contains(stream.Body.String(), `"status":"unknown"`) {
					t.Errorf("the stream ended after %s: %.200s", time.Since(began), stream.Body)
				}
			})
		})
	}
}

// A browser's EventSource opens a stream again after its end, and sends the id of the last event. If this event had the
// last state of the request, the gateway answers 204, and the EventSource stops. Any other id gets the state.
func TestStreamIsOver(t *testing.T) {
	request := edited(`{"a":1}`)
	request.Request, request.Call.Outcome = nil, approvers.OutcomeWithdrawn
	views := &fakeViews{request: request}
	g := testGateway(t, fakeCallers{}, views)
	open := func(last string) *httptest.ResponseRecorder {
		out := httptest.NewRecorder()
		g.ServeHTTP(out, testRequest(t.Context(), http.MethodGet, "/v1/requests/req_1", "", "Accept", "text/event-stream", "Last-Event-ID", last))
		return out
	}
	first := open("")
	_, id, _ := strings.Cut(first.Body.String(), "\nid: ")
	id, _, _ = strings.Cut(id, "\n")
	if first.Code != http.StatusOK || id == "" {
		t.Fatalf("%d %s", first.Code, first.Body)
	}
	if again := open(id); again.Code != http.StatusNoContent || again.Body.Len() > 0 {
		t.Errorf("after the last state: %d %s", again.Code, again.Body)
	}
	if other := open("0123"); other.Code != http.StatusOK || other.Body.String() != first.Body.String() {
		t.Errorf("after another event: %d %s", other.Code, other.Body)
	}
	synctest.Test(t, func(t *testing.T) { // a request that can change is streamed, also after its current state
		waiting := edited(`{"a":1}`)
		g := testGateway(t, fakeCallers{}, &fakeViews{request: waiting})
		s, err := g.stateOf(waiting)
		if err != nil {
			t.Fatal(err)
		}
		began, out := time.Now(), httptest.NewRecorder()
		g.ServeHTTP(out, testRequest(t.Context(), http.MethodGet, "/v1/requests/req_1", "", "Accept", "text/event-stream", "Last-Event-ID", strings.Trim(s.etag, `"`)))
		if out.Code != http.StatusOK || time.Since(began) != longest {
			t.Errorf("an approved request: %d after %s", out.Code, time.Since(began))
		}
	})
}

// A damaged request was rebuilt without its approvals and their times. The caller of a lost run is not told that the
// request was approved. The caller of a run in progress gets no receipt, because its times are lost.
func TestDecisionOfDamagedRequest(t *testing.T) {
	for damaged, want := range map[bool]bool{false: true, true: false} {
		var s state
		s.asked(&approvers.Policy{}, approvers.Request{State: approvers.Consumed, Damaged: damaged})
		if (s.Decision != nil) != want {
			t.Errorf("damaged: %t: the decision is %v", damaged, s.Decision)
		}
		c := edited(`{"a":1}`)
		c.Call.Request, c.Request.State, c.Request.Damaged, c.Execution.State = "req_1", approvers.Consumed, damaged, approvers.ExecutionExecuting
		if damaged {
			c.Request.ClosedAt, c.Request.RunBy = time.Time{}, time.Time{}
		}
		s, err := testGateway(t, fakeCallers{}, &fakeViews{}).stateOf(c)
		if err != nil || s.Status != view.CallerRunning || (s.Receipt != "") != want {
			t.Errorf("damaged: %t: the state is %s with the receipt %q, %v", damaged, s.Status, s.Receipt, err)
		}
	}
}

// slowly calls a function with the connection of each of many slow or greedy clients. Meanwhile, another client gets its
// answer immediately. The connections of the slow clients must end within the given time.
func slowly(t *testing.T, within time.Duration, client func(net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		waiting := edited(`{"a":1}`)
		waiting.Request.State, waiting.Execution = approvers.Pending, nil
		g, network := testGateway(t, fakeCallers{}, &fakeViews{request: waiting}), testkit.NewNetwork()
		srv := Server(g)
		var open atomic.Int32
		count := srv.ConnState
		srv.ConnState = func(c net.Conn, s http.ConnState) {
			count(c, s)
			switch s {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed:
				open.Add(-1)
			}
		}
		go func() { _ = srv.Serve(network) }()
		var clients sync.WaitGroup
		for range 50 {
			c, err := network.DialContext(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			clients.Go(func() { client(c) })
		}
		synctest.Wait()
		began := time.Now()
		other := &http.Client{Transport: &http.Transport{DialContext: network.DialContext, DisableKeepAlives: true}}
		resp, err := other.Do(clientRequest(t, "/v1/requests/req_1"))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || time.Since(began) != 0 {
			t.Errorf("another client gets %d %s after %s (%v)", resp.StatusCode, body, time.Since(began), err)
		}
		_ = resp.Body.Close()
		time.Sleep(within)
		synctest.Wait()
		if n, waits := open.Load(), g.Waiting(); n != 0 || waits != 0 {
			t.Errorf("after %s, %d of 50 connections are still open, and %d wait", within, n, waits)
		}
		_ = srv.Close()
		clients.Wait()
	})
}

// clientRequest returns a request of the test client.
func clientRequest(t *testing.T, path string) *http.Request {
	t.Helper()
	r := testRequest(t.Context(), http.MethodGet, "http://gate.example"+path, "")
	r.RequestURI, r.Body = "", nil
	return r
}

// Clients that send or read slowly, or never stop sending, keep a connection only for a short time. Other clients don't
// notice them.
func TestSlowClients(t *testing.T) {
	const head = "Host: gate.example\r\nAuthorization: Bearer " + testToken + "\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n"
	says := func(text string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, text) }
	}
	// drips sends a byte each second until the server closes the connection. Meanwhile, the client reads its answer.
	drips := func(first, then string) func(net.Conn) {
		return func(c net.Conn) {
			go func() { _, _ = io.Copy(io.Discard, c) }()
			says(first)(c)
			for {
				if _, err := io.WriteString(c, then); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}
	}
	for name, slow := range map[string]struct {
		within time.Duration
		client func(net.Conn)
	}{
		"a slow header":                {11 * time.Second, drips("POST /v1/requests HTTP/1.1\r\nX-A: ", "a")},
		"a slow body":                  {bodyWithin + time.Second, drips("POST /v1/requests HTTP/1.1\r\nContent-Length: 100000\r\n"+head+"\r\n", " ")},
		"a slow body of a claim":       {bodyWithin + time.Second, drips("POST /v1/requests/req_1/claim HTTP/1.1\r\nContent-Length: 100000\r\n"+head+"\r\n", " ")},
		"a slow body in chunks":        {bodyWithin + time.Second, drips("POST /v1/requests HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"+head+"\r\n", "1\r\n \r\n")},
		"a slow body without a token":  {bodyWithin + time.Second, drips("POST /v1/requests HTTP/1.1\r\nHost: gate.example\r\nContent-Length: 100000\r\n\r\n", " ")},
		"a body that is not sent":      {bodyWithin + sendWithin + time.Second, says("POST /v1/requests HTTP/1.1\r\nContent-Length: 100000\r\n" + head + "\r\n")},
		"a client that reads nothing":  {sendWithin + time.Second, says("GET /v1/openapi.json HTTP/1.1\r\n" + head + "\r\n")},
		"a stream that nobody reads":   {sendWithin + time.Second, says("GET /v1/requests/req_1 HTTP/1.1\r\nAccept: text/event-stream\r\n" + head + "\r\n")},
		"a connection without request": {11 * time.Second, says("")},
		"a stream whose reader stops": {heartbeat + sendWithin + time.Second, func(c net.Conn) {
			says("GET /v1/requests/req_1 HTTP/1.1\r\nAccept: text/event-stream\r\n" + head + "\r\n")(c)
			for text, part := "", make([]byte, 4096); !strings.Contains(text, `"status":"pending"`); {
				n, err := c.Read(part)
				if err != nil {
					t.Errorf("the stream ended: %v", err)
					return
				}
				text += string(part[:n])
			}
		}},
	} {
		t.Run(name, func(t *testing.T) { slowly(t, slow.within, slow.client) })
	}
	t.Run("a body without an end", func(t *testing.T) {
		var most atomic.Int64
		slowly(t, time.Second, func(c net.Conn) {
			says("POST /v1/requests HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + head + "\r\n")(c)
			go func() { _, _ = io.Copy(io.Discard, c) }() // the client reads the answer
			chunk := "8000\r\n" + strings.Repeat(" ", 0x8000) + "\r\n"
			for sent := 0; ; sent += len(chunk) {
				if _, err := io.WriteString(c, chunk); err != nil {
					most.Store(max(most.Load(), int64(sent)))
					return
				}
			}
		})
		if most := most.Load(); most < maxBody || most > 1<<20 {
			t.Errorf("a client could send %d bytes", most)
		}
	})
}

// If a change is stored, and its request can't be read for the answer, the answer says that the change was made. A client
// that does not know this would claim again, and would then not know who has used the approval.
func TestChangeWithoutAnAnswer(t *testing.T) {
	views := &fakeViews{err: errors.New("the store can't be read")}
	g := testGateway(t, fakeCallers{mend: func(error) bool { return false }}, views)
	w := httptest.NewRecorder()
	g.ServeHTTP(w, testRequest(t.Context(), http.MethodPost, "/v1/requests/req_1/claim", `{"args_sha256":"`+hashOf([]byte("{}"))+`"}`))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), problemType+"unavailable") || !strings.Contains(w.Body.String(), "the request was changed") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
