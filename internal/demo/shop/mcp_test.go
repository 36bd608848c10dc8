package shop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rawClient speaks JSON-RPC over the shop's streams, line by line, as any client may.
type rawClient struct {
	*testing.T
	in     io.WriteCloser
	out    *bufio.Scanner
	number int
}

// The function "served" connects a raw client with the given capabilities to a shop, until the test ends.
func served(t *testing.T, s *Shop, capabilities string) *rawClient {
	t.Helper()
	serverIn, in := io.Pipe()
	out, serverOut := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.ServeIO(context.Background(), serverIn, serverOut) }()
	c := &rawClient{T: t, in: in, out: bufio.NewScanner(out)}
	t.Cleanup(func() {
		in.Close()
		if err := <-done; err != nil {
			t.Errorf("the shop ended with: %v", err)
		}
	})
	hello := c.ask("initialize", `{"protocolVersion":"2025-06-18","capabilities":`+capabilities+`,"clientInfo":{"name":"raw","version":"1"}}`)
	if !strings.Contains(hello, `"countersign-shop"`) || !strings.Contains(hello, MetaKey) {
		t.Fatalf("initialize was answered with %s", hello)
	}
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *rawClient) say(line string) {
	c.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.Fatal(err)
	}
}

func (c *rawClient) hear() string {
	c.Helper()
	if !c.out.Scan() {
		c.Fatalf("the shop said nothing more: %v", c.out.Err())
	}
	return c.out.Text()
}

// ask sends a request and returns the next line.
func (c *rawClient) ask(method, params string) string {
	c.Helper()
	c.number++
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.number, method, params))
	return c.hear()
}

// outcome is a result of tools/call.
type outcome struct {
	Structured json.RawMessage `json:"structuredContent"`
	Content    []struct{ Type, Text string }
	IsError    bool
}

func readOutcome(t *testing.T, line string) outcome {
	t.Helper()
	var answer struct {
		Result outcome
		Error  json.RawMessage
	}
	if err := json.Unmarshal([]byte(line), &answer); err != nil || answer.Error != nil || len(answer.Result.Content) != 1 {
		t.Fatalf("%v: %s", err, line)
	}
	return answer.Result
}

// Every tool is listed with its unchanged schema, and with the right annotations.
func TestMCPListsTheTools(t *testing.T) {
	s := New(clock)
	var list struct {
		Result struct {
			Tools []struct {
				Name, Title, Description string
				InputSchema              json.RawMessage
				Annotations              json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(served(t, s, `{}`).ask("tools/list", `{}`)), &list); err != nil {
		t.Fatal(err)
	}
	tools := map[string]Tool{}
	for _, tool := range s.Tools() {
		tools[tool.Name] = tool
	}
	got := map[string]string{}
	for _, tool := range list.Result.Tools {
		var compact bytes.Buffer
		if err := json.Compact(&compact, tool.Annotations); err != nil {
			t.Fatal(err)
		}
		got[tool.Name] = compact.String()
		if want := tools[tool.Name]; tool.Description != want.Description || tool.Title != want.Title || !bytes.Equal(tool.InputSchema, want.Schema) {
			t.Errorf("%s is listed as %+v", tool.Name, tool)
		}
	}
	say := func(title string, readOnly, destructive, idempotent, open bool) string {
		harm := fmt.Sprintf(`"destructiveHint":%t,`, destructive)
		if readOnly {
			harm = ""
		}
		return fmt.Sprintf(`{%s"idempotentHint":%t,"openWorldHint":%t,"readOnlyHint":%t,"title":%q}`, harm, idempotent, open, readOnly, title)
	}
	want := map[string]string{
		"search_orders":           say("Find orders", true, false, true, false),
		"update_shipping_address": say("Change a shipping address", false, true, true, false),
		"update_profile":          say("Change a customer's profile", false, true, true, false),
		"apply_discount":          say("Give a discount", false, false, false, false),
		"issue_refund":            say("Give money back", false, true, false, true),
		"preview_refund":          say("Look what a refund would do", true, false, true, false),
		"process_payment":         say("Take a payment", false, true, false, true),
		"send_email":              say("Send an e-mail", false, true, false, true),
		"delete_account":          say("Delete an account", false, true, true, false),
		"cancel_account":          say("Cancel an account for good", false, true, true, false),
		"export_customer_data":    say("Hand out a customer's data", false, false, false, true),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// secondCalls has a call that succeeds in a new shop, for most of the tools that change something.
var secondCalls = map[string]string{
	"update_shipping_address": `{"order_id":"ORD-123","address":"12 Elm Street, Springfield"}`,
	"update_profile":          `{"user_id":"USR-456","phone":"+1 555 0142 77"}`,
	"apply_discount":          `{"order_id":"ORD-123","percent":10}`,
	"issue_refund":            `{"order_id":"ORD-123","amount":1.5,"currency":"USD"}`,
	"send_email":              `{"to":"bob@example.com","subject":"Hello","body":"Hi"}`,
	"cancel_account":          `{"user_id":"USR-456"}`,
	"export_customer_data":    `{"user_id":"USR-456"}`,
}

// If a tool in secondCalls is declared idempotent, a second call under another key changes nothing. With any other tool
// in secondCalls, the second call changes something.
func TestMCPIdempotentHintsAreTrue(t *testing.T) {
	for _, tool := range New(clock).Tools() {
		args, ok := secondCalls[tool.Name]
		if !ok {
			continue
		}
		t.Run(tool.Name, func(t *testing.T) {
			s := New(clock)
			run := func(key string) State {
				for _, own := range s.Tools() {
					if own.Name == tool.Name {
						if _, err := own.Run(t.Context(), key, json.RawMessage(args)); err != nil && key == "first" {
							t.Fatal(err)
						}
					}
				}
				state := s.State()
				state.Revision, state.Ledger, state.Runs = 0, nil, nil
				return state
			}
			first, second := run("first"), run("second")
			if same := cmp.Equal(first, second); same != tool.Settles {
				t.Errorf("a second call changed nothing: %t; the tool says %t", same, tool.Settles)
			}
		})
	}
}

// A result is returned both in structured form and as text. A repeated key has no second effect. A tool's error is a
// result that gives the reason. An unknown tool is an error of the protocol.
func TestMCPCalls(t *testing.T) {
	s := New(clock)
	c := served(t, s, `{}`)
	refund := `{"name":"issue_refund","arguments":{"order_id":"ORD-123","amount":20,"currency":"USD","reason":"arrived broken"},"_meta":{"countersign/execution":"exec-1"}}`
	first := readOutcome(t, c.ask("tools/call", refund))
	if first.IsError || first.Content[0].Type != "text" || first.Content[0].Text != string(first.Structured) || !strings.Contains(first.Content[0].Text, `"refund_id":"RFD-1003"`) {
		t.Errorf("the refund was answered with %+v", first)
	}
	if again := readOutcome(t, c.ask("tools/call", refund)); cmp.Diff(first, again) != "" {
		t.Errorf("the same key was answered with %+v", again)
	}
	if ledger := s.Ledger(); len(ledger) != 1 || ledger[0].Key != "exec-1" || ledger[0].Repeats != 1 {
		t.Errorf("ledger %+v, want one entry repeated once", ledger)
	}
	for _, problem := range []struct{ call, want string }{
		{`{"name":"issue_refund","arguments":{"order_id":"ORD-123","amount":20,"currency":"USD"}}`, "issue_refund changes something and needs an idempotency key."},
		{`{"name":"issue_refund","arguments":{"order_id":"ORD-123","amount":20,"currency":"USD"},"_meta":{"countersign/execution":7}}`, "issue_refund changes something and needs an idempotency key."},
		{`{"name":"issue_refund","arguments":{"order_id":"ORD-123","amount":20,"currency":"EUR"},"_meta":{"countersign/execution":"exec-2"}}`, "ORD-123 was paid in USD, so it can't be refunded in EUR."},
		{`{"name":"export_customer_data","arguments":{"user":"USR-456"},"_meta":{"countersign/execution":"exec-3"}}`, "The arguments of export_customer_data are not right"},
		{`{"name":"export_customer_data","arguments":{"user_id":"USR-456"}}`, "export_customer_data changes something and needs an idempotency key."},
	} {
		got := readOutcome(t, c.ask("tools/call", problem.call))
		if !got.IsError || !strings.Contains(got.Content[0].Text, problem.want) || got.Structured != nil {
			t.Errorf("%s\nwas answered with %+v\nwant an error with %q", problem.call, got, problem.want)
		}
	}
	if line := c.ask("tools/call", `{"name":"rob_bank","arguments":{}}`); !strings.Contains(line, `"error"`) || !strings.Contains(line, "rob_bank") {
		t.Errorf("an unknown tool was answered with %s", line)
	}
}

// A client that asks for progress gets the progress of an export.
func TestMCPProgress(t *testing.T) {
	c := served(t, New(clock), `{}`)
	said := []string{c.ask("tools/call", `{"name":"export_customer_data","arguments":{"user_id":"USR-456"},"_meta":{"countersign/execution":"exec-1","progressToken":"p1"}}`)}
	said = append(said, c.hear(), c.hear())
	for i, want := range []string{"Collecting the data of USR-456", "Entered in the ledger as EXP-1001", `"result"`} {
		if !strings.Contains(said[i], want) {
			t.Errorf("line %d is %s, want one with %s", i+1, said[i], want)
		}
	}
}

// If the arguments name no sections and the client can show forms, the shop asks the requester for the sections. If the
// arguments name sections, or the client can't show forms, the shop does not ask.
func TestMCPExportAsksForSections(t *testing.T) {
	const call = `{"name":"export_customer_data","arguments":{"user_id":"USR-456"},"_meta":{"countersign/execution":"exec-1"}}`
	for _, tt := range []struct {
		name, reply, want string
		wrong             bool
	}{
		{"some", `{"action":"accept","content":{"profile":true,"orders":false,"payments":false,"emails":true}}`, `"sections":["profile","emails"]`, false},
		{"as they are ticked", `{"action":"accept","content":{}}`, `"sections":["profile","orders","payments","emails"]`, false},
		{"none", `{"action":"accept","content":{"profile":false,"orders":false,"payments":false,"emails":false}}`, "None of the sections was chosen", true},
		{"declined", `{"action":"decline"}`, "does not want it any more, so nothing was exported", true},
		{"without an answer", `{"action":"cancel"}`, `"sections":["profile","orders","payments","emails"]`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(clock)
			c := served(t, s, `{"elicitation":{}}`)
			question := c.ask("tools/call", call)
			var form struct {
				ID     json.RawMessage
				Method string
				Params struct {
					Message         string
					RequestedSchema struct {
						Properties map[string]struct{ Type, Title string }
					}
				}
			}
			if err := json.Unmarshal([]byte(question), &form); err != nil || form.Method != "elicitation/create" || len(form.Params.RequestedSchema.Properties) != 4 ||
				form.Params.RequestedSchema.Properties["emails"].Title != "Emails" || !strings.Contains(form.Params.Message, "USR-456") {
				t.Fatalf("%v: %s", err, question)
			}
			c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, form.ID, tt.reply))
			got := readOutcome(t, c.hear())
			if got.IsError != tt.wrong || !strings.Contains(got.Content[0].Text, tt.want) {
				t.Errorf("answered with %+v, want %s", got, tt.want)
			}
			if n := len(s.Ledger()); n == 1 == tt.wrong {
				t.Errorf("%d entries in the ledger", n)
			}
			if !tt.wrong { // the same key gets the same answer, without a question
				if again := readOutcome(t, c.ask("tools/call", call)); cmp.Diff(got, again) != "" {
					t.Errorf("the second time: %+v", again)
				}
			}
		})
	}
	t.Run("named", func(t *testing.T) {
		c := served(t, New(clock), `{"elicitation":{}}`)
		got := readOutcome(t, c.ask("tools/call", `{"name":"export_customer_data","arguments":{"user_id":"USR-456","sections":["orders"]},"_meta":{"countersign/execution":"exec-1"}}`))
		if got.IsError || !strings.Contains(got.Content[0].Text, `"sections":["orders"]`) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("addresses only", func(t *testing.T) {
		c := served(t, New(clock), `{"elicitation":{"url":{}}}`)
		if got := readOutcome(t, c.ask("tools/call", call)); got.IsError || !strings.Contains(got.Content[0].Text, `"sections":["profile","orders","payments","emails"]`) {
			t.Errorf("%+v", got)
		}
	})
}

// The newest version of MCP over HTTP has no sessions. Therefore the answer to the call contains the question, and the
// client repeats the call with the requester's reply.
func TestMCPOverHTTP(t *testing.T) {
	s := New(clock)
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	var asked string
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked = r.Params.Message
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"profile": true, "orders": false, "payments": false, "emails": false}}, nil
		},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), &mcp.ListToolsParams{})
	if err != nil || len(tools.Tools) != 11 {
		t.Fatalf("%d tools, %v", len(tools.Tools), err)
	}
	got, err := session.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "export_customer_data", Arguments: map[string]any{"user_id": "USR-456"}, Meta: mcp.Meta{MetaKey: "exec-1"},
	})
	if err != nil || got.IsError {
		t.Fatalf("%+v, %v", got, err)
	}
	if text := got.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, `"sections":["profile"]`) || !strings.Contains(asked, "USR-456") {
		t.Errorf("asked %q, got %s", asked, text)
	}
}

// A page of another site can't call the tools through a browser, not even by a host name that resolves to this server.
func TestMCPRefusesOtherOrigins(t *testing.T) {
	web := httptest.NewServer(New(clock).Handler())
	defer web.Close()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
	for _, tt := range []struct {
		name         string
		origin, host string
		want         int
	}{
		{"a client", "", "", http.StatusOK},
		{"another page", "https://evil.example", "", http.StatusForbidden},
		{"rebound", "", "evil.example", http.StatusForbidden},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/mcp", strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if tt.origin != "" {
			req.Header.Set("Origin", tt.origin)
		}
		req.Host = tt.host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s: %s, want %d", tt.name, resp.Status, tt.want)
		}
	}
}

// The server ends when its context ends, even if no request arrives.
func TestMCPEndsWithItsContext(t *testing.T) {
	in, _ := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- New(clock).ServeIO(ctx, in, nopWriteCloser{io.Discard}) }()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

// Two shops that use the same file, like two processes, see each other's changes. A key that was used in one shop also
// counts as used in the other shop.
func TestTwoShopsOnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.json")
	one, err := Open(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := refund(t, one, "exec-1", "ORD-123", 2000); err != nil {
		t.Fatal(err)
	}
	if _, err := refund(t, other, "exec-2", "ORD-123", 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := refund(t, other, "exec-1", "ORD-123", 2000); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Shop{"one": one, "other": other} {
		if state := s.State(); len(state.Ledger) != 2 || state.Ledger[0].Repeats != 1 || state.Orders[0].Refunded != 3000 {
			t.Errorf("%s: ledger %+v, refunded %v", name, state.Ledger, state.Orders[0].Refunded)
		}
	}
	if found, err := one.SearchOrders(t.Context(), SearchArgs{OrderID: "ORD-123"}); err != nil || found.Orders[0].Refunded != 3000 {
		t.Errorf("%+v, %v", found, err)
	}
}
