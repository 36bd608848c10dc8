package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent/gateway"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/internal/testkit"
	"countersign/store"
)

// endsDuringPropose is a workflow for a repeated call. Between the two proposals, the answer to the earlier,
// identical call is recorded as delivered.
type endsDuringPropose struct {
	Callers
	proposed int
}

func (c *endsDuringPropose) Propose(context.Context, workflow.CallerCall) (string, bool, error) {
	c.proposed++
	if c.proposed == 1 {
		return "req_earlier", true, nil
	}
	return "req_new", false, nil
}

// If a client repeats its call immediately after the answer, the repetition is a new request. The client does not get
// the earlier result.
func TestCallIsRepeatedWhileItsAnswerIsSent(t *testing.T) {
	c := &endsDuringPropose{}
	s := &Server{Config: Config{Callers: c}}
	id, again, err := s.propose(t.Context(), &exchange{client: approvers.Client{Hold: time.Minute}}, workflow.CallerCall{})
	if err != nil || id != "req_new" || again || c.proposed != 2 {
		t.Errorf("the call is %s (repeated: %t, proposed %d times), %v; want the new request", id, again, c.proposed, err)
	}
}

// The answer about a call that was open in a restored backup, or whose records are lost, says that the call may have
// run. The answer must not promise that a repeated call is not made again.
func TestLostCall(t *testing.T) {
	for status, rec := range map[string]view.CallerRequest{
		"voided":  {Request: &approvers.Request{Lost: true}},
		"unknown": {Call: store.Call{Outcome: approvers.OutcomeUnknown}},
	} {
		s := gateway.State{Status: status, Disposition: gateway.Uncertain, Reason: "check first"}
		out, err := json.Marshal(finished(&s, &rec, false))
		if err != nil || !strings.Contains(string(out), "It is not known whether the call was decided, or ran: check first.") || strings.Contains(string(out), "not made again") {
			t.Errorf("%s: %s, %v", status, out, err)
		}
	}
}

// The answer about a run that ended has the disposition in _meta. The text says the same, and only the result of a run
// that succeeded is not an error.
func TestDispositionsOfResults(t *testing.T) {
	for disposition, want := range map[string]string{
		"approved-executed":   `"text":"done"`,
		"execution-error":     "The call ran and failed: done",
		"outcome-unknown":     "The call may have run: its outcome is not known.",
		"denied-not-executed": "The call did not run",
	} {
		out := finished(&gateway.State{ID: "req_1", Disposition: disposition, Result: "done"}, &view.CallerRequest{Execution: &approvers.Execution{}}, false)
		text, err := json.Marshal(out)
		if err != nil || out.Meta[dispositionKey] != disposition || out.IsError != (disposition != "approved-executed") || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, %v", disposition, text, err)
		}
	}
}

// noCallers is a workflow that no caller changes.
type noCallers struct{ gateway.Callers }

func (noCallers) PublishReceiptKey(context.Context, string, []byte) error { return nil }
func (noCallers) Mend(context.Context, error) bool                        { return false }

// lostCall has a call whose records are lost.
type lostCall struct{ gateway.Views }

func (lostCall) Caller(context.Context, string, string) (view.CallerRequest, error) {
	own := store.CallerRequest{Caller: approvers.Caller{Name: "ci", Mode: approvers.ExecuteMode}, Request: "req_1"}
	return view.CallerRequest{Conversation: store.Conversation{Caller: &own}, Call: store.Call{ID: "req_1", Outcome: approvers.OutcomeUnknown}}, nil
}

// The status of a call whose records are lost does not change any more. So the answer with this status counts as
// delivered, and an identical call is then a new request.
func TestLostCallIsOver(t *testing.T) {
	g, err := gateway.New(t.Context(), gateway.Config{
		Callers: noCallers{}, Views: lostCall{}, Policy: func() *approvers.Policy { return &approvers.Policy{} }, Key: gateway.NewReceiptKey(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Config: Config{Gateway: g, Now: time.Now}, ends: deliveries{by: map[string]*delivery{}}}
	x := &exchange{client: approvers.Client{Name: "ci"}, version: modernVersion}
	if _, err := s.getTask(t.Context(), x, &taskParams{TaskID: "req_1"}); err != nil || !slices.Equal(x.answered, []string{"req_1"}) {
		t.Errorf("the answer has the last states of %q, %v", x.answered, err)
	}
}

// waitingCall has a call that waits for people.
type waitingCall struct{ gateway.Views }

func (waitingCall) Caller(context.Context, string, string) (view.CallerRequest, error) {
	own := store.CallerRequest{Caller: approvers.Caller{Name: "ci", Mode: approvers.ExecuteMode}, Request: "req_1"}
	return view.CallerRequest{
		Conversation: store.Conversation{Caller: &own}, Call: store.Call{ID: "req_1"}, Request: &approvers.Request{ID: "req_1", State: approvers.Pending}, Policy: &approvers.Policy{},
	}, nil
}

// learned has the patience of a client. If err is set, the patience can't be read.
type learned struct {
	Views
	patience time.Duration
	err      error
}

func (l learned) Patience(context.Context, string) (time.Duration, error) { return l.patience, l.err }

// holdingCallers is a workflow in which no request changes.
type holdingCallers struct{ Callers }

func (holdingCallers) Hold(approvers.Client, string) (<-chan struct{}, func()) { return nil, func() {} }

// A waiting call is held for the time hold of its client. If the client was seen to be less patient, the call is
// answered earlier, but not before shortestHold.
func TestHoldEndsBeforeTheClientsPatience(t *testing.T) {
	for _, c := range []struct{ hold, patience, want time.Duration }{
		{45 * time.Second, 0, 45 * time.Second}, {45 * time.Second, 20 * time.Second, 20 * time.Second}, {45 * time.Second, time.Minute, 45 * time.Second},
		{45 * time.Second, time.Second, shortestHold}, {time.Second, 20 * time.Second, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			g, err := gateway.New(t.Context(), gateway.Config{
				Callers: noCallers{}, Views: waitingCall{}, Policy: func() *approvers.Policy { return &approvers.Policy{} }, Key: gateway.NewReceiptKey(), Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			s := &Server{Config: Config{Gateway: g, Callers: holdingCallers{}, Views: learned{patience: c.patience}, Now: time.Now}}
			began, x := time.Now(), &exchange{client: approvers.Client{Name: "ci", Hold: c.hold}}
			answer, err := s.hold(t.Context(), x, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}}, "req_1", false)
			if held := time.Since(began); err != nil || held != c.want {
				t.Errorf("with hold %s and the patience %s, the call is answered after %s (%v), want %s", c.hold, c.patience, held, err, c.want)
			}
			if text, err := json.Marshal(answer); err != nil || !strings.Contains(string(text), "The call has no result yet.") {
				t.Errorf("the answer is %s (%v)", text, err)
			}
		})
	}
}

// proposes is a workflow that stores each call as the same request, which nobody decides.
type proposes struct {
	holdingCallers
	hungUp chan time.Duration // how long the client waited before it hung up
}

func (proposes) Propose(context.Context, workflow.CallerCall) (string, bool, error) {
	return "req_1", false, nil
}

func (p proposes) HungUp(_ context.Context, _ approvers.Client, after time.Duration) error {
	p.hungUp <- after
	return nil
}

// A client that does not read the progress of its held call counts as disconnected. So it does not keep a connection
// for as long as the call may be held.
func TestSlowReaderOfHeldCall(t *testing.T) {
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			token := sha256.Sum256([]byte("cs_token"))
			policy := &approvers.Policy{Clients: []approvers.Client{{Name: "ci", Token: hex.EncodeToString(token[:]), Hold: time.Hour}}}
			log := slog.New(slog.DiscardHandler)
			g, err := gateway.New(t.Context(), gateway.Config{
				Callers: noCallers{}, Views: waitingCall{}, Policy: func() *approvers.Policy { return policy }, Key: gateway.NewReceiptKey(), Log: log,
			})
			if err != nil {
				t.Fatal(err)
			}
			callers := proposes{hungUp: make(chan time.Duration, 1)}
			if _, err := Attach(Config{Gateway: g, Callers: callers, Views: learned{}, Policy: func() *approvers.Policy { return policy }, Tools: func() []workflow.Tool { return nil }, Log: log}); err != nil {
				t.Fatal(err)
			}
			srv, network := gateway.Server(g), testkit.NewNetwork()
			go func() { _ = srv.Serve(network) }()
			c, err := network.DialContext(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy","arguments":{},"_meta":{"progressToken":"p"}}}`
			if _, err := fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: gate.example\r\nAuthorization: Bearer cs_token\r\nContent-Type: application/json\r\n"+
				"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2025-06-18\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
				t.Fatal(err)
			}
			if reads {
				go func() { _, _ = io.Copy(io.Discard, c) }()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if waits := g.Waiting(); (waits == 1) != reads || (len(callers.hungUp) == 0) != reads {
				t.Errorf("the client reads: %t; after a minute, %d connections wait, and %d have hung up", reads, waits, len(callers.hungUp))
			}
			_ = c.Close()
			_ = srv.Close()
		})
	}
}

// A client cancels a call, and the message reaches another replica than the one that holds the call. The call ends. A
// cancellation without a session, with another session or of another client ends no call.
func TestCancelledAtAnotherReplica(t *testing.T) {
	for name, c := range map[string]struct {
		client, session, id string
		want                bool
	}{
		"the call": {"ci", "s-1", "7", true}, "another call": {"ci", "s-1", "8", false}, "another session": {"ci", "s-2", "7", false},
		"no session": {"ci", "", "7", false}, "another client": {"other", "s-1", "7", false}, "a long id": {"ci", "s-1", `"` + strings.Repeat("x", longestKey) + `"`, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			holds := &Server{held: held{by: map[heldKey]*exchange{}}}
			told := 0
			hears := &Server{Config: Config{Tell: func(what string) {
				told++
				if !holds.Hear(what) {
					t.Errorf("%s: the message %q is not known", name, what)
				}
			}}}
			call := &exchange{dropped: make(chan struct{})}
			defer holds.held.add(heldKey{"ci", "s-1", "7"}, call)()
			r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+c.id+`}}`))
			r.Header = http.Header{"Content-Type": {"application/json"}, sessionHeader: {c.session}}
			x := &exchange{client: approvers.Client{Name: c.client}, out: &answer{ResponseWriter: httptest.NewRecorder()}}
			if _, refused, err := hears.begin(x, r); refused || err != nil {
				t.Fatal(name, refused, err)
			}
			synctest.Wait()
			select {
			case <-call.dropped:
				if !c.want {
					t.Errorf("%s: the call has ended", name)
				}
			default:
				if c.want {
					t.Errorf("%s: the call is still held; %d messages were sent", name, told)
				}
			}
		})
	}
	if (&Server{}).Hear(`{"event":"user_change"}`) {
		t.Error("a message of the bot is taken for a cancellation")
	}
}

// A client gets an approver's questions as forms only if the client declares that it can show forms.
func TestElicits(t *testing.T) {
	for declared, want := range map[string]bool{
		`{}`: false, `{"elicitation":{}}`: true, `{"elicitation":{"form":{}}}`: true, `{"elicitation":{"form":{},"url":{}}}`: true, `{"elicitation":{"url":{}}}`: false, `{"elicitation":true}`: false,
	} {
		var can any
		if err := json.Unmarshal([]byte(declared), &can); err != nil {
			t.Fatal(err)
		}
		if got := elicits(mcp.Meta{mcp.MetaKeyClientCapabilities: can}); got != want {
			t.Errorf("%s: %t, want %t", declared, got, want)
		}
	}
}

func TestInputRequests(t *testing.T) {
	s := &gateway.State{WaitsFor: []string{"Team Lead"}, Questions: []gateway.Question{{Question: 0, Text: "Why?", By: "Team Lead", Answer: "Because."}, {Question: 2, Text: "When?", By: "Team Lead"}}}
	first, second := &view.CallerRequest{Call: store.Call{Request: "req_1"}}, &view.CallerRequest{Call: store.Call{Request: "req_2"}}
	if out := inputRequests(s, first); len(out) != 1 || out["req_1/2"] == nil {
		t.Errorf("the open questions are %v", out)
	}
	if out := inputRequests(s, second); len(out) != 1 || out["req_2/2"] == nil { // people were asked again, after a run with an unknown outcome
		t.Errorf("the open questions of the second request are %v", out)
	}
	s.WaitsFor = nil // the request is decided
	if out := inputRequests(s, first); len(out) != 0 {
		t.Errorf("a decided request has the open questions %v", out)
	}
}

func TestElicited(t *testing.T) {
	for response, want := range map[string]string{
		`{"action":"accept","content":{"answer":"Yes"}}`: "Yes",
		`{"action":"decline","content":{"answer":7}}`:    "The client declined to answer.",
		`{"action":"decline"}`:                           "The client declined to answer.",
		`{"action":"cancel"}`:                            "The client ended the question without an answer.",
		`{"action":"accept"}`:                            "",
		`{"action":"accept","content":{"answer":7}}`:     "",
		`{"action":"accept","content":{"answer":"` + strings.Repeat("é", maxText+1) + `"}}`: "",
		`{"content":{"answer":"Yes"}}`: "",
		`7`:                            "",
	} {
		if got, err := elicited(json.RawMessage(response)); got != want || (err != nil) != (want == "") {
			t.Errorf("%.60s: %q, %v; want %q", response, got, err, want)
		}
	}
}

// failingCallers is a workflow in which each action fails with err.
type failingCallers struct {
	Callers
	err error
}

func (c failingCallers) Propose(context.Context, workflow.CallerCall) (string, bool, error) {
	return "req_1", false, c.err
}

func (c failingCallers) Withdraw(context.Context, approvers.Client, string, string) error {
	return c.err
}

func (c failingCallers) Answer(context.Context, approvers.Client, string, int, string) error {
	return c.err
}

// runningCall has a call that is running. If err is set, no call can be read.
type runningCall struct {
	gateway.Views
	err error
}

func (r runningCall) Caller(context.Context, string, string) (view.CallerRequest, error) {
	own := store.CallerRequest{Caller: approvers.Caller{Name: "ci", Mode: approvers.ExecuteMode}, Request: "req_1"}
	return view.CallerRequest{
		Conversation: store.Conversation{Caller: &own}, Call: store.Call{ID: "req_1"}, Execution: &approvers.Execution{State: approvers.ExecutionExecuting}, Policy: &approvers.Policy{},
	}, r.err
}

// The answer says that a call did not run only if the workflow refused the call itself. If something else fails, the
// call may be running, and the answer says how to get the result.
func TestOnlyRefusedCallsDidNotRun(t *testing.T) {
	const withdraw, answer, result, tool = "countersign.withdraw", "countersign.answer", "countersign.result", "issue_refund"
	broken := errors.New("the store can't be read")
	problem := func(code workflow.CallerCode) error { return &workflow.CallerProblem{Code: code} }
	for name, c := range map[string]struct {
		tool       string
		task       bool
		err        error // of the workflow
		unreadable error // of reading the call
		patience   error // of reading the client's patience
		crowded    bool  // the client has as many waiting connections as it may have
		want       string
		mayRun     bool
	}{
		"refused":                      {tool: tool, err: problem(workflow.CallerBudget), want: "The call did not run. The client has used up its calls for today."},
		"proposed in vain":             {tool: tool, err: broken, want: "The request could not be handled now.", mayRun: true},
		"proposed with a lost token":   {tool: tool, err: problem(workflow.CallerUnknown), want: "The token is missing", mayRun: true},
		"held":                         {tool: tool, unreadable: broken, want: "The request could not be handled now.", mayRun: true},
		"held, patience unreadable":    {tool: tool, patience: broken, want: "The request could not be handled now.", mayRun: true},
		"held, crowded":                {tool: tool, crowded: true, want: "Too many connections of this client wait.", mayRun: true},
		"task":                         {tool: tool, task: true, unreadable: broken, want: "The request could not be handled now.", mayRun: true},
		"result":                       {tool: result, unreadable: broken, want: "The request could not be handled now.", mayRun: true},
		"result of an unknown request": {tool: result, unreadable: store.ErrNotFound, want: "There is no such request."},
		"withdrawn while running":      {tool: withdraw, err: problem(workflow.CallerOver), want: "The request can't be withdrawn any more.", mayRun: true},
		"answered while running":       {tool: answer, err: problem(workflow.CallerNoQuestion), want: "There is no such question to answer.", mayRun: true},
	} {
		g, err := gateway.New(t.Context(), gateway.Config{
			Callers: noCallers{}, Views: runningCall{err: c.unreadable}, Policy: func() *approvers.Policy { return &approvers.Policy{} }, Key: gateway.NewReceiptKey(), Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		x := &exchange{client: approvers.Client{Name: "ci", Hold: time.Minute}, version: modernVersion, task: c.task}
		for c.crowded {
			if _, err := g.Wait(x.client.Name); err != nil {
				break
			}
		}
		s := &Server{
			Config: Config{Gateway: g, Callers: failingCallers{err: c.err}, Views: learned{err: c.patience}, Log: slog.New(slog.DiscardHandler), Now: time.Now},
			own:    ownTools(),
		}
		args := map[string]string{withdraw: `{"request":"req_1"}`, answer: `{"request":"req_1","question":0,"text":"Yes"}`, result: `{"request":"req_1"}`, tool: `{}`}[c.tool]
		res, err := s.call(t.Context(), x, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: c.tool, Arguments: json.RawMessage(args)}})
		if err != nil {
			t.Fatal(name, err)
		}
		out := res.(*mcp.CallToolResult)
		text := out.Content[0].(*mcp.TextContent).Text
		if !out.IsError || !strings.HasPrefix(text, c.want) || strings.Contains(text, "The call may have run. To ") != c.mayRun {
			t.Errorf("%s: the answer is %q (error: %t)", name, text, out.IsError)
		}
		if says, refused := out.Meta[dispositionKey] == gateway.Denied, name == "refused"; says != refused {
			t.Errorf("%s: the answer has the _meta %v", name, out.Meta)
		}
	}
}

// The answer to a repeated call says that the earlier answer did not arrive only if that answer was not delivered. The
// answer has the time of a run only if the call ran.
func TestAnswerToARepeatedCall(t *testing.T) {
	at := time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		disposition string
		delivered   time.Time
		want        string
		ran         bool
	}{
		"ran":                            {disposition: gateway.Executed, want: "The answer did not reach you at that time. The call was not made again.", ran: true},
		"failed":                         {disposition: gateway.Failed, want: "The answer did not reach you at that time. The call was not made again.", ran: true},
		"unknown":                        {disposition: gateway.Uncertain, want: "The answer did not reach you at that time. The call was not made again."},
		"rejected":                       {disposition: gateway.Denied, want: "The answer did not reach you at that time. Nobody was asked again."},
		"rejected, the rejection stands": {disposition: gateway.Denied, delivered: at, want: "from 2026-07-27 12:00 UTC. Nobody was asked again."},
	} {
		rec := &view.CallerRequest{
			Conversation: store.Conversation{Caller: &store.CallerRequest{Delivered: c.delivered}}, Call: store.Call{ReturnedAt: at}, Execution: &approvers.Execution{},
		}
		out := finished(&gateway.State{ID: "req_1", Disposition: c.disposition, Result: "done"}, rec, true)
		text := out.Content[0].(*mcp.TextContent).Text
		if _, ran := out.Meta[ranAtKey]; ran != c.ran || !strings.HasPrefix(text, "This is the answer to your earlier identical call, from") || !strings.HasSuffix(text, c.want) {
			t.Errorf("%s: %q, with the _meta %v", name, text, out.Meta)
		}
	}
}

// repeated has one request, which every call repeats.
type repeated struct{ Callers }

func (repeated) Propose(context.Context, workflow.CallerCall) (string, bool, error) {
	return "req_1", true, nil
}

// A batch makes a call twice. The second call does not wait until the answer to the first one is sent, because both
// answers are sent together. A call in another exchange waits.
func TestRepeatedInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Config: Config{Callers: repeated{}}, ends: deliveries{by: map[string]*delivery{}}}
		client := approvers.Client{Hold: time.Minute}
		batch, other := &exchange{client: client}, &exchange{client: client}
		s.answers(batch, "req_1")
		ended := make(chan string, 2)
		for name, x := range map[string]*exchange{"batch": batch, "other": other} {
			go func() {
				if id, again, err := s.propose(t.Context(), x, workflow.CallerCall{}); id != "req_1" || !again || err != nil {
					t.Errorf("%s: %s %t %v", name, id, again, err)
				}
				ended <- name
			}()
		}
		synctest.Wait()
		if len(ended) != 1 || <-ended != "batch" {
			t.Errorf("%d calls have ended", len(ended))
		}
		s.ends.end([]string{"req_1"})
		synctest.Wait()
		if len(ended) != 1 {
			t.Error("the call in the other exchange still waits")
		}
	})
}

// A batch makes a call twice. The second call waits while another exchange sends the last state, and meanwhile the
// batch gets its own answer to the first call. The second call does not wait longer than a held call.
func TestBatchGetsAnAnswerDuringTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Config: Config{Callers: repeated{}}, ends: deliveries{by: map[string]*delivery{}}}
		batch := &exchange{client: approvers.Client{Hold: time.Minute}}
		s.answers(&exchange{}, "req_1")
		began := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			if id, again, err := s.propose(t.Context(), batch, workflow.CallerCall{}); id != "req_1" || !again || err != nil {
				t.Errorf("%s %t %v", id, again, err)
			}
		}()
		synctest.Wait()
		s.answers(batch, "req_1")
		s.ends.end([]string{"req_1"})
		<-done
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("the second call waited %s", waited)
		}
	})
}
