package main

import (
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client starts the shop as a child process, like a server from npm. The next process of the shop continues with the
// shop's state, and the page over HTTP shows this state.
func TestShopCommand(t *testing.T) {
	t.Parallel()
	path := programPath(t)
	file := filepath.Join(t.TempDir(), "below", "shop.json")
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	refund := func(transport mcp.Transport) string {
		t.Helper()
		session, err := client.Connect(t.Context(), transport, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		got, err := session.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "issue_refund", Arguments: map[string]any{"order_id": "ORD-123", "amount": 20, "currency": "USD"}, Meta: mcp.Meta{"countersign/execution": "exec-1"},
		})
		if err != nil || got.IsError {
			t.Fatalf("%+v, %v", got, err)
		}
		return got.Content[0].(*mcp.TextContent).Text
	}
	child := exec.Command(path, "shop", "--file", file)
	child.Env = plainEnv()
	first := refund(&mcp.CommandTransport{Command: child})
	if child.ProcessState == nil || !child.ProcessState.Success() {
		t.Errorf("the shop ended with %v, want a clean end with its input", child.ProcessState)
	}

	at := launch(t, t.TempDir(), nil, "shop", "--addr", "127.0.0.1:0", "--file", file).says(`open at (http://\S+)/,`)
	if again := refund(&mcp.StreamableClientTransport{Endpoint: at + "/mcp"}); again != first {
		t.Errorf("the same key was answered with %s\nand then with %s", first, again)
	}
	resp, err := http.Get(at + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(page), "repeated 1×") {
		t.Errorf("%v; the page does not show the refund and its repetition:\n%.2000s", err, page)
	}
}
