package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/internal/testkit"
)

// suitePolicy has the tools that the conformance suite calls. Calls to these tools need no approval.
const suitePolicy = `version: 1
servers:
  suite: {url: %q, allow: [127.0.0.1], prefix: false}
tools:
  greet: {risk: low}
  slow_compute: {risk: low}
  failing_job: {risk: low}
  test_simple_text: {risk: low}
  test_error_handling: {risk: low}
approvers:
  lead: {title: Team Lead, members: [U0002], max_risk: critical, can_approve: ["*"]}
agents:
  support: {channels: ["#support"], prompt: "You are …", tools: ["*"]}
clients:
  suite: {token: "sha256:%s", agent: support, owner: U0100, tools: ["*"]}
`

// polls makes a slow tool wait until the suite has polled the task of the tool's call.
type polls struct {
	direct atomic.Bool // the latest request does not support tasks, so the suite will not poll
	mu     sync.Mutex
	next   chan struct{} // closed at the next poll
}

func (p *polls) looked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.next)
	p.next = make(chan struct{})
}

func (p *polls) wait(ctx context.Context) {
	if p.direct.Load() {
		return
	}
	p.mu.Lock()
	next := p.next
	p.mu.Unlock()
	select {
	case <-next:
	case <-time.After(5 * time.Second): // the suite does not poll
	case <-ctx.Done():
	}
}

// openSuiteServer starts the MCP server with the tools of the suite. A slow tool ends after the suite has polled its
// task.
func openSuiteServer(t *testing.T, looks *polls) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "suite", Version: "1"}, nil)
	add := func(name, schema string, run func(ctx context.Context, args map[string]any) (string, bool)) {
		server.AddTool(&mcp.Tool{Name: name, Description: name, InputSchema: json.RawMessage(schema)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var args map[string]any
			_ = json.Unmarshal(r.Params.Arguments, &args) // if there are no arguments, args stays empty
			text, failed := run(ctx, args)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: failed}, nil
		})
	}
	add("greet", `{"type":"object","properties":{"name":{"type":"string"}}}`, func(_ context.Context, a map[string]any) (string, bool) {
		return fmt.Sprintf("Hello, %v!", a["name"]), false
	})
	add("slow_compute", `{"type":"object","properties":{"seconds":{"type":"number"},"label":{"type":"string"}}}`, func(ctx context.Context, a map[string]any) (string, bool) {
		if seconds, _ := a["seconds"].(float64); seconds > 0 {
			looks.wait(ctx)
		}
		return "done", false
	})
	add("failing_job", `{"type":"object","properties":{}}`, func(ctx context.Context, _ map[string]any) (string, bool) {
		looks.wait(ctx)
		return "it failed", true
	})
	add("test_simple_text", `{"type":"object","properties":{}}`, func(context.Context, map[string]any) (string, bool) {
		return "This is a simple text response for testing.", false
	})
	add("test_error_handling", `{"type":"object","properties":{}}`, func(context.Context, map[string]any) (string, bool) {
		return "This tool intentionally returns an error for testing", true
	})
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// conformance lists the scenarios of the suite that apply to the gateway. For each scenario, conformance lists the
// checks that can't pass. They are about features that the gateway does not have, such as prompts, resources, and tools
// that ask the client something.
var conformance = map[string][]string{
	"server-initialize": nil, "server-session-lifecycle": nil, "ping": nil, "tools-list": nil, "tools-call-simple-text": nil, "tools-call-error": nil,
	"server-sse-multiple-streams": nil, "dns-rebinding-protection": nil, "http-header-validation": nil,
	"caching": {"sep-2549-prompts-list-caching-hints", "sep-2549-resources-list-caching-hints", "sep-2549-resources-templates-list-caching-hints"},
	"server-stateless": {
		"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400", "sep-2575-http-server-no-independent-requests-on-stream",
		"sep-2575-server-no-log-without-loglevel",
	},
	"tasks-lifecycle": {"sep-2663-tasks-get-status-failed"}, "tasks-capability-negotiation": nil, "tasks-wire-fields": nil, "tasks-request-state-removal": nil,
	"tasks-request-headers": nil, "tasks-dispatch-and-envelope": {"tasks-result-type-complete-on-non-task-responses"},
}

// The gateway passes the applicable parts of MCP's conformance suite for servers.
func TestMCPConformance(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	node, dir := mcpClients(t, "the conformance suite for MCP servers was")
	looks := &polls{next: make(chan struct{})}
	p := openProcessHarness(t)
	write(t, p.policy(), fmt.Appendf(nil, suitePolicy, openSuiteServer(t, looks), tokenHash(ciToken)))
	path := programPath(t)
	pin := exec.CommandContext(t.Context(), path, "tools", "pin", "--all", "--yes")
	pin.Dir, pin.Env = p.dir, append(plainEnv(), "COUNTERSIGN_POLICY="+p.policy())
	if out, err := pin.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.env = append(p.env, "COUNTERSIGN_GATEWAY_ADDR=127.0.0.1:0")
	bot, _ := p.serve()
	gate, err := url.Parse("http://" + bot.says(`countersign is up.* gateway=(\S+)`))
	if err != nil {
		t.Fatal(err)
	}
	bot.says(`(an MCP server is connected)`)
	// The suite can't send a token, so a proxy adds it.
	proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(gate)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+ciToken)
		// The body is read first, because a response that begins while the proxy still reads the body can be cut off. The suite
		// then waits for the rest of the response.
		var body []byte
		if r.Out.Body != nil {
			var err error
			if body, err = io.ReadAll(r.Out.Body); err != nil {
				t.Error(err)
			}
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
		}
		if r.In.Header.Get("Mcp-Method") == "tools/call" {
			looks.direct.Store(!bytes.Contains(body, []byte("io.modelcontextprotocol/tasks")))
		}
	}, ModifyResponse: func(r *http.Response) error {
		if strings.HasPrefix(r.Request.Header.Get("Mcp-Method"), "tasks/") {
			looks.looked()
		}
		return nil
	}})
	t.Cleanup(proxy.Close)

	out := t.TempDir()
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(dir, "@modelcontextprotocol", "conformance", "dist", "index.js"),
		"server", "--url", proxy.URL+"/mcp", "--suite", "all", "--output-dir", out)
	said, _ := cmd.CombinedOutput() // the suite's exit code is ignored, because the code covers all scenarios
	passed := 0
	for name, cant := range conformance {
		files, err := filepath.Glob(filepath.Join(out, "server-"+name+"-2*", "checks.json"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s was not run: %v\n%s", name, err, said)
		}
		raw, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		var found []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(raw, &found); err != nil {
			t.Fatal(err)
		}
		for _, c := range found {
			switch expected := slices.Contains(cant, c.ID); {
			case c.Status == "FAILURE" && !expected:
				t.Errorf("%s: %s: %s", name, c.ID, c.ErrorMessage)
			case c.Status == "SUCCESS" && expected:
				t.Errorf("%s: %s passes now", name, c.ID)
			case c.Status == "SUCCESS":
				passed++
			}
		}
	}
	t.Logf("%d checks of %d scenarios passed", passed, len(conformance))
}
