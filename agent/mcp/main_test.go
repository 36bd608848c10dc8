package mcp

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent"
	"countersign/config"
	"countersign/internal/testkit"
)

// patience limits how long a failing test waits on a busy machine. A passing test waits much less.
const patience = testkit.Patience

// roleKey is an environment variable. If the variable is set, this test binary acts as the server that the value
// names.
const roleKey = "MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleKey); role != "" {
		play(role)
		return
	}
	testkit.Main(m, 2)
}

// quick returns the limits for tests. Some time limits are shorter than in production. The size limits are those of
// production.
func quick() limits {
	l := usual
	l.backoff, l.backoffTo, l.soft = 20*time.Millisecond, 200*time.Millisecond, 300*time.Millisecond
	return l
}

// program returns the configuration of a server. The server's program is this test binary.
func program(t *testing.T, name, role string) config.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return config.Server{Name: name, Command: []string{self}, Env: map[string]string{roleKey: role}, Timeout: patience, MaxResult: 1 << 20}
}

// saneAddress returns the configuration of a correct server over HTTP. It costs less than a correct program.
func saneAddress(t *testing.T) config.Server {
	t.Helper()
	s := saneServer()
	at := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(func() { at.CloseClientConnections(); at.Close() })
	return config.Server{Name: "sane", URL: at.URL, Allow: []string{"127.0.0.0/8"}, Timeout: patience, MaxResult: 1 << 20}
}

// offers records the offered tools.
type offers struct {
	mu    sync.Mutex
	tools map[string][]agent.Tool
	news  chan struct{}
	times int
}

func newOffers() *offers {
	return &offers{tools: map[string][]agent.Tool{}, news: make(chan struct{}, 1000)}
}

func (o *offers) take(server string, tools []agent.Tool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tools[server] = tools
	o.times++
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// tool waits until a tool is offered, and returns the tool.
func (o *offers) tool(t *testing.T, name string) agent.Tool {
	t.Helper()
	limit := time.After(patience)
	for {
		if found, ok := o.find(name); ok {
			return found
		}
		select {
		case <-o.news:
		case <-limit:
			t.Fatalf("the tool %s was not offered; there are %v", name, o.names())
		}
	}
}

func (o *offers) find(name string) (agent.Tool, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, tools := range o.tools {
		for _, one := range tools {
			if one.Name == name {
				return one, true
			}
		}
	}
	return agent.Tool{}, false
}

func (o *offers) names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, tools := range o.tools {
		for _, one := range tools {
			out = append(out, one.Name)
		}
	}
	return out
}

// running runs a client until the test ends.
func running(t *testing.T, l limits, servers ...config.Server) (*Client, *offers) {
	t.Helper()
	o := newOffers()
	c := open(Config{Servers: servers, Offer: o.take, Log: slog.New(slog.NewTextHandler(testLog{t}, nil)), Version: "test"}, l)
	runUntilEnd(t, c)
	return c, o
}

func runUntilEnd(t *testing.T, c *Client) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("the client does not end")
		}
	})
}

var discard = slog.New(slog.DiscardHandler)

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}

// call runs a tool as the agent does.
func call(t *testing.T, tool agent.Tool, args string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return tool.Run(ctx, agent.Invocation{Key: "exec-1", Args: []byte(args)})
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
