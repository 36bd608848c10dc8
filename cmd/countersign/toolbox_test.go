package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/config"
)

// offering is an MCP server over HTTP with tools of the test's own. It counts its handshakes.
type offering struct {
	*httptest.Server
	mu    sync.Mutex
	hands int
}

func openOffering(t *testing.T, tools ...string) *offering {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "offering", Version: "1"}, nil)
	for _, name := range tools {
		server.AddTool(&mcp.Tool{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "did " + name}}}, nil
			})
	}
	o := new(offering)
	h := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server { return server }, nil)
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body := new(bytes.Buffer); r.Method == http.MethodPost {
			_, _ = body.ReadFrom(r.Body)
			r.Body = readCloser{body}
			if strings.Contains(body.String(), `"server/discover"`) || strings.Contains(body.String(), `"initialize"`) {
				o.mu.Lock()
				o.hands++
				o.mu.Unlock()
			}
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		o.CloseClientConnections() // a stream would never end by itself
		o.Close()
	})
	return o
}

type readCloser struct{ *bytes.Buffer }

func (readCloser) Close() error { return nil }

func (o *offering) handshakes() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.hands
}

// entry is the server's entry in a policy.
func (o *offering) entry(name, more string) string {
	return fmt.Sprintf("  %s: {url: %q, allow: [127.0.0.1]%s}\n", name, o.URL, more)
}

const boxPolicy = `version: 1
approvers: {boss: {title: Boss, members: [U0001], max_risk: critical, can_approve: ["*"]}}
agents: {support: {channels: ["#support"], prompt: x, tools: ["*"]}}
`

// boxAt is a toolbox under a policy in a file, and what it logs.
type boxAt struct {
	*testing.T
	*toolbox
	path string
	ps   *policies
	log  *lineLog
}

func openBox(t *testing.T, policy string) *boxAt {
	t.Helper()
	b := &boxAt{T: t, path: filepath.Join(t.TempDir(), "countersign.yaml"), log: new(lineLog)}
	write(t, b.path, []byte(boxPolicy+policy))
	log := slog.New(slog.NewTextHandler(b.log, nil))
	var err error
	if b.toolbox, err = newToolbox(log); err != nil {
		t.Fatal(err)
	}
	if b.ps, err = openPolicies(b.path, b.toolbox, log); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *boxAt) begin() {
	b.Helper()
	b.Cleanup(b.toolbox.begin(b.Context()))
}

// becomes puts another policy into the file, and into force.
func (b *boxAt) becomes(policy string) {
	b.Helper()
	write(b.T, b.path, []byte(boxPolicy+policy))
	if !b.ps.look(true) {
		b.Fatalf("the policy is not taken: %v", b.ps.state(b.Context()))
	}
}

// names are the tools of servers.
func (b *boxAt) names() string {
	var out []string
	for _, t := range b.All() {
		if t.Source != "" {
			out = append(out, t.Name)
		}
	}
	return strings.Join(out, " ")
}

// until waits for something to be so.
func (b *boxAt) until(what string, so func() bool) {
	b.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !so(); {
		select {
		case <-tick.C:
		case <-end:
			b.Fatalf("waited in vain until %s; the tools are %s, the servers %+v", what, b.names(), b.status())
		}
	}
}

// A policy that changes while the bot runs adds, removes and changes servers; one that stays the same is not even
// connected with anew.
func TestToolboxFollowsThePolicy(t *testing.T) {
	t.Parallel()
	stays, goes, comes, changes := openOffering(t, "stay"), openOffering(t, "go"), openOffering(t, "come"), openOffering(t, "change")
	b := openBox(t, "servers:\n"+stays.entry("stays", "")+goes.entry("goes", "")+changes.entry("changes", ""))
	b.begin()
	if got := b.names(); got != "changes.change goes.go stays.stay" {
		t.Fatalf("at first the tools are %s", got)
	}
	before, changed := stays.handshakes(), changes.handshakes()
	b.becomes("servers:\n" + stays.entry("stays", "") + comes.entry("comes", ", prefix: false") + changes.entry("changes", ", effects: {change: read-only}"))
	b.until("the new server is there", func() bool { return b.names() == "changes.change come stays.stay" })
	b.until("the changed one is as the policy says", func() bool {
		tool, ok := b.Tool("changes.change")
		return ok && tool.Effect == approvers.ReadOnly
	})
	if stays.handshakes() != before {
		t.Errorf("the server that stayed was connected with %d times more", stays.handshakes()-before)
	}
	if changes.handshakes() == changed {
		t.Error("the changed server was not connected with anew")
	}
	for _, s := range b.status() {
		if !s.Connected || s.Server == "goes" {
			t.Errorf("%+v", s)
		}
	}
	b.becomes("")
	b.until("nothing is left", func() bool { return b.names() == "" && len(b.status()) == 0 })
}

// A server that is down keeps nobody from beginning. It is named where the operator looks, and comes when it comes.
func TestToolboxWithAServerThatIsDown(t *testing.T) {
	t.Parallel()
	up := openOffering(t, "search")
	away := httptest.NewServer(http.NotFoundHandler())
	address := away.URL
	away.Close()
	b := openBox(t, fmt.Sprintf("servers:\n%s  crm: {url: %q, allow: [127.0.0.1]}\n  lost: {command: [no-such-program-anywhere]}\n", up.entry("up", ""), address))
	b.begin()
	if got := b.names(); got != "up.search" {
		t.Errorf("the tools are %s", got)
	}
	why := fmt.Sprint(b.state(t.Context()))
	for _, part := range []string{"2 servers down: crm: ", "; lost: ", `the command "no-such-program-anywhere" is not found; install it`} {
		if !strings.Contains(why, part) {
			t.Errorf("/readyz says %q, without %q", why, part)
		}
	}
	m := newMetrics(emptyStore(t), metricsPolicy)
	m.watchServers(b.toolbox)
	wantLines(t, scrape(t, m), `countersign_server_up{server="crm"} 0`, `countersign_server_up{server="lost"} 0`, `countersign_server_up{server="up"} 1`,
		`countersign_server_tools{server="up"} 1`, `countersign_server_restarts_total{server="up"} 0`)
	b.becomes("servers:\n" + up.entry("up", ""))
	b.until("all are well", func() bool { return b.state(t.Context()) == nil })
}

// Calls are counted by how they ended, and what stands between the bot and a tool sees each.
func TestToolboxCountsCalls(t *testing.T) {
	t.Parallel()
	o := openOffering(t, "search")
	b := openBox(t, "servers:\n"+o.entry("up", ""))
	var between []string
	var run func(context.Context, agent.Invocation) (string, error)
	b.between = func(tool *agent.Tool) {
		between = append(between, tool.Name)
		run = tool.Run
	}
	b.begin()
	if got, err := run(t.Context(), agent.Invocation{Key: "exec-1", Args: json.RawMessage(`{}`)}); err != nil || got != "did search" || !slices.Equal(between, []string{"up.search"}) {
		t.Errorf("%q, %v; between %v", got, err, between)
	}
	for _, err := range []error{errors.New("refused"), fmt.Errorf("cut: %w", agent.ErrOutcomeUnknown)} {
		breaks := agent.Tool{Run: func(context.Context, agent.Invocation) (string, error) { return "", err }}
		b.calls.count("up", &breaks)
		if _, got := breaks.Run(t.Context(), agent.Invocation{}); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	m := newMetrics(emptyStore(t), metricsPolicy)
	m.watchServers(b.toolbox)
	wantLines(t, scrape(t, m), `countersign_server_calls_total{outcome="answered",server="up"} 1`, `countersign_server_calls_total{outcome="failed",server="up"} 1`,
		`countersign_server_calls_total{outcome="unknown",server="up"} 1`)
}

// Runs that are under way when the bot is asked to stop are not cut off: the servers are let go by whoever waited for
// the runs.
func TestToolboxOutlivesItsContext(t *testing.T) {
	t.Parallel()
	o := openOffering(t, "search")
	b := openBox(t, "servers:\n"+o.entry("up", ""))
	var run func(context.Context, agent.Invocation) (string, error)
	b.between = func(tool *agent.Tool) { run = tool.Run }
	ctx, stop := context.WithCancel(t.Context())
	letGo := b.toolbox.begin(ctx)
	stop()
	if _, err := run(t.Context(), agent.Invocation{Key: "exec-1", Args: json.RawMessage(`{}`)}); err != nil {
		t.Errorf("after the end of its context: %v", err)
	}
	letGo()
	if len(b.status()) != 0 {
		t.Errorf("let go, and still there: %+v", b.status())
	}
}

// What is pinned beside the policy is known before the server is there, and offline; a server of the program's own
// needs no pins and wins over one of the same name.
func TestToolboxPins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "countersign.yaml")
	write(t, path, []byte(boxPolicy+"servers: {shop: {command: [no-such-program-anywhere], prefix: false}}\n"))
	pinShop(t, path)
	file, err := config.ReadPolicy(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := offline(file, path)
	if err != nil {
		t.Fatal(err)
	}
	if tool, ok := r.Tool("issue_refund"); !ok || tool.Blocked != "" || tool.Check(json.RawMessage(`{"order":1}`)) == nil {
		t.Errorf("offline the refund is %+v, %t", tool, ok)
	}
	b, err := newToolbox(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openPolicies(path, b, b.log); err != nil {
		t.Fatal(err)
	}
	if tool, ok := b.Tool("issue_refund"); !ok || tool.Blocked != "" {
		t.Errorf("before the server is there the refund is %+v, %t", tool, ok)
	}
	own, err := newToolbox(slog.New(slog.DiscardHandler), config.Server{Name: "shop", URL: "http://127.0.0.1:1/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openPolicies(path, own, own.log); err != nil {
		t.Fatal(err)
	}
	if len(own.wanted) != 1 || own.wanted[0].URL == "" {
		t.Errorf("the servers are %+v, want the program's own alone", own.wanted)
	}
	if err := os.WriteFile(pins.Beside(path), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openPolicies(path, b, b.log); cli.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), pins.FileName) {
		t.Errorf("with a broken lock file: %v (code %d)", err, cli.Code(err))
	}
}

// Tools that the policy itself declares are there at once, need no pin, and change with the policy; one that lacks its
// secret is refused with its name.
func TestToolboxDeclaredTools(t *testing.T) {
	t.Setenv("BOX_TOKEN", "secret-token")
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s with %t", r.URL.Path, r.Header.Get("Authorization") == "Bearer secret-token")
	}))
	t.Cleanup(api.Close)
	endpoint := func(name, variable string) string {
		return fmt.Sprintf("http: {%s: {description: Looks it up., method: GET, url: %q, headers: {Authorization: %q}, allow: [127.0.0.1]}}\n", name, api.URL+"/x", "Bearer ${"+variable+"}")
	}
	b := openBox(t, endpoint("look", "BOX_TOKEN"))
	b.begin()
	if tool, ok := b.Tool("look"); !ok || tool.Blocked != "" {
		t.Fatalf("%+v, %t", tool, ok)
	}
	b.becomes(endpoint("look_again", "BOX_TOKEN"))
	if got := b.names(); got != "look_again" {
		t.Errorf("the tools are %s", got)
	}
	write(t, b.path, []byte(boxPolicy+endpoint("look", "BOX_NOWHERE")))
	if b.ps.look(true) {
		t.Error("a tool whose secret is missing was taken")
	}
	if why := fmt.Sprint(b.ps.state(t.Context())); !strings.Contains(why, "BOX_NOWHERE is not set in the environment") || b.names() != "look_again" {
		t.Errorf("%s; the tools are %s", why, b.names())
	}
}

// A hundred tools of ten servers are there at once when the bot begins. The figure to reach is 2 s besides the servers'
// own time; the bound here leaves room for a busy machine.
func TestToolboxReach(t *testing.T) {
	t.Parallel()
	const bound = 10 * time.Second
	var policy strings.Builder
	policy.WriteString("servers:\n")
	for i := range 10 {
		var tools []string
		for j := range 10 {
			tools = append(tools, fmt.Sprintf("tool_%d", j))
		}
		policy.WriteString(openOffering(t, tools...).entry(fmt.Sprintf("server%d", i), ""))
	}
	b := openBox(t, policy.String())
	began := time.Now()
	b.begin()
	b.until("all of them are there", func() bool { return len(strings.Fields(b.names())) == 100 })
	took := time.Since(began)
	t.Logf("servers=10 tools=100 took=%s", took.Round(time.Millisecond))
	if took > bound {
		t.Errorf("it took %s", took)
	}
}
