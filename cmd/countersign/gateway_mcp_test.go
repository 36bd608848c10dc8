package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/internal/testkit"
	"countersign/internal/testkit/npm"
	"countersign/internal/testkit/pgserver"
)

// These are the keys of _meta in the gateway's results.
const (
	dispositionKey = "io.modelcontextprotocol/tool-approval-disposition"
	requestKey     = "countersign/request"
	ranAtKey       = "countersign/ran_at"
)

// onBehalfOfKey is the key of _meta in calls.
const onBehalfOfKey = "countersign/on_behalf_of"

// briefToken is the token of the client "brief". The gateway holds a call of this client for only one second.
const briefToken = "cs_the-token-of-brief"

// withBrief adds the client "brief" to a policy. Under this policy, the bot sends an e-mail even if the caller has
// disconnected.
func withBrief(policy string) string {
	policy = strings.Replace(policy, "send_email:      {risk: high", "send_email:      {when_caller_left: run, risk: high", 1)
	return policy + fmt.Sprintf("  brief: {token: \"sha256:%s\", agent: support, owner: U0100, tools: [issue_refund, send_email], hold: 1s}\n", tokenHash(briefToken))
}

// bearer adds a token to HTTP requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// mcpClient is another agent that speaks MCP. mcpClient uses the official Go SDK.
type mcpClient struct {
	*testing.T
	*mcp.ClientSession
	progress chan string
}

// openMCP connects with a version of the protocol. The version "" means the latest version.
func openMCP(t *testing.T, base, token, version string) mcpClient {
	t.Helper()
	return connectMCP(t, &mcp.StreamableClientTransport{Endpoint: base + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true}, version)
}

func connectMCP(t *testing.T, over mcp.Transport, version string) mcpClient {
	t.Helper()
	progress := make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			select {
			case progress <- r.Params.Message:
			case <-t.Context().Done(): // otherwise a message that nobody reads would block the end of the session
			}
		},
	})
	session, err := client.Connect(t.Context(), over, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return mcpClient{t, session, progress}
}

// openMCPProcess connects through a process that speaks MCP over its standard input and output.
func openMCPProcess(t *testing.T, base, token, version string) mcpClient {
	t.Helper()
	path := programPath(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "gateway", "--stdio")
	cmd.Env = append(plainEnv(), "COUNTERSIGN_HOOK_ADDRESS="+base, "COUNTERSIGN_HOOK_TOKEN_FILE="+file)
	return connectMCP(t, &mcp.CommandTransport{Command: cmd}, version)
}

type mcpAnswer struct {
	*mcp.CallToolResult
	text string
	err  error
}

// The method "wants" checks that an answer has the disposition, and contains all the words. The disposition "" means
// that the answer has no result.
func (c mcpClient) wants(a mcpAnswer, disposition string, words ...string) mcpAnswer {
	c.Helper()
	if a.err != nil {
		c.Fatal(a.err)
	}
	got, _ := a.Meta[dispositionKey].(string)
	if got != disposition || a.IsError != (disposition != "approved-executed") {
		c.Fatalf("the answer has the disposition %q, want %q: %s", got, disposition, a.text)
	}
	for _, w := range words {
		if !strings.Contains(a.text, w) {
			c.Fatalf("the answer lacks %q: %s", w, a.text)
		}
	}
	return a
}

func (a mcpAnswer) request() string {
	id, _ := a.Meta[requestKey].(string)
	return id
}

func (c mcpClient) callIn(ctx context.Context, tool, args string) mcpAnswer {
	return c.callWith(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
}

func (c mcpClient) callWith(ctx context.Context, p *mcp.CallToolParams) mcpAnswer {
	p.SetProgressToken("p-" + p.Name)
	r, err := c.CallTool(ctx, p)
	if err != nil {
		return mcpAnswer{err: err}
	}
	a := mcpAnswer{CallToolResult: r}
	for _, one := range r.Content {
		if t, ok := one.(*mcp.TextContent); ok {
			a.text += t.Text + "\n"
		}
	}
	return a
}

func (c mcpClient) call(tool, args string) mcpAnswer { return c.callIn(c.Context(), tool, args) }

// The method "does" calls one of the gateway's own tools about a request. The call must succeed.
func (c mcpClient) does(tool, args string) {
	c.Helper()
	if a := c.call(tool, args); a.err != nil || a.IsError {
		c.Fatalf("%s %s: %+v", tool, args, a)
	}
}

// The method "calls" makes a call in the background.
func (c mcpClient) calls(tool, args string) <-chan mcpAnswer {
	out := make(chan mcpAnswer, 1)
	go func() { out <- c.call(tool, args) }()
	return out
}

// The method "waits" waits until a progress message of a held call contains a text, and returns the message.
func (c mcpClient) waits(words string) (message string) {
	c.Helper()
	over := time.After(patience)
	for {
		select {
		case got := <-c.progress:
			if strings.Contains(got, words) {
				return got
			}
		case <-over:
			c.Fatalf("no progress of a held call says %q", words)
		}
	}
}

// refundOf returns the arguments of a refund.
func refundOf(amount string) string {
	return fmt.Sprintf(`{"order_id":"ORD-123", "amount":%s,"currency":"USD","reason":"broken"}`, amount)
}

// MCP clients with the official SDK use the gateway, in several versions of the protocol. The clients list the tools.
// The calls of the clients are run, approved, rejected, asked about, withdrawn, repeated and abandoned.
func TestMCP(t *testing.T) {
	t.Parallel()
	p, _, ci := openGateway(t, withBrief)
	teo := p.watcher("teo")
	current, older := openMCP(t, ci.base, ciToken, ""), openMCP(t, ci.base, ciToken, "2025-06-18")
	brief, other := openMCP(t, ci.base, briefToken, ""), openMCP(t, ci.base, otherToken, "")

	for _, c := range []mcpClient{current, older} {
		tools, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range tools.Tools {
			names = append(names, tool.Name)
			if tool.Name == "issue_refund" && (!strings.Contains(tool.Description, "Give money back") || tool.Annotations != nil || tool.OutputSchema != nil) {
				t.Errorf("issue_refund is listed as %+v", tool)
			}
		}
		if got := strings.Join(names, " "); got != "issue_refund search_orders send_email countersign.answer countersign.result countersign.withdraw" {
			t.Errorf("the tools are %s", got)
		}
		if init := c.InitializeResult(); !strings.HasPrefix(init.Instructions, "Some of these tools wait until people have approved the call.") {
			t.Errorf("the instructions are %s", init.Instructions)
		}
		c.wants(c.call("search_orders", `{"query":"ORD-123"}`), "approved-executed", "ORD-123")
		c.wants(c.call("issue_refund", `{"order_id":7}`), "denied-not-executed", "arguments are refused")
		if a := c.call("delete_account", `{}`); a.err == nil || !strings.Contains(a.err.Error(), "Unknown tool") {
			t.Errorf("a tool that the policy does not let the client use: %+v", a)
		}
	}

	// The gateway holds the call until somebody decides. In the meantime, the client gets progress messages.
	for i, c := range []mcpClient{current, older} {
		args, preview := refundOf(fmt.Sprint(i+1)), fmt.Sprintf("Refund of $%d.00", i+1)
		answer := c.calls("issue_refund", args)
		c.waits("waits for Team Lead")
		teo.clicks("countersign", "", "Approve", preview)
		first := c.wants(<-answer, "approved-executed", "refund")
		if strings.Contains(first.text, "of before") {
			t.Errorf("the first answer says that it is late: %s", first.text)
		}
		// The first result was delivered, so the identical call is a new request.
		answer = c.calls("issue_refund", args)
		c.waits("waits for Team Lead")
		teo.clicks("countersign", "", "Reject…", preview)
		teo.fills("reason", "once is enough")
		second := c.wants(<-answer, "denied-not-executed", "rejected by Team Lead", "did not run", "once is enough")
		if again := c.wants(c.call("issue_refund", args), "denied-not-executed", "once is enough"); again.request() != second.request() || second.request() == first.request() {
			t.Errorf("the requests are %s, %s and %s", first.request(), second.request(), again.request())
		}
	}

	// A call that ran and failed is an error, and the client gets the tool's words.
	failed := current.calls("issue_refund", strings.Replace(refundOf("11"), "ORD-123", "ORD-999", 1))
	current.waits("waits for Team Lead")
	teo.clicks("countersign", "", "Approve", "Refund of $11.00")
	current.wants(<-failed, "execution-error", "ran and failed", "There is no order ORD-999")

	// The client connects through a process. If the client interrupts a call, the call is abandoned, but not withdrawn.
	for i, version := range []string{"", "2025-11-25"} {
		c := openMCPProcess(t, ci.base, ciToken, version)
		c.wants(c.call("search_orders", `{"query":"ORD-123"}`), "approved-executed", "ORD-123")
		args, preview := refundOf(fmt.Sprint(i+8)), fmt.Sprintf("Refund of $%d.00", i+8)
		ctx, hangUp := context.WithCancel(t.Context())
		left := make(chan mcpAnswer, 1)
		go func() { left <- c.callIn(ctx, "issue_refund", args) }()
		c.waits("waits for Team Lead")
		hangUp()
		<-left
		answer := c.calls("issue_refund", args)
		c.waits("waits for Team Lead")
		teo.clicks("countersign", "", "Approve", preview)
		c.wants(<-answer, "approved-executed", "refund")
	}

	// The decision takes longer than the client waits. The call does not run while the caller is disconnected.
	late := brief.wants(brief.call("issue_refund", refundOf("3")), "", "has no result yet", "waits for Team Lead", "same arguments", "countersign.result")
	says, _ := late.StructuredContent.(map[string]any)
	if says["request"] != late.request() || says["status"] != "pending" {
		t.Errorf("the structured answer is %v", says)
	}
	if a := other.call("countersign.result", `{"request":"`+late.request()+`"}`); a.err != nil || !a.IsError || !strings.Contains(a.text, "no such request") {
		t.Errorf("another client's request: %+v", a)
	}
	brief.wants(brief.call("countersign.result", `{"request":"`+late.request()+`"}`), "", "waits for Team Lead")
	teo.clicks("countersign", "", "Approve", "Refund of $3.00")
	teo.sees("countersign", "", "Refund of $3.00", "It runs once brief asks for the result")
	if a := brief.wants(brief.call("issue_refund", refundOf("3")), "approved-executed", "refund"); a.request() != late.request() {
		t.Errorf("the repetition became %s instead of %s", a.request(), late.request())
	}

	// Under this policy, the bot sends e-mails even if the caller has disconnected. The caller gets the result later,
	// and only once.
	const email = `{"to":"jane@example.com","subject":"Sorry","body":"…"}`
	late = brief.wants(brief.call("send_email", email), "", "waits for Team Lead")
	teo.clicks("countersign", "", "Approve", "Sorry")
	teo.sees("countersign", "", "Sorry", "It ran")
	handed := brief.wants(brief.call("send_email", email), "approved-executed", "answer to your earlier identical call", "was not made again")
	if handed.request() != late.request() || handed.Meta[ranAtKey] == nil {
		t.Errorf("handed over: %v", handed.Meta)
	}
	if again := brief.wants(brief.call("send_email", email), "", "waits for Team Lead"); again.request() == late.request() {
		t.Error("a delivered result was handed over again")
	} else {
		brief.does("countersign.withdraw", `{"request":"`+again.request()+`","reason":"not needed"}`)
	}

	// A client may hang up in two ways. Neither way withdraws a call.
	for i, c := range []mcpClient{current, older} {
		args, preview := refundOf(fmt.Sprint(i+4)), fmt.Sprintf("Refund of $%d.00", i+4)
		ctx, hangUp := context.WithCancel(t.Context())
		left := make(chan mcpAnswer, 1)
		go func() { left <- c.callIn(ctx, "issue_refund", args) }()
		c.waits("waits for Team Lead")
		hangUp()
		if a := <-left; !errors.Is(a.err, context.Canceled) {
			t.Errorf("the interrupted call: %+v", a)
		}
		answer := c.calls("issue_refund", args)
		c.waits("waits for Team Lead")
		teo.clicks("countersign", "", "Approve", preview)
		c.wants(<-answer, "approved-executed", "refund")
	}

	// A question reaches the client, and the client's answer reaches the approver.
	answer := current.calls("issue_refund", refundOf("6"))
	current.waits("waits for Team Lead")
	teo.clicks("countersign", "", "Details…", "Refund of $6.00")
	teo.clicksInForm("Ask…")
	teo.fills("reason", "Was it insured?")
	asked := current.wants(<-answer, "", `Team Lead asks: "Was it insured?"`, "question 0")
	current.does("countersign.answer", `{"request":"`+asked.request()+`","question":0,"text":"Yes, by the carrier"}`)
	teo.sees("countersign", "", "Was it insured?", "Yes, by the carrier")
	current.does("countersign.withdraw", `{"request":"`+asked.request()+`"}`)

	// The person for whom the client says that it acts can't decide the call.
	actsFor := func(person any) mcpAnswer {
		return brief.callWith(t.Context(), &mcp.CallToolParams{Name: "issue_refund", Arguments: json.RawMessage(refundOf("10")), Meta: mcp.Meta{onBehalfOfKey: person}})
	}
	for _, person := range []any{"sam", "", 7} {
		if a := actsFor(person); a.err == nil || !strings.Contains(a.err.Error(), "must be the id of a Slack user") {
			t.Errorf("a call for the person %v: %+v", person, a)
		}
	}
	forTeo := brief.wants(actsFor("U0002"), "", "waits for Finance")
	if anonymous := brief.wants(brief.call("issue_refund", refundOf("10")), "", "waits for Team Lead"); anonymous.request() == forTeo.request() {
		t.Error("a call for nobody continues the request of a call for a person")
	}

	// Sixteen identical calls at the same moment become one request.
	var ends sync.WaitGroup
	ids := make([]string, 16)
	for i := range ids {
		ends.Go(func() {
			ids[i] = current.wants(current.call("issue_refund", refundOf("7")), "approved-executed", "refund").request()
		})
	}
	current.waits("waits for Team Lead")
	teo.clicks("countersign", "", "Approve", "Refund of $7.00")
	ends.Wait()
	if len(slices.Compact(ids)) != 1 {
		t.Errorf("the identical calls became %v", ids)
	}
	// The refunds that ran add up to 39: 1 + 2 + 3 + 4 + 5 + 7 + 8 + 9.
	current.wants(current.call("search_orders", `{"query":"ORD-123"}`), "approved-executed", "39.00")
}

// mcpClients installs the clients of testdata/mcp. Some clients need a newer Node.js than the other tests. npm has this
// version for some machines.
func mcpClients(t *testing.T, untried string) (node, modules string) {
	t.Helper()
	node, tool := npm.Require(t, untried)
	modules = filepath.Join(npm.Installed(t, tool, "testdata/mcp", "mcp-clients"), "node_modules")
	for _, machine := range []string{"x64", runtime.GOARCH} {
		if newer := filepath.Join(modules, "node-"+runtime.GOOS+"-"+machine, "bin", "node"); exec.Command(newer, "--version").Run() == nil {
			node = newer
		}
	}
	return node, modules
}

// nodeClient runs a script of testdata/mcp, and returns each line of its output on a channel.
func nodeClient(t *testing.T, script string, c caller) (said <-chan string, ended func()) {
	t.Helper()
	node, modules := mcpClients(t, "the official TypeScript SDKs of MCP were")
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "mcp", script), c.base, c.token, modules)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var faults bytes.Buffer
	cmd.Stderr = &faults
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines, func() {
		t.Helper()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, faults.String())
		}
	}
}

// The gateway works with the official TypeScript SDKs, each with its own form of tasks, and with MCP's Inspector. The
// test covers held calls, timeouts, repetitions, tasks and notifications about tasks.
func TestMCPTypeScript(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	node, modules := mcpClients(t, "the official TypeScript SDKs of MCP, and its Inspector, were")
	p, _, ci := openGateway(t)
	teo := p.watcher("teo")
	approves := func(amount int) func() {
		return func() { teo.clicks("countersign", "", "Approve", fmt.Sprintf("Refund of $%d.00", amount)) }
	}
	asks := func(question string) {
		teo.clicks("countersign", "", "Details…", "Refund of $7.00")
		teo.clicksInForm("Ask…")
		teo.fills("reason", question)
	}
	const asked = "asked elicitation Team Lead asks before the call is decided: "
	for _, sdk := range []struct {
		script, version string
		steps           []string
		after           map[int]func() // what Teo does after a line
	}{
		{"sdk1.mjs", "2025-11-25", []string{
			"held ok approved-executed", "timeout -32001", "again", "repeated ok approved-executed", "task working true", "task ok approved-executed", "cancel cancelled",
		}, map[int]func(){0: approves(1), 3: approves(2), 5: approves(3)}},
		{"sdk2.mjs", "2026-07-28", []string{
			"held ok approved-executed", "timeout REQUEST_TIMEOUT", "again", "repeated ok approved-executed", "task", asked + "Was it insured? answer", asked + "Since when? answer", "task ok approved-executed",
			"direct ok approved-executed", "notified true working", "notified true completed", "notified ok approved-executed", "closed graceful",
		}, map[int]func(){0: approves(5), 3: approves(6), 5: func() { asks("Was it insured?") }, 6: func() {
			teo.sees("countersign", "", "Was it insured?", "Yes, by the carrier")
			asks("Since when?")
		}, 7: func() {
			teo.sees("countersign", "", "Since when?", "The client declined to answer.")
			approves(7)()
		}, 10: approves(8)}}, // the client has said that the call waits
	} {
		said, ended := nodeClient(t, sdk.script, ci)
		wants := append([]string{"connected " + sdk.version + " issue_refund,search_orders,send_email,countersign.answer,countersign.result,countersign.withdraw"}, sdk.steps...)
		for i, want := range wants {
			select {
			case got := <-said:
				if !strings.HasPrefix(got, want) {
					if got == "" {
						ended()
					}
					t.Fatalf("%s says %q, want %q", sdk.script, got, want)
				}
			case <-time.After(patience):
				t.Fatalf("%s does not say %q", sdk.script, want)
			}
			if act, ok := sdk.after[i]; ok {
				act()
			}
		}
		ended()
	}
	inspect := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, append([]string{
			filepath.Join(modules, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"),
			"--cli", ci.base + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + ci.token,
		}, args...)...)
		cmd.Env = append(plainEnv(), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("the Inspector: %v\n%s", err, out)
		}
		return string(out)
	}
	if out := inspect("--method", "tools/list"); !strings.Contains(out, `"name": "issue_refund"`) || strings.Contains(out, "delete_account") {
		t.Errorf("the Inspector lists %s", out)
	}
	if out := inspect("--method", "tools/call", "--tool-name", "search_orders", "--tool-arg", "query=ORD-123"); !strings.Contains(out, "approved-executed") {
		t.Errorf("the Inspector gets %s", out)
	}
}

// Two calls are open when the bot is killed. One call is held. The other call has run while its caller was
// disconnected. The requests survive the loss of the connection, each tool runs once, and the caller later gets the
// undelivered result.
func TestMCPKilled(t *testing.T) {
	t.Parallel()
	p, bot, ci := openGateway(t, withBrief)
	teo := p.watcher("teo")
	const email = `{"to":"jane@example.com","subject":"Sorry","body":"…"}`
	brief, current := openMCP(t, ci.base, briefToken, ""), openMCP(t, ci.base, ciToken, "")
	ran := brief.wants(brief.call("send_email", email), "", "waits for Team Lead")
	teo.clicks("countersign", "", "Approve", "Sorry")
	teo.sees("countersign", "", "Sorry", "It ran")
	answer := current.calls("issue_refund", refundOf("1"))
	current.waits("waits for Team Lead")
	if err := bot.end(syscall.SIGKILL); err == nil {
		t.Fatal("the killed bot ended without an error")
	}
	if a := <-answer; a.err == nil {
		t.Fatalf("the killed bot answers %s", a.text)
	}

	bot, _ = p.serve()
	ci.base = "http://" + bot.says(`countersign is up.* gateway=(\S+)`)
	brief, current = openMCP(t, ci.base, briefToken, ""), openMCP(t, ci.base, ciToken, "2025-11-25")
	if handed := brief.wants(brief.call("send_email", email), "approved-executed", "answer to your earlier identical call"); handed.request() != ran.request() {
		t.Errorf("handed over was %s instead of %s", handed.request(), ran.request())
	}
	teo.clicks("countersign", "", "Approve", "Refund of $1.00")
	teo.sees("countersign", "", "Refund of $1.00", "It runs once CI bot asks for the result")
	current.wants(current.call("issue_refund", refundOf("1")), "approved-executed", "refund")
	current.wants(current.call("search_orders", `{"query":"ORD-123"}`), "approved-executed", `"refunded":1.00`)
	if n := strings.Count(bot.text(), "tool ran\" tool=send_email"); n != 0 {
		t.Errorf("after the restart, the e-mail was sent %d times", n)
	}
}

// Two replicas work on one database, and Slack delivers to the second one. The first replica holds a call. After the
// approval at the second replica, the client gets the result from the first replica. A client cancels a call at the other
// replica. Then the first replica is killed while it holds another call. The client repeats the call at the second replica, and the repetition continues the
// request. Each call runs once.
func TestMCPReplicas(t *testing.T) {
	t.Parallel()
	server := pgserver.New(t, "fsync=off")
	p := openProcessHarness(t).overHTTP()
	policy, err := os.ReadFile(p.policy())
	if err != nil {
		t.Fatal(err)
	}
	// The client's answers come from changes of its requests, because a call is held for longer than the test takes.
	write(t, p.policy(), append(policy, strings.Replace(gatewayClients, "caps: {pending: 6}", "hold: 5m", 1)...))
	p.env = append(p.env, "COUNTERSIGN_GATEWAY_ADDR=127.0.0.1:0")
	var bots [2]*program
	var raw [2]caller // without a client library
	var at [2]mcpClient
	for i := range bots {
		bots[i], _ = p.replicaOf(server.URL("postgres"), filepath.Join(p.dir, "key")).serve()
		raw[i] = openCaller(t, "http://"+bots[i].says(`countersign is up.* gateway=(\S+)`), ciToken)
		at[i] = openMCP(t, raw[i].base, ciToken, "")
	}
	teo := p.watcher("teo")
	held := at[0].calls("issue_refund", refundOf("1"))
	at[0].waits("waits for Team Lead")
	teo.clicks("countersign", "", "Approve", "Refund of $1.00")
	at[0].wants(<-held, "approved-executed", "refund")

	// A client with an older version of MCP cancels a call, and the message reaches the replica that does not hold the call.
	older := func(c caller, message string) string {
		r, err := c.send(http.MethodPost, "/mcp", message, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-06-18", "Mcp-Session-Id", "s-1")
		if err != nil {
			t.Error(err)
		}
		return r.Original
	}
	left := make(chan string, 1)
	go func() {
		left <- older(raw[0], `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"issue_refund","arguments":`+refundOf("3")+`}}`)
	}()
	teo.sees("countersign", "", "Refund of $3.00")
	older(raw[1], `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	if answer := <-left; !strings.Contains(answer, "the caller no longer waits") {
		t.Errorf("the cancelled call is answered: %s", answer)
	}

	held = at[0].calls("issue_refund", refundOf("2"))
	asked := at[0].waits("waits for Team Lead")
	if err := bots[0].end(syscall.SIGKILL); err == nil {
		t.Fatal("the killed replica ended without an error")
	}
	if a := <-held; a.err == nil {
		t.Fatalf("the killed replica answers %s", a.text)
	}
	held = at[1].calls("issue_refund", refundOf("2"))
	if again := at[1].waits("waits for Team Lead"); again != asked {
		t.Errorf("the other replica says %q about the repeated call, want %q", again, asked)
	}
	teo.clicks("countersign", "", "Approve", "Refund of $2.00")
	at[1].wants(<-held, "approved-executed", "refund")
	if n := strings.Count(bots[0].text()+bots[1].text(), `"tool ran" tool=issue_refund`); n != 2 {
		t.Errorf("%d refunds ran, want 2", n)
	}
}

// The test measures the time from the decision of a held call until the client has the answer. It also measures the
// memory for many held calls. docs/figures.md has the figures. Environment variables set the sizes.
func TestMCPHeld(t *testing.T) {
	t.Parallel()
	const mostGrown = 120 // MiB, with 1,000 held calls
	decided, held := testkit.Size(t, "COUNTERSIGN_DECIDED", 2), testkit.Size(t, "COUNTERSIGN_HELD", 1000)
	p, bot, ci := openGateway(t, func(policy string) string {
		return strings.Replace(policy, "caps: {pending: 6}", "caps: {pending: 1000}, hold: 1h", 1)
	})
	teo, c := p.watcher("teo"), openMCP(t, ci.base, ciToken, "")
	var took []time.Duration
	for i := range decided {
		answer := c.calls("issue_refund", fmt.Sprintf(`{"order_id":"ORD-123","amount":0.01,"currency":"USD","reason":"%d"}`, i))
		c.waits("waits for Team Lead")
		teo.clicks("countersign", "", "Approve", "Refund of $0.01")
		a := c.wants(<-answer, "approved-executed")
		got := time.Now()
		decision, _ := ci.wants(ci.do(http.MethodGet, "/v1/requests/"+a.request(), ""), http.StatusOK, "succeeded").Body["decision"].(map[string]any)
		at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(decision["at"]))
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, got.Sub(at))
	}
	slices.Sort(took)
	t.Logf("from the decision to the answer, %d calls: p50 %s, p99 %s", decided, took[len(took)/2], took[len(took)*99/100])

	admin := "http://" + bot.says(`countersign is up.* admin=(\S+)`)
	before := memoryOf(t, admin)
	ctx, hangUp := context.WithCancel(t.Context())
	var ends sync.WaitGroup
	for i, arrived := 0, map[string]bool{}; len(arrived) < held; {
		// The server closes connections of one address if more than mostUnused of them have not sent a request yet.
		if i < held && i-len(arrived) < mostUnused {
			args := fmt.Sprintf(`{"order_id":"ORD-123","amount":0.01,"currency":"USD","reason":"held %d"}`, i)
			i++
			ends.Go(func() {
				if a := c.callIn(ctx, "issue_refund", args); ctx.Err() == nil {
					t.Errorf("a held call ended: %v %s", a.err, a.text)
				}
			})
			continue
		}
		arrived[c.waits("waits for Team Lead")] = true // a call sends its message again every 15 seconds
		if t.Failed() {
			t.FailNow()
		}
	}
	after := memoryOf(t, admin)
	hangUp()
	ends.Wait()
	live, stacks, resident := after.live-before.live, after.stacks-before.stacks, after.resident-before.resident
	t.Logf("%d calls held at once take %.1f MiB of live heap, and %.1f MiB of stacks; the resident memory grew by %.1f MiB", held, live, stacks, resident)
	if perCall := stacks * 1024 / float64(held); perCall > 29 && held >= 200 { // with few calls, other stacks count more
		t.Errorf("the stacks of a held call take %.1f KiB, want at most 29", perCall)
	}
	if resident > mostGrown { // the goal is 100 MiB; on a busy machine, a garbage collection takes longer, and more garbage arises meanwhile
		t.Errorf("the resident memory grew by %.1f MiB, want at most %d", resident, mostGrown)
	}
}

// memory has figures about a bot's memory in MiB.
type memory struct {
	live     float64 // the objects that the last garbage collection found in use
	stacks   float64
	resident float64
}

// memoryOf returns the memory of a bot.
func memoryOf(t *testing.T, admin string) memory {
	t.Helper()
	_, metrics := get(t, admin+"/metrics")
	of := func(name string) (v float64) {
		found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(metrics)
		if found == nil {
			t.Fatalf("there is no metric %s", name)
		}
		if _, err := fmt.Sscan(found[1], &v); err != nil {
			t.Fatal(err)
		}
		return v / (1 << 20)
	}
	return memory{live: of("go_gc_heap_live_bytes"), stacks: of("go_memstats_stack_inuse_bytes"), resident: of("process_resident_memory_bytes")}
}
