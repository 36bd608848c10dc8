package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// The demo prints two commands for other agents. The test reads both commands. It sends the request of the first
// command, and connects to the gateway as the second command does.
func TestDemoAnnouncesTheGateway(t *testing.T) {
	t.Parallel()
	demo := launch(t, t.TempDir(), nil, "demo", "--no-browser", "--addr", "127.0.0.1:0")
	quoted := func(line, flag string) (out []string) {
		for _, m := range regexp.MustCompile(flag+` '([^']*)'`).FindAllStringSubmatch(line, -1) {
			out = append(out, m[1])
		}
		return out
	}
	first := demo.says(`^  curl -s (http.*) \\$`) + " " + demo.says(`^    (-H .*-d .*)$`)
	url, rest, _ := strings.Cut(first, " ")
	bodies, headers := quoted(rest, "-d"), quoted(rest, "-H")
	if len(bodies) != 1 || len(headers) != 3 || !strings.Contains(bodies[0], `"wait":55`) {
		t.Fatalf("the command is curl -s %s", first)
	}
	// The command waits for Teo. The test does not wait.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(strings.Replace(bodies[0], `"wait":55`, `"wait":0`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		t.Errorf("the request is answered with %s", answer.Status)
	}

	second := demo.says(`^  claude mcp add --transport http countersign (http.*)$`)
	url, rest, _ = strings.Cut(second, " ")
	base, isMCP := strings.CutSuffix(url, "/mcp")
	header := quoted(rest, "--header")
	if !isMCP || len(header) != 1 {
		t.Fatalf("the command is claude mcp add --transport http countersign %s", second)
	}
	client := openMCP(t, base, strings.TrimPrefix(header[0], "Authorization: Bearer "), "")
	client.wants(client.call("search_orders", `{"query":"ORD-123"}`), "approved-executed", "ORD-123")
}
