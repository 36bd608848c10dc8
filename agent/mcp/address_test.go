package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"countersign/config"
)

// address is a handwritten MCP server over HTTP. act answers calls. If act is nil, the answer to a call is "done".
type address struct {
	t    *testing.T
	act  func(w http.ResponseWriter, r *http.Request, m wire)
	get  http.HandlerFunc
	gate func(w http.ResponseWriter, r *http.Request) bool // false: gate itself has answered the request

	mu     sync.Mutex
	bodies []string
	heads  []http.Header
}

func (a *address) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.bodies, a.heads = append(a.bodies, string(body)), append(a.heads, r.Header.Clone())
	a.mu.Unlock()
	if a.gate != nil && !a.gate(w, r) {
		return
	}
	if r.Method != http.MethodPost {
		if r.Method == http.MethodGet && a.get != nil {
			a.get(w, r)
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	m := wire{raw: string(body)}
	_ = json.Unmarshal(body, &m)
	switch {
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "session-1")
		answerJSON(w, m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"address","version":"1"}}`)
	case m.Method == "tools/list":
		answerJSON(w, m, `{"tools":[`+aTool+`]}`)
	case m.Method == "tools/call" && a.act != nil:
		a.act(w, r, m)
	case m.Method == "tools/call":
		answerJSON(w, m, `{"content":[{"type":"text","text":"done"}]}`)
	case m.Method == "ping":
		answerJSON(w, m, `{}`)
	case m.ID == nil:
		w.Header().Set("Content-Type", "application/json") // servers made with the SDK for Python do this
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
	}
}

func answerJSON(w http.ResponseWriter, m wire, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// stream begins a stream of events. stream returns a function that writes to the stream. When the client has
// disconnected, this function returns false.
func stream(w http.ResponseWriter, r *http.Request) func(format string, args ...any) bool {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return func(format string, args ...any) bool {
		_, err := fmt.Fprintf(w, format, args...)
		w.(http.Flusher).Flush()
		return err == nil && r.Context().Err() == nil
	}
}

// at starts the server, and returns its configuration.
func (a *address) at(t *testing.T) config.Server {
	t.Helper()
	a.t = t
	srv := httptest.NewServer(a)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return config.Server{Name: "far", URL: srv.URL + "/mcp", Allow: []string{"127.0.0.1"}, Timeout: patience, MaxResult: 1 << 20}
}

func (a *address) sent(words string) (string, http.Header) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, b := range a.bodies {
		if strings.Contains(b, words) {
			return b, a.heads[i]
		}
	}
	return "", nil
}
