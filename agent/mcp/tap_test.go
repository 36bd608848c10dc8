package mcp

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"countersign/agent"
	"countersign/internal/redact"
)

// TestTapIn checks which messages of a server the tap passes to the SDK, and which messages it drops.
func TestTapIn(t *testing.T) {
	var changes int
	var list string
	var log lockedBuffer
	p := newTap(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), redact.Values{}, 100, func() { changes++ }, func(raw json.RawMessage) { list = string(raw) })
	f := &flight{token: "call-1"}
	p.begin(f)
	for i, tt := range []struct{ in, out string }{
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`},
		{`{"jsonrpc":"2.0","method":"notifications/resources/updated"}`, ``},
		{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, ``},
		{`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"token=abcdefghijkl"}}`, ``},
		{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"call-1","progress":1}}`, ``}, // no call has this progress token
		{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"call-2","progress":1}}`, ``},
		{`{"jsonrpc":"2.0","method":"notifications/progress","params":5}`, ``},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, ``},
		{`{"jsonrpc":"2.0","id":5,"result":{}}`, ``},
		{`{"jsonrpc":"2.0","id":5}`, ``},
		{`{"jsonrpc":"2.0"}`, ``},
		{`{"METHOD":"ping","id":1}`, ``},
		{`[]`, ``}, {`"x"`, ``}, {``, ``}, {`{"id":1`, ``}, {`{"id":1}{"id":2}`, ``},
		{`{"jsonrpc":"2.0","id":"p","method":"ping"}`, `{"jsonrpc":"2.0","id":"p","method":"ping"}`},
	} {
		if got := p.in([]byte(tt.in), nil); string(got) != tt.out {
			t.Errorf("%d: %s became %s", i, tt.in, got)
		}
	}
	if changes != 1 {
		t.Errorf("%d changes of the list", changes)
	}
	if strings.Contains(log.String(), "abcdefghijkl") || !strings.Contains(log.String(), "a log message of an MCP server") {
		t.Errorf("%s", log.String())
	}
	if _, _, err := p.out([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`)); err != nil {
		t.Fatal(err)
	}
	got := p.in([]byte(`{"jsonrpc":"2.0","id":7,"result":{"tools":[ ],"ttlMs":99999,"x":1}}`), nil)
	if string(got) != `{"jsonrpc":"2.0","id":7,"result":{"tools":[ ],"x":1}}` || list != `{"tools":[ ],"ttlMs":99999,"x":1}` {
		t.Errorf("%s, %s", got, list)
	}
}

// TestTapOut checks that the tap registers an outgoing request before the request is sent. A call without a
// registered flight is not sent.
func TestTapOut(t *testing.T) {
	p := newTap(discard, redact.Values{}, 100, func() {}, func(json.RawMessage) {})
	for _, raw := range []string{``, `[]`, `{"id":1,"method":"tools/call","params":{"_meta":{"progressToken":"none"}}}`} {
		if _, _, err := p.out([]byte(raw)); err == nil {
			t.Errorf("%q goes out", raw)
		}
	}
	f := &flight{token: "a", args: json.RawMessage(`{"x" : 1}`)}
	p.begin(f)
	raw, got, err := p.out([]byte(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":"a"},"arguments":{"x":1},"name":"n"}}`))
	if err != nil || got != f || string(raw) != `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":"a"},"arguments":{"x" : 1},"name":"n"}}` {
		t.Errorf("%s, %v, %v", raw, got, err)
	}
	if _, _, err := p.out([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)); err != nil || len(p.pending) != 0 {
		t.Errorf("%v, %d are pending", err, len(p.pending))
	}
	p.end(f)
	if len(p.flights) != 0 {
		t.Error("a call is not forgotten")
	}
}

// TestTapBounds checks that unsolicited messages of a server don't pile up.
func TestTapBounds(t *testing.T) {
	p := newTap(discard, redact.Values{}, 100, func() {}, func(json.RawMessage) {})
	went := 0
	for i := range 100 {
		if p.in(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i), nil) != nil {
			went++
		}
	}
	if went != maxQuestions {
		t.Errorf("%d questions are open at once", went)
	}
	if _, _, err := p.out([]byte(`{"jsonrpc":"2.0","id":0,"result":{}}`)); err != nil {
		t.Fatal(err)
	}
	if p.in([]byte(`{"jsonrpc":"2.0","id":"next","method":"ping"}`), nil) == nil {
		t.Error("after an answer there is no room for the next question")
	}
	went = 0
	for range maxPassed + 100 {
		if p.in([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`), nil) != nil {
			went++
		}
	}
	if went != maxPassed {
		t.Errorf("%d notifications were passed on", went)
	}
	many := make([]string, 0, 30)
	for i := range 30 {
		many = append(many, fmt.Sprintf(`"q%d":{"method":"elicitation/create","params":{}}`, i))
	}
	f := &flight{token: "call-1"}
	p.begin(f)
	p.pending["9"] = &outgoing{method: "tools/call", flight: f}
	p.maxResult = 1 << 20
	p.in([]byte(`{"id":9,"result":{"inputRequests":{`+strings.Join(many, ",")+`,"other":{"method":"roots/list"},"none":1}}}`), f)
	if n := len(p.questions); n > 2*maxQuestions {
		t.Errorf("%d questions are kept", n)
	}
}

// TestThrottled checks that progress is reported at a limited rate.
func TestThrottled(t *testing.T) {
	n := 0
	tell := throttled(func(agent.Progress) { n++ })
	for range 1000 {
		tell(agent.Progress{})
	}
	if n == 0 || n > 100 {
		t.Errorf("told %d times", n)
	}
	if throttled(nil) != nil {
		t.Error("without a receiver, progress is reported")
	}
}

func TestExtensions(t *testing.T) {
	for kind, want := range map[string]string{
		"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
		"audio/wav": ".wav", "audio/mpeg": ".mp3", "application/pdf; x=y": ".pdf", "application/x-msdownload": "", "": "",
	} {
		if got := extension(kind); got != want {
			t.Errorf("%s: %s", kind, got)
		}
	}
}
