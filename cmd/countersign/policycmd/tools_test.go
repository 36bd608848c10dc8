package policycmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent/pins"
	"countersign/cmd/countersign/cli"
)

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// shifting is an MCP server over HTTP. A test can change the tools of this server.
type shifting struct {
	*httptest.Server
	mcp *mcp.Server
}

// openShifting opens a server with tools. The map has the description of each tool by name.
func openShifting(t *testing.T, tools map[string]string) *shifting {
	t.Helper()
	s := &shifting{mcp: mcp.NewServer(&mcp.Implementation{Name: "shifting", Version: "1"}, nil)}
	for name, description := range tools {
		s.says(name, description)
	}
	s.Server = httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, nil))
	t.Cleanup(func() {
		s.CloseClientConnections() // needed because an event stream never ends by itself
		s.Close()
	})
	return s
}

// The method "says" changes a tool's description, and notifies the clients.
func (s *shifting) says(name, description string) {
	s.mcp.AddTool(&mcp.Tool{
		Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"}}}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: name == "look"},
	}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "did " + name}}}, nil
	})
}

func (s *shifting) entry(name, more string) string {
	return fmt.Sprintf("servers:\n  %s: {url: %q, allow: [127.0.0.1]%s}\n", name, s.URL, more)
}

// boxPolicy is the beginning of a policy, for tests that add tools.
const boxPolicy = `version: 1
approvers: {boss: {title: Boss, members: [U0001], max_risk: critical, can_approve: ["*"]}}
agents: {support: {channels: ["#support"], prompt: x, tools: ["*"]}}
`

// bench is a test with a policy and a server whose tools change. Helpers of bench run the operator's commands.
type bench struct {
	*testing.T
	*shifting
	path string
}

func openBench(t *testing.T, policy string) *bench {
	t.Helper()
	b := &bench{T: t, shifting: openShifting(t, map[string]string{"send": "Sends a letter.", "look": "Looks."}), path: filepath.Join(t.TempDir(), "countersign.yaml")}
	write(t, b.path, []byte(boxPolicy+b.entry("crm", "")+policy))
	return b
}

// The method "tools" runs the command "countersign tools" without a terminal.
func (b *bench) tools(args ...string) (said string, code int) {
	b.Helper()
	cmd := Tools()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetIn(strings.NewReader("pin\n"))
	cmd.SetArgs(append([]string{"--policy", b.path}, args...))
	err := cmd.ExecuteContext(b.Context())
	if err != nil {
		out.WriteString("\nerror: " + err.Error())
	}
	return out.String(), cli.Code(err)
}

// expect runs the command "countersign tools", and checks the exit code and the output.
func (b *bench) expect(code int, args []string, says ...string) string {
	b.Helper()
	said, got := b.tools(args...)
	if got != code {
		b.Fatalf("tools %s: code %d, want %d\n%s", strings.Join(args, " "), got, code, said)
	}
	for _, part := range says {
		if !strings.Contains(said, part) {
			b.Errorf("tools %s does not say %q:\n%s", strings.Join(args, " "), part, said)
		}
	}
	return said
}

func argsOf(s string) []string { return strings.Fields(s) }

// The test runs an operator's commands. A server is new, and its tools are reviewed and pinned. One tool changes, the
// command shows the changes, and the operator pins the tool again. One tool disappears, and its pin is removed.
func TestToolsFromNewToPinned(t *testing.T) {
	t.Parallel()
	b := openBench(t, "tools: {crm.send: {risk: high, rules: [{when: \"now.getHours() > 20\", confirm: true}]}, crm.look: {risk: low}}\n")
	b.expect(cli.ExitNo, nil, "crm.look", "NEW", "blocked", "2 tools are not as pinned and so blocked: crm.look, crm.send", "countersign tools show NAME", "ask_people", "built in", "not needed")
	b.expect(cli.ExitNo, argsOf("show crm.look"), "it says: read-only", `"description": "Looks."`, "NEW, sha256:", "error: it is not as pinned, and so blocked")
	b.expect(cli.ExitUsage, argsOf("pin"), "say which tools to pin")
	b.expect(cli.ExitUsage, argsOf("pin crm.send --all"), "NAME…, --source NAME and --all exclude each other: write only one of them")
	b.expect(cli.ExitUsage, argsOf("pin crm.send"), "crm.send is new, effect unprotected", `"description": "Sends a letter."`, "nothing was pinned, because there is nobody to ask", "--yes")
	if _, err := os.Stat(pins.Beside(b.path)); err == nil {
		t.Error("a lock file was written although nobody confirmed it")
	}
	b.expect(cli.ExitDone, argsOf("pin crm.send --yes"), "crm.send is new", "1 definition pinned in "+pins.Beside(b.path))
	b.expect(cli.ExitNo, nil, "1 tool is not as pinned and so blocked: crm.look")
	b.expect(cli.ExitDone, argsOf("pin --source crm --yes"), "crm.look  low   unprotected  new", "\"countersign tools show NAME\" prints a definition")
	said := b.expect(cli.ExitDone, nil, "pinned", "auto", "boss, or more by rule")
	if strings.Contains(said, "NEW") {
		t.Errorf("all is pinned, and it says\n%s", said)
	}
	b.expect(cli.ExitDone, argsOf("pin --all"), "Nothing has to be pinned")
	b.expect(cli.ExitDone, argsOf("show crm.send"), "pinned by "+cli.Operator(os.Getuid()).Login()+" at ", "first seen at ")

	b.says("send", "Sends a letter to\u200b everybody.")
	b.expect(cli.ExitNo, nil, "DRIFTED")
	b.expect(cli.ExitNo, argsOf("show crm.send"), "What changed since it was pinned", `- description: "Sends a letter."`, `+ description: "Sends a letter to⟨U+200B⟩ everybody."`)
	b.expect(cli.ExitDone, argsOf("show crm.look"))
	b.expect(cli.ExitDone, argsOf("pin --all --yes"), "crm.send  high  unprotected  CHANGED, 2 lines below", "crm.send changed (- as pinned, + as it is now)", `+ description: "Sends a letter to⟨U+200B⟩ everybody."`)
	b.expect(cli.ExitDone, nil)

	b.mcp.RemoveTools("look")
	b.expect(cli.ExitNo, nil, "GONE", "1 pinned tool is not offered any more: crm.look", "--prune")
	b.expect(cli.ExitNo, argsOf("show crm.look"), "does not offer it any more")
	b.expect(cli.ExitDone, argsOf("pin --all --prune --yes"), "crm.look is not offered any more: its pin is forgotten")
	if said := b.expect(cli.ExitDone, nil); strings.Contains(said, "crm.look") {
		t.Errorf("it was forgotten, and is listed:\n%s", said)
	}
}

// The commands tell the operator about a pattern that is not checked.
func TestUncheckedPattern(t *testing.T) {
	b := openBench(t, "http:\n  mail: {description: Sends., url: 'https://api.example.com/m?to={to}', arguments: {type: object, properties: {to: {type: string, pattern: '^(?!x)'}}}}\n")
	const want = `the pattern "^(?!x)" can't be checked here, and only the server checks it`
	b.expect(cli.ExitDone, argsOf("show mail --offline"), "  note      "+want)
	var out bytes.Buffer
	if _ = runCheck(&out, []string{b.path}); !strings.Contains(out.String(), "http.mail: mail: "+want) {
		t.Errorf("%s", out.String())
	}
}

func TestToolsJSON(t *testing.T) {
	t.Parallel()
	b := openBench(t, "")
	said, code := b.tools("--json", "--source", "crm")
	var rows []listed
	if err := json.NewDecoder(strings.NewReader(said)).Decode(&rows); err != nil || code != cli.ExitNo || len(rows) != 2 {
		t.Fatalf("code %d, %v:\n%s", code, err, said)
	}
	hash := rows[0].Hash
	if rows[0].Hash = ""; rows[0] != (listed{Name: "crm.look", Risk: "critical", Gate: "blocked", Source: "crm", Effect: "unprotected", Pin: "new", Blocked: "nobody has pinned its definition yet"}) ||
		!strings.HasPrefix(hash, "sha256:") {
		t.Errorf("%+v, %s", rows[0], hash)
	}
}

// A tool that counts as unknown is not blocked. The approvers of the highest risk can approve its calls.
func TestToolsThatCountAsUnknown(t *testing.T) {
	t.Parallel()
	b := openBench(t, "defaults: {unpinned_tools: unknown}\ntools: {crm.look: {risk: low}}\n")
	b.expect(cli.ExitNo, nil, "NEW", "boss")
	b.expect(cli.ExitNo, argsOf("show crm.look"), "critical", "is not as the operator pinned it")
}

// If a server can't be reached, its pins stay. The server's tools are listed from the pins, and no tool is pinned
// again.
func TestToolsOfAServerThatIsDown(t *testing.T) {
	t.Parallel()
	b := openBench(t, "")
	b.expect(cli.ExitDone, argsOf("pin --all --yes"))
	before, err := os.ReadFile(pins.Beside(b.path))
	if err != nil {
		t.Fatal(err)
	}
	b.CloseClientConnections()
	b.Close()
	b.expect(cli.ExitFailed, nil, "crm can't be reached, so its tools are shown as they are pinned: ", "pinned, not asked")
	b.expect(cli.ExitFailed, argsOf("show crm.send"), "so this is the tool as it is pinned", `"description": "Sends a letter."`)
	b.expect(cli.ExitFailed, argsOf("pin --all --yes"), "crm can't be reached, so nothing was pinned and every pin is unchanged")
	b.expect(cli.ExitFailed, argsOf("pin crm.send --yes"), "crm can't be reached")
	b.expect(cli.ExitUsage, argsOf("show crm.other"), "as far as can be said: crm can't be reached")
	b.expect(cli.ExitDone, argsOf("--offline"), "crm.send", "pinned, not asked")
	b.expect(cli.ExitDone, argsOf("show crm.send --offline"), `"description": "Sends a letter."`)
	if after, err := os.ReadFile(pins.Beside(b.path)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the pins changed: %v", err)
	}
}

func TestToolsThatAreWrong(t *testing.T) {
	t.Parallel()
	b := openBench(t, "")
	b.expect(cli.ExitUsage, argsOf("show send"), "there is no tool send; did you mean crm.send?")
	b.expect(cli.ExitUsage, argsOf("show nothing"), "there is no tool nothing; countersign tools lists them")
	b.expect(cli.ExitUsage, argsOf("--source none"), "the policy has no source none; its sources are crm")
	b.expect(cli.ExitUsage, argsOf("pin ask_people --yes"), "ask_people needs no pin")
	b.expect(cli.ExitUsage, argsOf("pin crm.none --yes"), "there is no tool crm.none")
	b.expect(cli.ExitDone, argsOf("show ask_people"), "built in", "Arguments")
	write(t, pins.Beside(b.path), []byte("{"))
	b.expect(cli.ExitUsage, nil, "countersign.lock:1: ", "cut short")
	write(t, b.path, []byte("version: 2\n"))
	b.expect(cli.ExitUsage, nil, "the policy can't be used")
	b.path = ""
	if said, code := b.tools(); code != cli.ExitUsage && code != cli.ExitFailed {
		t.Errorf("without a policy: %d, %s", code, said)
	}
}

// If the policy does not name a source, prune removes the pins of this source.
func TestPruneForgetsSources(t *testing.T) {
	t.Parallel()
	b := openBench(t, "")
	p, err := pins.Make("old.tool", "old", []byte(`{"name":"tool"}`), "anna", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := (pins.Lock{}).With(p).Write(pins.Beside(b.path)); err != nil {
		t.Fatal(err)
	}
	b.expect(cli.ExitDone, argsOf("pin --all --yes --prune"), "old.tool is not offered any more")
	l, err := pins.Read(pins.Beside(b.path))
	if _, left := l.Tool("old.tool"); left || err != nil || len(l.Pins) != 2 {
		t.Errorf("%+v, %v", l.Pins, err)
	}
}

// If somebody else changes the lock file while the command runs, the command does not overwrite these changes. If the
// operator interrupts the command, it does not wait for the servers.
func TestPinThatCanNotBe(t *testing.T) {
	t.Parallel()
	b := openBench(t, "")
	s, err := examine(b.Context(), b.path, false)
	if err != nil {
		t.Fatal(err)
	}
	other, err := pins.Make("crm.send", "crm", []byte(`{}`), "ben", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := (pins.Lock{}).With(other).Write(pins.Beside(b.path)); err != nil {
		t.Fatal(err)
	}
	if err := s.write(pins.Lock{}); cli.Code(err) != cli.ExitFailed || !strings.Contains(err.Error(), "changed while you were reading") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	if _, err := examine(ctx, b.path, false); err == nil {
		t.Error("the command waits for an operator who has gone away")
	}
}

// The command asks the operator for confirmation. Only the answer "pin" pins the tools.
func TestPinAsks(t *testing.T) {
	for answer, code := range map[string]int{"pin\n": cli.ExitDone, " pin": cli.ExitDone, "yes\n": cli.ExitNo, "": cli.ExitNo} {
		var out bytes.Buffer
		if err := askToPin(strings.NewReader(answer), &out, 2, 1); cli.Code(err) != code {
			t.Errorf("%q: %v", answer, err)
		}
		if got := out.String(); got != "Pin 2 definitions as shown, and forget 1 pin? Write pin: " {
			t.Errorf("%q", got)
		}
	}
	if err := askToPin(iotest.ErrReader(os.ErrClosed), io.Discard, 1, 0); cli.Code(err) != cli.ExitFailed {
		t.Errorf("an answer that can't be read: %v", err)
	}
}

// The function "listing" starts an MCP server. A test can replace the server's list of tools with any text.
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

// If a source's definition can't become a tool, the list shows the definition with the reason. A pinned definition then
// counts as refused, and not as gone or drifted.
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
	left := []string{"Problems with tool definitions:", "crm: ", "crm.bare", "it: ", "POST /b (b) was left out: the body is multipart/form-data"}
	b.expect(cli.ExitNo, nil, append(left, "crm.look, crm.send")...)
	b.expect(cli.ExitDone, argsOf("pin --all --yes"), left...)
	b.expect(cli.ExitDone, nil, left...)
	if said := b.expect(cli.ExitDone, argsOf("pin --all --yes"), append(left, "Nothing was pinned: the offered tools have not changed.")...); strings.Contains(said, "no tool has changed") {
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
