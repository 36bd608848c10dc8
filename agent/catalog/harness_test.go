package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent/pins"
	"countersign/config"
	"countersign/internal/testkit"
)

// patience limits how long a failing test waits on a busy machine. A passing test waits much less.
const patience = testkit.Patience

// testServer is an MCP server over HTTP. A test describes the tools of the server. testServer counts its handshakes.
type testServer struct {
	*httptest.Server
	mcp *mcp.Server

	mu    sync.Mutex
	hands int
}

// openServer opens a server with some tools.
func openServer(t *testing.T, tools ...string) *testServer {
	t.Helper()
	s := &testServer{mcp: mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)}
	for _, name := range tools {
		s.describe(name, "Does "+name+".")
	}
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, nil)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the client has disconnected
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte(`"server/discover"`)) || bytes.Contains(body, []byte(`"initialize"`)) {
				s.mu.Lock()
				s.hands++
				s.mu.Unlock()
			}
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections() // a stream ends only when its connection is closed
		s.Close()
	})
	return s
}

// describe adds or changes a tool, and notifies the clients. The tool with the name look claims to be read-only.
func (s *testServer) describe(name, description string) {
	s.mcp.AddTool(&mcp.Tool{
		Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"}}}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: name == "look"},
	}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "did " + name}}}, nil
	})
}

func (s *testServer) handshakes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hands
}

// entry returns the server's entry in the servers section of a policy.
func (s *testServer) entry(name, more string) string {
	return fmt.Sprintf("  %s: {url: %q, allow: [127.0.0.1]%s}\n", name, s.URL, more)
}

// servers returns the servers section of a policy, with this server as the only entry.
func (s *testServer) servers(name, more string) string { return "servers:\n" + s.entry(name, more) }

const basePolicy = `version: 1
approvers: {boss: {title: Boss, members: [U0001], max_risk: critical, can_approve: ["*"]}}
agents: {support: {channels: ["#support"], prompt: x, tools: ["*"]}}
`

// fixture is a catalog with a policy file and a log.
type fixture struct {
	*testing.T
	*Catalog
	path string
	log  *lineLog
}

// openFixture returns a catalog that has adopted a policy. The functions in change may change the configuration of
// the catalog.
func openFixture(t *testing.T, policy string, change ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{T: t, path: filepath.Join(t.TempDir(), "countersign.yaml"), log: new(lineLog)}
	c := Config{Log: slog.New(slog.NewTextHandler(f.log, nil))}
	for _, change := range change {
		change(&c)
	}
	var err error
	if f.Catalog, err = New(c); err != nil {
		t.Fatal(err)
	}
	f.becomes(policy)
	return f
}

// adopt writes another policy to the file, and puts the policy into force.
func (f *fixture) adopt(policy string) error {
	write(f.T, f.path, basePolicy+policy)
	file, err := config.ReadPolicy(f.path)
	if err != nil {
		return err
	}
	return f.adoptInto(f.Catalog, file)
}

// adoptInto puts a policy into force in the given catalog. The pins are those of the fixture's lock file.
func (f *fixture) adoptInto(c *Catalog, file *config.File) error {
	lock, err := ReadLock(f.path)
	if err != nil {
		return err
	}
	return c.Adopt(file, lock, "")
}

// repin puts the pins of the lock file into force.
func (f *fixture) repin() {
	f.Helper()
	file, err := config.ReadPolicy(f.path)
	if err == nil {
		err = f.adoptInto(f.Catalog, file)
	}
	if err != nil {
		f.Fatalf("the pins are not adopted: %v", err)
	}
}

func (f *fixture) becomes(policy string) {
	f.Helper()
	if err := f.adopt(policy); err != nil {
		f.Fatalf("the policy is not adopted: %v", err)
	}
}

func (f *fixture) begin() {
	f.Helper()
	f.Cleanup(f.Begin(f.Context()))
}

// names lists the tools that have a source.
func (f *fixture) names() string {
	var out []string
	for _, t := range f.All() {
		if t.Source != "" {
			out = append(out, t.Name)
		}
	}
	return strings.Join(out, " ")
}

// states lists the tools that need a pin, with their states.
func (f *fixture) states() string {
	var out []string
	all, _ := f.Status()
	for _, t := range all {
		if t.State != pins.None {
			out = append(out, t.Tool.Name+" "+string(t.State))
		}
	}
	return strings.Join(out, ", ")
}

// until waits for a condition.
func (f *fixture) until(what string, so func() bool) {
	f.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !so(); {
		select {
		case <-tick.C:
		case <-end:
			f.Fatalf("waited in vain until %s; the tools are %s, the servers %+v", what, f.names(), f.Servers())
		}
	}
}

// pinAll pins all offered tools, as the operator does.
func (f *fixture) pinAll() {
	f.Helper()
	var l pins.Lock
	all, _ := f.Status()
	for _, t := range all {
		if t.Definition == nil {
			continue
		}
		p, err := pins.Make(t.Tool.Name, t.Tool.Source, t.Definition, "anna", time.Now())
		if err != nil {
			f.Fatal(err)
		}
		l = l.With(p)
	}
	if err := l.Write(pins.Beside(f.path)); err != nil {
		f.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lineLog collects the lines of a log.
type lineLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

// with lists the lines that contain all the words.
func (l *lineLog) with(words string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, words) {
			out = append(out, line)
		}
	}
	return out
}
