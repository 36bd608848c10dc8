package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/agent"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/config"
)

// If the policy changes while the bot runs, servers are added, removed and changed. The connection to an unchanged
// server stays.
func TestFollowsThePolicy(t *testing.T) {
	t.Parallel()
	stays, goes, comes, changes := openServer(t, "stay"), openServer(t, "go"), openServer(t, "come"), openServer(t, "change")
	f := openFixture(t, "servers:\n"+stays.entry("stays", "")+goes.entry("goes", "")+changes.entry("changes", ""))
	f.begin()
	if got := f.names(); got != "changes.change goes.go stays.stay" {
		t.Fatalf("at first the tools are %s", got)
	}
	before, changed := stays.handshakes(), changes.handshakes()
	f.becomes("servers:\n" + stays.entry("stays", "") + comes.entry("comes", ", prefix: false") + changes.entry("changes", ", effects: {change: read-only}"))
	f.until("the new server is there", func() bool { return f.names() == "changes.change come stays.stay" })
	f.until("the changed one is as the policy says", func() bool {
		tool, ok := f.Tool("changes.change")
		return ok && tool.Effect == approvers.ReadOnly
	})
	if stays.handshakes() != before {
		t.Errorf("the unchanged server was connected %d more times", stays.handshakes()-before)
	}
	if changes.handshakes() == changed {
		t.Error("the changed server was not connected again")
	}
	for _, s := range f.Servers() {
		if !s.Connected || s.Server == "goes" {
			t.Errorf("%+v", s)
		}
	}
	f.becomes("")
	f.until("nothing is left", func() bool { return f.names() == "" && len(f.Servers()) == 0 })
}

// A server that is down does not delay the start. /readyz names the server until the policy no longer names it.
func TestWithAServerThatIsDown(t *testing.T) {
	t.Parallel()
	up := openServer(t, "search")
	f := openFixture(t, fmt.Sprintf("servers:\n%s  crm: {url: \"http://127.0.0.1:1\", allow: [127.0.0.1]}\n  lost: {command: [no-such-program-anywhere]}\n", up.entry("up", "")))
	f.begin()
	if got := f.names(); got != "up.search" {
		t.Errorf("the tools are %s", got)
	}
	why := fmt.Sprint(f.Reachable(t.Context()))
	for _, part := range []string{"2 servers down: crm: ", "; lost: ", `the command "no-such-program-anywhere" is not found; install it`} {
		if !strings.Contains(why, part) {
			t.Errorf("/readyz says %q, without %q", why, part)
		}
	}
	f.becomes("servers:\n" + up.entry("up", ""))
	f.until("all are well", func() bool { return f.Reachable(t.Context()) == nil })
}

// Calls are counted by outcome. Config.Wrap receives tools whose Run function already counts calls.
func TestCountsCalls(t *testing.T) {
	t.Parallel()
	o := openServer(t, "search")
	var between []string
	var run func(context.Context, agent.Invocation) (string, error)
	f := openFixture(t, o.servers("up", ""), func(c *Config) {
		c.Wrap = func(tool *agent.Tool) {
			between = append(between, tool.Name)
			run = tool.Run
		}
	})
	f.begin()
	if got, err := run(t.Context(), agent.Invocation{Key: "exec-1", Args: json.RawMessage(`{}`)}); err != nil || got != "did search" || !slices.Equal(between, []string{"up.search"}) {
		t.Errorf("%q, %v; between %v", got, err, between)
	}
	for _, err := range []error{errors.New("refused"), fmt.Errorf("cut: %w", agent.ErrOutcomeUnknown)} {
		breaks := agent.Tool{Run: func(context.Context, agent.Invocation) (string, error) { return "", err }}
		f.calls.count("up", &breaks)
		if _, got := breaks.Run(t.Context(), agent.Invocation{}); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	want := map[Calls]int{{"up", Answered}: 1, {"up", Failed}: 1, {"up", Unknown}: 1}
	if got := f.Calls(); !maps.Equal(got, want) {
		t.Errorf("the counted calls are %v, want %v", got, want)
	}
}

// During shutdown, current runs can finish. The servers are disconnected after the runs have ended.
func TestOutlivesItsContext(t *testing.T) {
	t.Parallel()
	o := openServer(t, "search")
	offered := make(chan func(context.Context, agent.Invocation) (string, error), 1)
	f := openFixture(t, o.servers("up", ""), func(c *Config) {
		c.Wrap = func(tool *agent.Tool) {
			select {
			case offered <- tool.Run:
			default:
			}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	end := f.Begin(ctx)
	run := <-offered // on a busy machine, the server can join after Begin has returned
	stop()
	if _, err := run(t.Context(), agent.Invocation{Key: "exec-1", Args: json.RawMessage(`{}`)}); err != nil {
		t.Errorf("after the end of its context: %v", err)
	}
	end()
	if len(f.Servers()) != 0 {
		t.Errorf("servers are left after the end: %+v", f.Servers())
	}
}

// The pinned tools are known before the server is connected, and also without a connection. If the policy names a
// server that is part of the program, the server of the program is used. A broken lock file is refused.
func TestPins(t *testing.T) {
	t.Parallel()
	shop := openServer(t, "refund")
	f := openFixture(t, shop.servers("shop", ", prefix: false"))
	f.begin()
	f.until("the tool is there", func() bool { return f.states() == "refund new" })
	f.pinAll()
	write(t, f.path, basePolicy+"servers: {shop: {command: [no-such-program-anywhere], prefix: false}}\n")
	file, err := config.ReadPolicy(f.path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Offline(file, f.path)
	if err != nil {
		t.Fatal(err)
	}
	if tool, ok := r.Tool("refund"); !ok || tool.Blocked != "" || tool.Check(json.RawMessage(`{"order":1}`)) == nil {
		t.Errorf("offline the refund is %+v, %t", tool, ok)
	}
	later, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.adoptInto(later, file); err != nil {
		t.Fatal(err)
	}
	if tool, ok := later.Tool("refund"); !ok || tool.Blocked != "" {
		t.Errorf("before the server is there the refund is %+v, %t", tool, ok)
	}
	own, err := New(Config{Own: []config.Server{{Name: "shop", URL: "http://127.0.0.1:1/"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.adoptInto(own, file); err != nil {
		t.Fatal(err)
	}
	if names := own.PolicyServers(); len(names) != 0 || !own.IsOwn("shop") {
		t.Errorf("besides the program's own there are the servers %v", names)
	}
	before := later.Policy()
	write(t, pins.Beside(f.path), "{")
	var broken *LockError
	for what, err := range map[string]error{
		"the catalog": f.adoptInto(later, file),
		"offline":     second(Offline(file, f.path)),
		"the report":  second(ExamineOffline(file, f.path)),
	} {
		if !errors.As(err, &broken) || !strings.Contains(err.Error(), pins.FileName) {
			t.Errorf("%s accepts a broken lock file: %v", what, err)
		}
	}
	if later.Policy() != before {
		t.Error("a policy with a broken lock file is in force")
	}
}

func second[T any](_ T, err error) error { return err }

// Tools that are declared in the policy file are available immediately, need no pin, and change with the policy. If
// the secret of a tool is missing in the environment, the policy is refused, and the error names the secret.
func TestDeclaredTools(t *testing.T) {
	t.Setenv("BOX_TOKEN", "secret-token")
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s with %t", r.URL.Path, r.Header.Get("Authorization") == "Bearer secret-token")
	}))
	t.Cleanup(api.Close)
	endpoint := func(name, variable string) string {
		return fmt.Sprintf("http: {%s: {description: Looks it up., method: GET, url: %q, headers: {Authorization: %q}, allow: [127.0.0.1]}}\n", name, api.URL+"/x", "Bearer ${"+variable+"}")
	}
	f := openFixture(t, endpoint("look", "BOX_TOKEN"))
	f.begin()
	if tool, ok := f.Tool("look"); !ok || tool.Blocked != "" {
		t.Fatalf("%+v, %t", tool, ok)
	}
	f.becomes(endpoint("look_again", "BOX_TOKEN"))
	if got := f.names(); got != "look_again" {
		t.Errorf("the tools are %s", got)
	}
	if why := fmt.Sprint(f.adopt(endpoint("look", "BOX_NOWHERE"))); !strings.Contains(why, "BOX_NOWHERE is not set in the environment") || f.names() != "look_again" {
		t.Errorf("%s; the tools are %s", why, f.names())
	}
}

// A declared source of any kind is removed when the next policy does not declare it.
func TestDeclaredSourceGoes(t *testing.T) {
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	look := agent.Tool{
		Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object"}`), Effect: approvers.ReadOnly,
		Run: func(context.Context, agent.Invocation) (string, error) { return "", nil },
	}
	before := []declared{{source: "a new kind of source", tools: []agent.Tool{look}, own: true}}
	if found := c.replaceDeclared(&config.File{}, nil, before); len(found) > 0 {
		t.Fatal(found)
	}
	if _, there := c.Tool("look"); !there {
		t.Fatal("the tool is not there at first")
	}
	c.replaceDeclared(&config.File{}, before, nil)
	if _, there := c.Tool("look"); there {
		t.Error("the tool can still be called")
	}
}

// A policy with an error in any part is refused, and the tools of the current policy do not change.
func TestRefusedPolicyChangesNothing(t *testing.T) {
	t.Setenv("BOX_TOKEN", "secret-token")
	f := openFixture(t, "")
	write(t, filepath.Join(filepath.Dir(f.path), "api.yaml"), "openapi: 3.1.0\ninfo: {title: x, version: '1'}\nservers: [{url: https://api.example.com}]\npaths:\n"+
		"  /a: {get: {operationId: a, responses: {'200': {description: ok}}}}\n")
	const look = "http: {look: {description: Looks it up., method: GET, url: \"https://api.example.com/x\"}}\n"
	api := func(variable string) string {
		return "openapi:\n  it: {file: api.yaml, headers: {Authorization: \"Bearer ${" + variable + "}\"}}\n"
	}
	f.becomes(look + api("BOX_TOKEN"))
	f.pinAll()
	f.repin()
	before, policy := f.states(), f.Policy()
	if before != "it.a same" || f.names() != "it.a look" {
		t.Fatalf("at first the tools are %s: %s", f.names(), before)
	}
	err := f.adopt(strings.Replace(look, "look:", "other:", 1) + api("BOX_NOWHERE"))
	if err == nil || !strings.Contains(err.Error(), "BOX_NOWHERE is not set in the environment") {
		t.Errorf("a policy with a secret that is not set: %v", err)
	}
	if f.names() != "it.a look" || f.states() != before || f.Policy() != policy {
		t.Errorf("after a refused policy the tools are %s: %s", f.names(), f.states())
	}
	err = f.adopt("openapi:\n  other: {file: api.yaml}\n" + strings.Replace(look, "look:", "ask_people:", 1))
	if err == nil || !strings.Contains(err.Error(), "there is a tool of that name already") {
		t.Errorf("a policy with a tool of a name that is taken: %v", err)
	}
	if f.names() != "it.a look" || f.states() != before || !reflect.DeepEqual(f.Policy(), policy) {
		t.Errorf("after a name that is taken the tools are %s: %s", f.names(), f.states())
	}
}

// A hundred tools of ten servers are registered when the bot starts. This should take at most 2 s more than the
// servers themselves need. The test only logs the time, because the machine may be busy.
func TestReach(t *testing.T) {
	t.Parallel()
	var policy strings.Builder
	policy.WriteString("servers:\n")
	for i := range 10 {
		var tools []string
		for j := range 10 {
			tools = append(tools, fmt.Sprintf("tool_%d", j))
		}
		policy.WriteString(openServer(t, tools...).entry(fmt.Sprintf("server%d", i), ""))
	}
	f := openFixture(t, policy.String())
	began := time.Now()
	f.begin()
	f.until("all of them are there", func() bool { return len(strings.Fields(f.names())) == 100 })
	took := time.Since(began)
	t.Logf("servers=10 tools=100 took=%s", took.Round(time.Millisecond))
}
