package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/config"
	"countersign/config/check"
)

// offerWitnesses serves the campaign's tools from an MCP server in the test process. The server survives when the bot
// is killed. A call that was sent takes effect even if the bot is killed before the answer arrives.
func (c *killHarness) offerWitnesses() {
	c.Helper()
	act, err := actor(c.conf.Seen)
	if err != nil {
		c.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "campaign", Version: "1"}, nil)
	for name := range witnessEffects {
		server.AddTool(&mcp.Tool{Name: name, Description: "Leaves a trace.", InputSchema: json.RawMessage(witnessSchema)},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				key, _ := req.Params.Meta["countersign/execution"].(string)
				if key == "" {
					return nil, errors.New("there is no key")
				}
				c.wake("tool")
				work(c.conf.Slow)
				if err := act(name, key); err != nil {
					return nil, err
				}
				work(c.conf.Slow)
				return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"done":true}`), Content: []mcp.Content{&mcp.TextContent{Text: `{"done":true}`}}}, nil
			})
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	c.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	c.conf.Server = web.URL
}

// The method "remote" returns the campaign's tools as the MCP server offers them. The bot may be killed before it sends
// a call. The bot may also be killed when the answer has arrived but is not stored.
func (f *fate) remote(c witnessConfig, log *slog.Logger) (*catalog.Catalog, error) {
	server := config.Server{Name: "campaign", URL: c.Server, Bare: true, Allow: []string{"127.0.0.1"}, Timeout: 30 * time.Second, MaxResult: 1 << 20, Effects: witnessEffects}
	of := catalog.Config{Own: []config.Server{server}, Log: log}
	for name := range witnessEffects {
		of.OwnTools = append(of.OwnTools, check.Tool{Name: name, Schema: json.RawMessage(witnessSchema), Source: server.Name})
	}
	of.Wrap = func(t *agent.Tool) {
		name, run := t.Name, t.Run
		t.Run = func(ctx context.Context, in agent.Invocation) (string, error) {
			fmt.Println("tool", name, in.Key)
			f.reach(toolCalled)
			result, err := run(ctx, in)
			f.reach(toolActed)
			return result, err
		}
	}
	return catalog.New(of)
}
