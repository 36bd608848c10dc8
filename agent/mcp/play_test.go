package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// play runs this test binary as the server that role names.
func play(role string) {
	if hostile, ok := scriptedServers[role]; ok {
		newScriptedServer(hostile).serve()
		return
	}
	if err := roles[role](); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var roles = map[string]func() error{
	"sane": sane,
}

// sane serves a correct server with the newest version of the protocol.
func sane() error { return saneServer().Run(context.Background(), &sdk.StdioTransport{}) }

func saneServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "sane", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "environment", Description: "Lists the environment.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, Title: "Environment"}},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return words(strings.Join(os.Environ(), "\n")), nil, nil
		})
	open := map[string]any{"type": "object", "additionalProperties": true}
	s.AddTool(&sdk.Tool{Name: "echo", Description: "Repeats its arguments.", InputSchema: open},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return words(string(r.Params.Arguments)), nil
		})
	s.AddTool(&sdk.Tool{Name: "grow", Description: "Adds a tool.", InputSchema: open},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			s.AddTool(&sdk.Tool{Name: "grown", Description: "Was added.", InputSchema: open},
				func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return words("new"), nil })
			return words("grown"), nil
		})
	s.AddTool(&sdk.Tool{Name: "confirm", Description: "Asks before it answers.", InputSchema: open},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if len(r.Params.InputResponses) == 0 {
				form := json.RawMessage(`{"type":"object","properties":{"zebra":{"type":"string"},"ant":{"type":"string"}}}`)
				return &sdk.CallToolResult{RequestState: "state", InputRequests: sdk.InputRequestMap{"who": &sdk.ElicitParams{Mode: "form", Message: "Who?", RequestedSchema: form}}}, nil
			}
			said, _ := json.Marshal(r.Params.InputResponses)
			return words(r.Params.RequestState + string(said) + string(r.Params.Arguments)), nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "count", Description: "Counts.", OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
		func(ctx context.Context, r *sdk.CallToolRequest, in struct{}) (*sdk.CallToolResult, any, error) {
			for i := range 3 {
				_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: "counting"})
			}
			return nil, map[string]any{"n": 3}, nil
		})
	return s
}

func words(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}
