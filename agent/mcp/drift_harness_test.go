package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/config"
	"countersign/store"
	"countersign/store/bolt"
)

// driftingServer is a server whose tool list a test writes, byte for byte. The SDK handles the session, the calls,
// and the notification that the list has changed.
type driftingServer struct {
	sdk  *sdk.Server
	http http.Handler
	runs atomic.Int64 // number of calls to its tools

	mu    sync.Mutex
	pages [][]string // pages of the list of tools
	news  int
}

func newDriftingServer(pages ...[]string) *driftingServer {
	s := &driftingServer{sdk: sdk.NewServer(&sdk.Implementation{Name: "shifty", Version: "1"}, nil), pages: pages}
	s.has("act")
	s.http = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk }, &sdk.StreamableHTTPOptions{JSONResponse: true})
	return s
}

// has adds a tool to the SDK's server, so that the tool can be called.
func (s *driftingServer) has(name string) {
	s.sdk.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.runs.Add(1)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil
	})
}

// says changes the list. If aloud is true, the server announces the change.
func (s *driftingServer) says(aloud bool, pages ...[]string) {
	s.mu.Lock()
	s.pages = pages
	s.news++
	n := s.news
	s.mu.Unlock()
	if aloud {
		s.has(fmt.Sprint("news-", n%2)) // the SDK announces each added tool; the client receives the test's list
	}
}

// ServeHTTP replaces the SDK's list of tools by the list of the test.
func (s *driftingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var m struct {
		Method string
		Params struct{ Cursor string }
	}
	if r.Method != http.MethodPost || json.Unmarshal(body, &m) != nil || m.Method != "tools/list" {
		s.http.ServeHTTP(w, r)
		return
	}
	cursor := m.Params.Cursor
	if cursor != "" { // the cursor belongs to the test's pages, which the SDK does not have
		body = bytes.Replace(body, []byte(`"cursor":"`+cursor+`"`), []byte(`"cursor":""`), 1)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	taken := httptest.NewRecorder()
	s.http.ServeHTTP(taken, r)
	var answer struct {
		ID     json.RawMessage
		Result json.RawMessage
	}
	if taken.Code != http.StatusOK || json.Unmarshal(taken.Body.Bytes(), &answer) != nil || answer.Result == nil {
		for k, v := range taken.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(taken.Code)
		_, _ = w.Write(taken.Body.Bytes())
		return
	}
	s.mu.Lock()
	page := min(len(cursor), len(s.pages)-1) // the cursor of page 2 is "xx"
	list, next := strings.Join(s.pages[page], ","), ""
	if page+1 < len(s.pages) {
		next = `,"nextCursor":"` + strings.Repeat("x", page+1) + `"`
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if id := taken.Header().Get("Mcp-Session-Id"); id != "" {
		w.Header().Set("Mcp-Session-Id", id)
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]%s}}`, answer.ID, list, next)
}

// harness has a workflow, and a client for one server.
type harness struct {
	*workflow.Workflow
	t      *testing.T
	tools  *agent.Registry
	client *Client
	offers chan struct{}
	n      int
}

// newHarness connects to a server at an address, and pins the tools that the server offers.
func newHarness(t *testing.T, h http.Handler) *harness {
	t.Helper()
	l := quick()
	l.fresh, l.again = 50*time.Millisecond, time.Hour
	return newHarnessWith(t, h, l)
}

func newHarnessWith(t *testing.T, h http.Handler, l limits) *harness {
	t.Helper()
	at := httptest.NewServer(h)
	t.Cleanup(func() { at.CloseClientConnections(); at.Close() })
	db, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	o := &harness{t: t, tools: &agent.Registry{}, offers: make(chan struct{}, 1000)}
	o.client = open(Config{
		Servers: []config.Server{{Name: "srv", URL: at.URL, Allow: []string{"127.0.0.0/8"}, Timeout: patience, MaxResult: 1 << 20}},
		Offer: func(server string, tools []agent.Tool) {
			o.tools.Replace(server, tools)
			o.offers <- struct{}{}
		},
		Log: slog.New(slog.DiscardHandler), Version: "test",
	}, l)
	runUntilEnd(t, o.client)
	policy := &approvers.Policy{
		Hash:      "policy",
		Defaults:  approvers.Defaults{ExpiresAfter: time.Hour, RunWithin: time.Hour, UnknownTool: approvers.ToolPolicy{Risk: approvers.Critical, Confirm: true}},
		Approvers: []approvers.Role{{Name: "lead", Title: "Lead", MaxRisk: approvers.Critical, CanApprove: []string{"*"}, Members: []approvers.Member{{Kind: approvers.MemberUser, Value: "U2"}}}},
		Agents:    []approvers.Agent{{Name: "support", Channels: []string{"*"}, Tools: []string{"*"}}},
	}
	o.Workflow = workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return policy }, Tools: o.tools, Log: slog.New(slog.DiscardHandler)})
	o.offered()
	o.pinWhatIsOffered()
	o.ok(o.Requests.Reevaluate(t.Context()))
	return o
}

func (o *harness) ok(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// offered waits until the client has reported a changed list.
func (o *harness) offered() {
	o.t.Helper()
	select {
	case <-o.offers:
	case <-time.After(patience):
		o.t.Fatal("the server's list was not read again")
	}
}

// pinWhatIsOffered pins the offered tools, as countersign tools pin does.
func (o *harness) pinWhatIsOffered() {
	o.t.Helper()
	var pinned []agent.Tool
	all, _ := o.tools.Status()
	for _, s := range all {
		if s.Tool.Source != "srv" || s.State == "gone" {
			continue
		}
		tool, err := o.client.Tool("srv", s.Definition)
		o.ok(err)
		pinned = append(pinned, tool)
	}
	for _, err := range o.tools.Pin("srv", pinned) {
		o.t.Fatal(err)
	}
}

// ask proposes a call to the workflow as the model does, and returns the stored call.
func (o *harness) ask(tool, args string) store.Call {
	o.t.Helper()
	ctx := o.t.Context()
	o.n++
	u := workflow.IncomingMessage{
		Inbox: fmt.Sprint("Ev", o.n), At: time.Now(), Team: "T1", Thread: fmt.Sprint("1.", o.n), TS: fmt.Sprint("1.", o.n), Text: "please", Start: true,
		Who: approvers.Identity{ID: approvers.Who("T1", "U1"), Name: "U1"}, Channel: approvers.ChannelRef{Channel: "C1", Name: "support"},
	}
	_, err := o.Intake.Receive(ctx, store.Inbox{ID: u.Inbox, Kind: store.InboxEvent, ReceivedAt: u.At, Payload: []byte("{}")}, "thread:"+u.Thread)
	o.ok(err)
	heard, err := o.Intake.ReceiveMessage(ctx, u)
	o.ok(err)
	b, err := o.Turns.Begin(ctx, heard.Turn)
	o.ok(err)
	o.ok(o.Turns.Propose(ctx, workflow.Proposal{Turn: heard.Turn, Step: b.Turn.Step, Calls: []workflow.ModelCall{{ID: "m1", Tool: tool, Args: args}}}))
	var calls []store.Call
	o.ok(o.Store.View(ctx, func(r store.Reader) (err error) {
		calls, err = r.Calls(heard.Turn)
		return err
	}))
	return calls[0]
}

func (o *harness) request(id string) approvers.Request {
	o.t.Helper()
	r, err := o.Views.Request(o.t.Context(), id)
	o.ok(err)
	return r
}

// blocked returns the reason why a tool is blocked, or "".
func (o *harness) blocked(name string) string {
	tool, ok := o.tools.Tool(name)
	if !ok {
		return "it is not there"
	}
	return tool.Blocked
}

// stale makes the client's list so old that the next call reads the list again.
func (o *harness) stale() {
	o.t.Helper()
	ses, err := o.client.servers[0].ready(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	ses.listing.Lock()
	defer ses.listing.Unlock()
	ses.readAt = time.Time{}
}

// until waits for a condition.
func (o *harness) until(otherwise string, is func() bool) {
	o.t.Helper()
	// The loop polls the condition, because nothing signals the change.
	for limit := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			o.t.Fatal(otherwise)
		}
	}
}
