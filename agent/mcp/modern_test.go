package mcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent"
	"countersign/config"
)

// overHTTP starts the sane server over HTTP.
func overHTTP(t *testing.T, stateless bool) config.Server {
	t.Helper()
	return atHTTP(t, saneServer(), stateless)
}

func atHTTP(t *testing.T, s *sdk.Server, stateless bool) config.Server {
	t.Helper()
	srv := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: stateless}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return config.Server{Name: "sane", URL: srv.URL, Allow: []string{"127.0.0.1"}, Timeout: patience, MaxResult: 1 << 20}
}

// TestProtocols checks the differences between protocol versions. In the newest version, there is no handshake,
// questions come as results, and changes are announced only on request.
func TestProtocols(t *testing.T) {
	for _, tt := range []struct {
		name, protocol string
		server         func(*testing.T) config.Server
	}{
		{"pipes", "2026-07-28", func(t *testing.T) config.Server { return program(t, "sane", "sane") }},
		{"HTTP with sessions", "2025-11-25", func(t *testing.T) config.Server { return overHTTP(t, false) }},
		{"HTTP without sessions", "2026-07-28", func(t *testing.T) config.Server { return overHTTP(t, true) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, o := running(t, quick(), tt.server(t))
			ask, forms := accepting(`{"ant":"Ada"}`)
			confirm := o.tool(t, "sane.confirm")
			live, err := c.servers[0].ready(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := live.protocol(); got != tt.protocol {
				t.Errorf("the protocol is %s", got)
			}
			text, err := confirm.Run(t.Context(), agent.Invocation{Args: []byte(`{"exact" : 1.0}`), Ask: ask})
			if err != nil || !strings.Contains(text, `"Ada"`) || !strings.HasPrefix(text, "state") || !strings.HasSuffix(text, `{"exact" : 1.0}`) {
				t.Errorf("%q, %v", text, err)
			}
			if len(*forms) != 1 || (*forms)[0].Text != "Who?" || !strings.Contains(string((*forms)[0].Schema), `"zebra":{"type":"string"},"ant"`) {
				t.Errorf("%+v", *forms)
			}
			if n := len(live.tap.questions); n != 0 {
				t.Errorf("%d questions are still kept", n)
			}
			var mu sync.Mutex
			var steps []agent.Progress
			text, err = o.tool(t, "sane.count").Run(t.Context(), agent.Invocation{Args: []byte(`{}`), Progress: func(p agent.Progress) {
				mu.Lock()
				defer mu.Unlock()
				steps = append(steps, p)
			}})
			if err != nil || text != `{"n":3}` {
				t.Errorf("%q, %v", text, err)
			}
			mu.Lock()
			if len(steps) == 0 || steps[0] != (agent.Progress{Done: 1, Total: 3, Text: "counting"}) {
				t.Errorf("%+v", steps)
			}
			mu.Unlock()
			if _, err := call(t, o.tool(t, "sane.grow"), `{}`); err != nil {
				t.Fatal(err)
			}
			if text, err := call(t, o.tool(t, "sane.grown"), `{}`); text != "new" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// TestErrorsOfAServer checks a server's JSON-RPC errors. In the newest protocol version, servers send them with a status
// 4xx. The model must get the server's words.
func TestErrorsOfAServer(t *testing.T) {
	const words = "the order ORD-9 has no line 3; lines are 1 and 2"
	codes := map[string]int64{"params": codeInvalidParams, "method": codeNoMethod, "internal": jsonrpc.CodeInternalError}
	s := sdk.NewServer(&sdk.Implementation{Name: "sane", Version: "1"}, nil)
	for name, code := range codes {
		s.AddTool(&sdk.Tool{Name: name, Description: "Fails.", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: code, Message: words}
		})
	}
	for _, stateless := range []bool{false, true} {
		c, o := running(t, quick(), atHTTP(t, s, stateless))
		for name := range codes {
			_, err := call(t, o.tool(t, "sane."+name), `{}`)
			want, says := fails, words
			switch name {
			case "internal":
				want = unclear
			case "method":
				says = "method not found" // the SDK's server replaces the words
			}
			if outcomeOf(err) != want || !strings.Contains(said(err), says) {
				t.Errorf("stateless %t, %s: %v", stateless, name, err)
			}
		}
		if n := c.Status()[0].Restarts; n != 0 {
			t.Errorf("stateless %t: it was connected again %d times", stateless, n)
		}
	}
}

// TestAskWithinAResult checks a run that ends while the run waits for a person's answer. The run must end with an
// error.
func TestAskWithinAResult(t *testing.T) {
	_, o := running(t, quick(), program(t, "sane", "sane"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := o.tool(t, "sane.confirm").Run(ctx, agent.Invocation{Args: []byte(`{}`), Ask: func(ctx context.Context, _ agent.Form) (agent.Reply, error) {
		cancel()
		<-ctx.Done()
		return agent.Reply{}, ctx.Err()
	}})
	if err == nil {
		t.Error("a run that was ended answers")
	}
}
