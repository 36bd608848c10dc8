package mcpserver

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
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

// listenedCalls has the calls of the client ci. A test changes the calls.
type listenedCalls struct {
	gateway.Views
	Callers

	mu        sync.Mutex
	calls     map[string]view.CallerRequest
	holds     map[string]chan struct{}
	delivered []string
}

func (c *listenedCalls) Caller(_ context.Context, _, id string) (view.CallerRequest, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if rec, ok := c.calls[id]; ok {
		return rec, nil
	}
	return view.CallerRequest{}, store.ErrNotFound
}

func (c *listenedCalls) Hold(_ approvers.Client, id string) (<-chan struct{}, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds[id] = make(chan struct{}, 1)
	return c.holds[id], func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.holds, id)
	}
}

func (c *listenedCalls) Delivered(_ context.Context, _ approvers.Client, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delivered = append(c.delivered, id)
	return nil
}

// set changes a call, and wakes the connections that wait for it.
func (c *listenedCalls) set(id string, change func(*view.CallerRequest)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rec, ok := c.calls[id]
	if !ok {
		own := store.CallerRequest{Caller: approvers.Caller{Name: "ci", Mode: approvers.ExecuteMode}, Request: id}
		rec = view.CallerRequest{
			Conversation: store.Conversation{Caller: &own}, Call: store.Call{ID: id, Request: id}, Request: &approvers.Request{ID: id, State: approvers.Pending}, Policy: &approvers.Policy{},
		}
	}
	request := *rec.Request
	rec.Request = &request
	change(&rec)
	c.calls[id] = rec
	if c.holds[id] != nil {
		c.holds[id] <- struct{}{}
	}
}

func (c *listenedCalls) runs(id string) {
	c.set(id, func(r *view.CallerRequest) {
		r.Request.State, r.Execution = approvers.Consumed, &approvers.Execution{State: approvers.ExecutionSucceeded, Result: "done"}
	})
}

// listening is a gateway whose client ci listens to tasks.
type listening struct {
	*testing.T
	*listenedCalls
	gate     *gateway.Gateway
	network  *testkit.Network
	mu       sync.Mutex
	policy   *approvers.Policy
	stopping chan struct{}
}

func (l *listening) inForce() *approvers.Policy {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.policy
}

func openListening(t *testing.T) *listening {
	token := sha256.Sum256([]byte("cs_token"))
	l := &listening{
		T: t, listenedCalls: &listenedCalls{calls: map[string]view.CallerRequest{}, holds: map[string]chan struct{}{}}, network: testkit.NewNetwork(), stopping: make(chan struct{}),
		policy: &approvers.Policy{Clients: []approvers.Client{{Name: "ci", Token: hex.EncodeToString(token[:])}}},
	}
	log := slog.New(slog.DiscardHandler)
	var err error
	l.gate, err = gateway.New(t.Context(), gateway.Config{Callers: noCallers{}, Views: l.listenedCalls, Policy: l.inForce, Key: gateway.NewReceiptKey(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Attach(Config{
		Gateway: l.gate, Callers: l.listenedCalls, Views: learned{}, Policy: l.inForce, Tools: func() []workflow.Tool { return nil }, Stopping: l.stopping, Log: log,
	}); err != nil {
		t.Fatal(err)
	}
	srv := gateway.Server(l.gate)
	go func() { _ = srv.Serve(l.network) }()
	t.Cleanup(func() { _ = srv.Close() })
	return l
}

// listens sends a subscriptions/listen message. The function lines returns the lines of the answer since the last call of
// lines.
func (l *listening) listens(id, filter, capabilities string) (lines func() []string, hangUp func()) {
	l.Helper()
	ctx, cancel := context.WithCancel(l.Context())
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":%s,"_meta":{%q:%q,%q:{"name":"test","version":"1"},%q:%s}}}`,
		id, filter, mcp.MetaKeyProtocolVersion, modernVersion, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities, capabilities)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gate.example/mcp", strings.NewReader(body))
	if err != nil {
		l.Fatal(err)
	}
	r.Header = http.Header{
		"Authorization": {"Bearer cs_token"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		versionHeader: {modernVersion}, "Mcp-Method": {"subscriptions/listen"},
	}
	transport := &http.Transport{DialContext: l.network.DialContext, DisableKeepAlives: true}
	var mu sync.Mutex
	var said []string
	go func() {
		resp, err := transport.RoundTrip(r)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			if line := s.Text(); line != "" && line != "event: message" {
				mu.Lock()
				said = append(said, line)
				mu.Unlock()
			}
		}
	}()
	return func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		defer func() { said = nil }()
		return said
	}, cancel
}

// says checks the lines of an answer. Each line must contain all words of the corresponding list, separated by spaces.
func (l *listening) says(lines func() []string, want ...string) {
	l.Helper()
	got := lines()
	if len(got) != len(want) {
		l.Fatalf("the lines are %q, want %q", got, want)
	}
	for i, words := range want {
		for word := range strings.FieldsSeq(words) {
			if !strings.Contains(got[i], word) {
				l.Errorf("line %d lacks %s: %s", i, word, got[i])
			}
		}
	}
}

const (
	withTasksAndForms = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	acknowledged      = `"method":"notifications/subscriptions/acknowledged"`
	notified          = `"method":"notifications/tasks"`
	subscription      = `"io.modelcontextprotocol/subscriptionId":`
)

// A client listens to its tasks: it gets their states, each change, and the results. It gets no tasks that it does not
// have. The results count as delivered while the stream continues. The stream ends with the last task.
func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openListening(t)
		l.set("req_1", func(*view.CallerRequest) {})
		l.set("req_2", func(*view.CallerRequest) {})
		lines, _ := l.listens(`"a"`, `{"taskIds":["req_1","req_0","req_2","req_1"],"toolsListChanged":true}`, withTasksAndForms)
		first := lines()
		slices.Sort(first[1:])
		l.says(func() []string { return first }, `"notifications":{"taskIds":["req_1","req_2"]} `+acknowledged+" "+subscription+`"a"`,
			`"taskId":"req_1" "status":"working" "pollIntervalMs" `+notified+" "+subscription+`"a"`, `"taskId":"req_2" "status":"working" `+notified)
		if n := l.gate.Waiting(); n != 1 {
			t.Errorf("%d connections wait", n)
		}

		l.set("req_1", func(*view.CallerRequest) {}) // wakes the connection without a change
		l.says(lines)
		l.set("req_1", func(r *view.CallerRequest) {
			r.Request.Remarks, r.Request.Retry = []approvers.Remark{{Kind: approvers.Question, Text: "Why?", At: time.Now()}}, &approvers.Retry{Remarks: 4}
		})
		l.says(lines, `"taskId":"req_1" "status":"input_required" "inputRequests" "req_1/4" Why? `+notified)
		l.runs("req_2")
		l.says(lines, `"taskId":"req_2" "status":"completed" "text":"done" "approved-executed" `+notified)
		if !slices.Equal(l.delivered, []string{"req_2"}) {
			t.Errorf("delivered are %q", l.delivered)
		}
		time.Sleep(progressEvery)
		l.says(lines, ": waiting")
		l.set("req_1", func(r *view.CallerRequest) {
			r.Request.State, r.Call.Outcome = approvers.Withdrawn, approvers.OutcomeWithdrawn
		})
		l.says(lines, `"taskId":"req_1" "status":"cancelled" `+notified, `"id":"a" "resultType":"complete" "result" `+subscription+`"a"`)
		if n := l.gate.Waiting(); n != 0 || len(l.holds) != 0 || !slices.Equal(l.delivered, []string{"req_2", "req_1"}) {
			t.Errorf("%d connections wait, %d calls are held, and %q are delivered", n, len(l.holds), l.delivered)
		}
	})
}

// A client that does not declare the extension gets no notifications. If no task of the list belongs to the client, the
// stream ends immediately.
func TestListenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openListening(t)
		l.set("req_1", func(*view.CallerRequest) {})
		for _, c := range []struct{ filter, capabilities, want string }{
			{`{"taskIds":["req_1"]}`, `{}`, `"code":-32021 "requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`},
			{`{"taskIds":"req_1"}`, withTasksAndForms, `"code":-32602 taskIds`},
		} {
			lines, _ := l.listens(`1`, c.filter, c.capabilities)
			l.says(lines, c.want)
		}
		for _, filter := range []string{`{"taskIds":["req_0"]}`, `{"taskIds":[]}`, `{"toolsListChanged":true}`} {
			lines, _ := l.listens(`1`, filter, withTasksAndForms)
			l.says(lines, `"notifications":{} `+acknowledged, `"id":1 "resultType":"complete"`)
		}
		var many []string
		for i := range mostListened + 1 {
			many = append(many, fmt.Sprintf("%q", fmt.Sprint("req_", i)))
			l.set(fmt.Sprint("req_", i), func(*view.CallerRequest) {})
		}
		lines, hangUp := l.listens(`1`, `{"taskIds":[`+strings.Join(many, ",")+`]}`, withTasksAndForms)
		if got := lines(); len(got) != 1+mostListened || strings.Contains(got[0], fmt.Sprint("req_", mostListened)) {
			t.Errorf("%d lines, and the first is %s", len(got), got[0])
		}
		hangUp()
		synctest.Wait()
		if n := l.gate.Waiting(); n != 0 || len(l.holds) != 0 {
			t.Errorf("after the client has hung up, %d connections wait, and %d calls are held", n, len(l.holds))
		}
	})
}

// A stream ends with an answer after an hour, when the process stops, and when the client's token becomes invalid.
func TestListenEnds(t *testing.T) {
	for name, ends := range map[string]func(*listening){
		"after an hour": func(*listening) { time.Sleep(longest) },
		"at a stop":     func(l *listening) { close(l.stopping) },
		"token removed": func(l *listening) {
			l.mu.Lock()
			l.policy = &approvers.Policy{}
			l.mu.Unlock()
			time.Sleep(progressEvery)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := openListening(t)
			l.set("req_1", func(*view.CallerRequest) {})
			lines, _ := l.listens(`1`, `{"taskIds":["req_1"]}`, withTasksAndForms)
			l.says(lines, acknowledged, `"status":"working"`)
			ends(l)
			if got := lines(); len(got) == 0 || !strings.Contains(got[len(got)-1], `"resultType":"complete"`) || l.gate.Waiting() != 0 {
				t.Errorf("%s: the stream ends with %q, and %d connections wait", name, got, l.gate.Waiting())
			}
		})
	}
}

// If a task no longer exists, the stream ends with an error, which is an event like all other messages.
func TestListenToErasedTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openListening(t)
		l.set("req_1", func(*view.CallerRequest) {})
		lines, _ := l.listens(`1`, `{"taskIds":["req_1"]}`, withTasksAndForms)
		l.says(lines, acknowledged, `"status":"working"`)
		l.listenedCalls.mu.Lock()
		delete(l.calls, "req_1")
		l.holds["req_1"] <- struct{}{}
		l.listenedCalls.mu.Unlock()
		got := lines()
		l.says(func() []string { return got }, `"id":1 "error" no such task`)
		if !strings.HasPrefix(got[0], "data: ") {
			t.Errorf("the error is not an event: %s", got[0])
		}
	})
}

// An answer has the id of its message in the notation of the message, even if the SDK would write the number in another
// way.
func TestNotationOfIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openListening(t)
		l.set("req_1", func(*view.CallerRequest) {})
		l.runs("req_1")
		for _, id := range []string{`7`, `-7`, `0`, `9007199254740993`, `9223372036854775808`, `-18446744073709551617`, `1.0`, `1e2`, `-0`, `"7"`, `"a b"`} {
			for _, filter := range []string{`{}`, `{"taskIds":["req_1"]}`} { // the SDK answers the first message, and this server the second one
				lines, _ := l.listens(id, filter, withTasksAndForms)
				got := lines()
				if all := strings.Join(got, "\n"); strings.Count(all, subscription+id+"}") != len(got) || !strings.Contains(got[len(got)-1], `"id":`+id+`,"result"`) {
					t.Errorf("the answer to the message %s: %s", id, all)
				}
			}
		}
	})
}

// In the oldest version of the protocol, a client may send several messages at once. The answers have the ids in the
// notation of the messages. A batch has a limit, and each of its messages counts as a request of the client.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openListening(t)
		post := func(messages []string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader("["+strings.Join(messages, " , ")+"]"))
			r.Header = http.Header{
				"Authorization": {"Bearer cs_token"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, versionHeader: {"2025-03-26"},
			}
			reply := httptest.NewRecorder()
			l.gate.ServeHTTP(reply, r)
			return reply
		}
		list := func(id string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/list"}`, id) }
		ids := []string{`9007199254740993`, `9007199254740992`, `1.0`, `7`, `"a b"`, `-0`}
		var messages []string
		for _, id := range ids {
			messages = append(messages, list(id))
		}
		reply := post(append(messages, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
		for _, id := range ids {
			if n := strings.Count(reply.Body.String(), `"id":`+id+`,"result"`); n != 1 {
				t.Errorf("%d answers have the id %s: %d %s", n, id, reply.Code, reply.Body)
			}
		}
		full := slices.Repeat([]string{list("7")}, maxBatch)
		if reply := post(append(full, list("7"))); reply.Code != http.StatusBadRequest || !strings.Contains(reply.Body.String(), "a batch may have at most 100 messages") {
			t.Errorf("a long batch is answered %d %s", reply.Code, reply.Body)
		}
		began := time.Now()
		for range 20 {
			post(full[:len(full):len(full)])
		}
		if took := time.Since(began); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("2000 messages in batches took %s", took)
		}
	})
}
