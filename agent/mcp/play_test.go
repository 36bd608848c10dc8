package mcp

import (
	"context"
	"fmt"
	"os"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// play is the server that the test binary is when it is started as one.
func play(role string) {
	if hostile, ok := puppets[role]; ok {
		newPuppet(hostile).serve()
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

// sane is a server as it should be.
func sane() error {
	s := sdk.NewServer(&sdk.Implementation{Name: "sane", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "environment", Description: "Lists the environment.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, Title: "Environment"}},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Join(os.Environ(), "\n")}}}, nil, nil
		})
	s.AddTool(&sdk.Tool{Name: "echo", Description: "Repeats its arguments.", InputSchema: map[string]any{"type": "object", "additionalProperties": true}},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
	return s.Run(context.Background(), &sdk.StdioTransport{})
}
