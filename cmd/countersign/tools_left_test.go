package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"countersign/cmd/countersign/cli"
)

// listing is an MCP server whose list of tools is any text.
func listing(t *testing.T) (url string, list *atomic.Pointer[string]) {
	t.Helper()
	list = new(atomic.Pointer[string])
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		result := "{}"
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"listing","version":"1"}}`
		case "tools/list":
			result = `{"tools":[` + *list.Load() + `]}`
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL, list
}

// What a source has and what can't be a tool is named with why; one that was pinned is refused, neither gone nor
// drifted.
func TestToolsThatAreLeftOut(t *testing.T) {
	t.Parallel()
	url, list := listing(t)
	says := func(tools ...string) {
		all := strings.Join(tools, ",")
		list.Store(&all)
	}
	const (
		send    = `{"name":"send","description":"Sends.","inputSchema":{"type":"object"}}`
		look    = `{"name":"look","description":"Looks.","inputSchema":{"type":"object"}}`
		bare    = `{"name":"bare","description":"Has no schema."}`
		badSend = `{"name":"send","description":"Sends.","inputSchema":{"type":"array"}}`
		badLook = `{"name":"look","description":"Looks.","inputSchema":{"type":"object"},"outputSchema":7}`
	)
	b := &bench{T: t, path: filepath.Join(t.TempDir(), "countersign.yaml")}
	api := "openapi: 3.1.0\ninfo: {title: x, version: '1'}\nservers: [{url: https://api.example.com}]\npaths:\n" +
		"  /b: {post: {operationId: b, requestBody: {content: {multipart/form-data: {}}}, responses: {'200': {description: ok}}}}\n"
	write(t, filepath.Join(filepath.Dir(b.path), "api.yaml"), []byte(api))
	write(t, b.path, fmt.Appendf(nil, "%sservers:\n  crm: {url: %q, allow: [127.0.0.1]}\nopenapi:\n  it: {file: api.yaml}\n", boxPolicy, url))

	says(send, look, bare)
	left := []string{"Not offered", "crm: ", "crm.bare", "it: ", "POST /b (b) was left out: the body is multipart/form-data"}
	b.expect(cli.ExitNo, nil, append(left, "crm.look, crm.send")...)
	b.expect(cli.ExitDone, argsOf("pin --all --yes"), left...)
	b.expect(cli.ExitDone, nil, left...)
	if said := b.expect(cli.ExitDone, argsOf("pin --all --yes"), append(left, "Nothing was pinned: what is offered is as it was.")...); strings.Contains(said, "everything is as it was") {
		t.Errorf("something was left out:\n%s", said)
	}
	if said := b.expect(cli.ExitDone, argsOf("--source it"), "was left out"); strings.Contains(said, "crm.bare") {
		t.Errorf("of the other source:\n%s", said)
	}

	for what, tools := range map[string][]string{
		"a schema of arguments that is none": {badSend, look},
		"two tools of one name":              {send, send, look},
		"a schema of results that is none":   {send, badLook},
	} {
		says(tools...)
		name := "crm.send"
		if tools[0] == send && tools[1] == badLook {
			name = "crm.look"
		}
		for _, args := range []string{"", "--json"} {
			said := b.expect(cli.ExitNo, argsOf(args), "1 pinned tool is refused and so blocked", name)
			if strings.Contains(said, "GONE") || strings.Contains(said, "DRIFTED") || strings.Contains(said, "lets it be called") || !strings.Contains(strings.ToLower(said), "refused: ") {
				t.Errorf("%s:\n%s", what, said)
			}
		}
		b.expect(cli.ExitNo, argsOf("show "+name), "refused: ", "its source describes it in a way that can't be used: ")
		before, err := os.ReadFile(filepath.Join(filepath.Dir(b.path), "countersign.lock"))
		if err != nil {
			t.Fatal(err)
		}
		b.expect(cli.ExitDone, argsOf("pin --all --yes --prune"), name+" can't be pinned, and stays blocked: ", "Nothing was pinned")
		if after, err := os.ReadFile(filepath.Join(filepath.Dir(b.path), "countersign.lock")); err != nil || string(before) != string(after) {
			t.Errorf("%s: the pins changed, %v", what, err)
		}
	}

	says(look)
	b.expect(cli.ExitNo, nil, "GONE", "1 pinned tool is not offered any more: crm.send")
	if said := b.expect(cli.ExitDone, argsOf("pin --all --yes"), "1 pinned tool is not offered any more: crm.send. --prune forgets it", "Nothing was pinned"); strings.Contains(said, "everything") {
		t.Error(said)
	}
}
