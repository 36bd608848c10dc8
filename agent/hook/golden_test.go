package hook

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/agent/client"
	"countersign/internal/testkit/fakegateway"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// talk has the inputs that one agent writes to its hooks.
type talk struct {
	before, permission, after, failure, denied, ended string // events
	input                                             func(event, tool, input, extra string) string
	tool, args                                        string // a call
	edited                                            string // the arguments of the call after an approver's edit
	less                                              string // the edited arguments, with one member removed
	succeeded, failed                                 string // members that the agent adds to an event after a call
}

// snake returns a function that writes the input of Claude Code, Codex or Gemini CLI.
func snake(more string) func(event, tool, input, extra string) string {
	return func(event, tool, input, extra string) string {
		return fmt.Sprintf(`{"session_id":"s-1","transcript_path":"/home/kim/t.jsonl","cwd":"/home/kim/shop","hook_event_name":%q,%s"tool_name":%q,"tool_input":%s%s}`, event, more, tool, input, extra)
	}
}

const bash = `{"command":"rm -rf build && make deploy","description":"Deploy <the shop>"}`

// talks has the inputs of each agent. The comments of the dialects name the sources for the form of the inputs.
var talks = map[string]talk{
	"claude-code": {
		before: "PreToolUse", permission: "PermissionRequest", after: "PostToolUse", failure: "PostToolUseFailure", denied: "PermissionDenied", ended: "Stop",
		input: func(event, tool, input, extra string) string {
			if event != "PermissionRequest" {
				extra += `,"tool_use_id":"toolu_01"`
			}
			return snake(`"permission_mode":"default",`)(event, tool, input, extra)
		},
		tool: "Bash", args: bash, edited: `{"command":"make deploy","description":"Deploy <the shop>"}`, less: `{"command":"make deploy"}`,
		succeeded: `,"tool_response":{"stdout":"done"}`, failed: `,"error":"exit status 1","is_interrupt":false`,
	},
	"codex": {
		before: "PreToolUse", permission: "PermissionRequest", after: "PostToolUse", ended: "Stop",
		input: func(event, tool, input, extra string) string {
			if event != "PermissionRequest" {
				extra += `,"tool_use_id":"call_01"`
			}
			return snake(`"permission_mode":"default","model":"m","turn_id":"t-1",`)(event, tool, input, extra)
		},
		tool: "Bash", args: `{"command":"rm -rf build && make deploy"}`, edited: `{"command":"make deploy"}`, less: `{}`,
		succeeded: `,"tool_response":"done"`,
	},
	"gemini": {
		before: "BeforeTool", after: "AfterTool", failure: "AfterTool", input: snake(`"timestamp":"2026-11-26T10:00:00Z",`),
		tool: "run_shell_command", args: bash, edited: `{"command":"make deploy","description":"Deploy <the shop>"}`, less: `{"command":"make deploy"}`,
		succeeded: `,"tool_response":{"llmContent":"done","returnDisplay":"done"}`, failed: `,"tool_response":{"llmContent":"","error":{"message":"exit status 1","type":"shell_execute_error"}}`,
	},
	"copilot": {
		before: "preToolUse", permission: "permissionRequest", after: "postToolUse", failure: "postToolUseFailure", ended: "sessionEnd",
		input: func(event, tool, input, extra string) string {
			name := "toolArgs"
			if event == "permissionRequest" {
				name = "toolInput"
			}
			return fmt.Sprintf(`{"sessionId":"s-1","timestamp":1764151200000,"cwd":"/home/kim/shop","toolName":%q,%q:%s%s}`, tool, name, input, extra)
		},
		tool: "bash", args: bash, edited: `{"command":"make deploy","description":"Deploy <the shop>"}`, less: `{"command":"make deploy"}`,
		succeeded: `,"toolResult":{"resultType":"success","textResultForLlm":"done"}`, failed: `,"error":"exit status 1"`,
	},
	"cursor": {
		before: "preToolUse", after: "postToolUse", failure: "postToolUseFailure",
		input: func(event, tool, input, extra string) string {
			return fmt.Sprintf(`{"conversation_id":"s-1","generation_id":"g-1","model":"default","hook_event_name":%q,"cursor_version":"3.9.16","workspace_roots":["/home/kim/shop"],"cwd":"","tool_name":%q,"tool_input":%s,"tool_use_id":"d024a132"%s}`, event, tool, input, extra)
		},
		tool: "Shell", args: `{"command":"rm -rf build && make deploy","cwd":"","timeout":30000}`, edited: `{"command":"make deploy","cwd":"","timeout":30000}`, less: `{"command":"make deploy","cwd":""}`,
		succeeded: `,"tool_output":"{\"output\":\"done\",\"exitCode\":0}"`, failed: `,"error_message":"exit status 1","failure_type":"error"`,
	},
}

// desk has the test gateway and the files of a machine with one agent.
type desk struct {
	*testing.T
	*fakegateway.Gateway
	talk
	agent string
	dir   string
	env   map[string]string
	http  *Held            // not nil: the events arrive over HTTP
	now   *strings.Builder // the record of the scenario

	program []string // see Options
}

func newDesk(t *testing.T, agent string, profile Profile) *desk {
	t.Helper()
	d := &desk{T: t, Gateway: fakegateway.New(t, "../gateway/openapi.json"), talk: talks[agent], agent: agent, dir: t.TempDir(), now: &strings.Builder{}}
	d.write("token", fakegateway.Token+"\n", 0o600)
	d.write("hook.json", fmt.Sprintf(`{"address": %q, "token_file": "token", "profile": %q, "state": %q}`, d.URL, profile, filepath.Join(d.dir, "state")), 0o600)
	d.env = map[string]string{"COUNTERSIGN_HOOK_CONFIG": filepath.Join(d.dir, "hook.json")}
	return d
}

func (d *desk) write(name, text string, mode os.FileMode) {
	d.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), mode); err != nil {
		d.Fatal(err)
	}
}

// overdue is a context with a channel. After the channel is closed, the context reports that its deadline has passed.
type overdue struct {
	context.Context
	at chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.at }

func (o overdue) Err() error {
	select {
	case <-o.at:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// undecided runs an event whose deadline passes while the hook waits for the decision.
func (d *desk) undecided(event, input string) Answer {
	d.Helper()
	ctx := overdue{d.Context(), make(chan struct{})}
	var once sync.Once
	d.Fault(func(_ http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodGet {
			once.Do(func() { close(ctx.at) })
		}
		return false
	})
	defer d.Fault(nil)
	return d.runIn(ctx, event, input)
}

// run handles one event.
func (d *desk) run(event, input string) Answer {
	d.Helper()
	return d.runIn(d.Context(), event, input)
}

func (d *desk) runIn(ctx context.Context, event, input string) Answer {
	d.Helper()
	o := Options{
		Agent: d.agent, Program: d.program, Timeout: time.Hour, Input: strings.NewReader(input), Getenv: func(name string) string { return d.env[name] }, patience: time.Nanosecond,
	}
	if d.agent == "copilot" {
		o.Event = event
	}
	a := Answer{}
	if d.http == nil {
		a = Run(ctx, o)
	} else {
		a.Out = d.serve(ctx, o, input)
	}
	out := strings.NewReplacer(d.URL, "GATEWAY", d.dir, "DIR").Replace
	fmt.Fprintf(d.now, "in   %s\nout  %sexit %d\n", input, orNone(out(string(a.Out))), a.Code)
	if a.Err != "" {
		fmt.Fprintf(d.now, "err  %s\n", out(a.Err))
	}
	return a
}

// serve handles an event that arrives over HTTP.
func (d *desk) serve(ctx context.Context, o Options, input string) []byte {
	d.Helper()
	gate, err := client.New(d.URL, fakegateway.Token)
	if err != nil {
		d.Fatal(err)
	}
	gate.Patience = time.Nanosecond
	return serve(ctx, Delivery{
		Agent: d.agent, Profile: d.profile(), Timeout: o.Timeout, Body: []byte(input), Gate: gate, Client: "laptop", Requests: atGateway{d}, Held: d.http,
	}, o.patience)
}

// atGateway implements Requests with the requests of the test gateway. The names of requests are kept in the file names
// of a folder.
type atGateway struct{ *desk }

func (g atGateway) Last(_ context.Context, call client.Call) (id string, err error) {
	for _, r := range g.Requests() {
		if r.Tool == call.Tool && r.Args == string(call.Args) && r.State == call.State {
			id = r.ID
		}
	}
	return id, nil
}

func (g atGateway) Named(_ context.Context, key string) (id, run string, err error) {
	if named, err := os.ReadFile(filepath.Join(g.dir, "key-"+key)); err == nil {
		id, run, _ = strings.Cut(string(named), " ")
		return id, run, nil
	}
	for _, r := range g.Requests() {
		if r.Key == key {
			return r.ID, cmp.Or(r.Earlier, r.Run()), nil
		}
	}
	return "", "", nil
}

func (g atGateway) Name(_ context.Context, key, id, run string) error {
	return os.WriteFile(filepath.Join(g.dir, "key-"+key), []byte(id+" "+run), 0o600)
}

func (g atGateway) Waiting(context.Context) (ids []string, err error) {
	for _, r := range g.Requests() {
		if r.Status == "pending" {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}

func orNone(out string) string {
	if out == "" {
		return "(nothing)\n"
	}
	return out
}

// ask runs an event with the agent's usual call.
func (d *desk) ask(event string) Answer {
	d.Helper()
	return d.run(event, d.input(event, d.tool, d.args, ""))
}

// scenario is one test case of TestAnswers.
type scenario struct {
	name    string
	do      func(*desk)
	machine bool // only for hooks that are processes on the agent's machine
}

// decided returns a scenario in which the request is decided immediately.
func decided(name string, change func(*desk, *fakegateway.Request)) scenario {
	return scenario{name: name, do: func(d *desk) {
		d.OnAsk(func(r *fakegateway.Request) { change(d, r) })
		d.ask(d.event())
	}}
}

// event returns the name of the event for which the agent waits for a decision.
func (d *desk) event() string {
	if strings.Contains(d.Name(), "comfort") {
		return d.permission
	}
	return d.before
}

// broken returns a scenario in which the gateway fails for one path.
func broken(name, path string, fail func(http.ResponseWriter)) scenario {
	return scenario{name: name, do: func(d *desk) {
		d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
		d.Fault(func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.HasSuffix(req.URL.Path, path) {
				return false
			}
			fail(w)
			return true
		})
		d.ask(d.event())
	}}
}

func problem(status int, name, detail string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { fakegateway.Problem(w, status, name, detail) }
}

// asked returns a scenario with a special input. The request is approved.
func asked(name string, input func(*desk) string) scenario {
	return scenario{name: name, do: func(d *desk) {
		d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
		d.run(d.event(), input(d))
	}}
}

var scenarios = []scenario{
	decided("nobody is needed", func(_ *desk, r *fakegateway.Request) { r.Status, r.Automatic = "approved", true }),
	decided("approved", func(_ *desk, r *fakegateway.Request) { r.Status = "approved" }),
	decided("approved with an edit", func(d *desk, r *fakegateway.Request) {
		r.Status, r.Edited = "approved", strings.TrimSuffix(d.edited, "}")+`,"working_folder":"/home/kim/shop"}`
	}),
	decided("an edit that removes an argument", func(d *desk, r *fakegateway.Request) {
		r.Status, r.Edited = "approved", strings.TrimSuffix(strings.TrimSuffix(d.less, "}")+`,"working_folder":"/home/kim/shop"}`, "")
		r.Edited = strings.Replace(r.Edited, "{,", "{", 1)
	}),
	decided("an edit of the folder", func(d *desk, r *fakegateway.Request) {
		r.Status, r.Edited = "approved", strings.TrimSuffix(d.edited, "}")+`,"working_folder":"/srv/production"}`
	}),
	decided("rejected", func(_ *desk, r *fakegateway.Request) { r.Status, r.Reason = "rejected", "Not on a Friday." }),
	decided("expired", func(_ *desk, r *fakegateway.Request) { r.Status = "expired" }),
	decided("withdrawn", func(_ *desk, r *fakegateway.Request) { r.Status, r.Reason = "withdrawn", "not needed" }),
	decided("revoked", func(_ *desk, r *fakegateway.Request) { r.Status = "revoked" }),
	decided("voided", func(_ *desk, r *fakegateway.Request) { r.Status, r.Reason = "voided", "the policy changed" }),
	decided("lost, because the store was restored", func(_ *desk, r *fakegateway.Request) {
		r.Status, r.Disposition, r.Reason = "voided", "outcome-unknown", "it may have been decided, and run: check before it is asked for again"
	}),
	decided("refused by the policy", func(_ *desk, r *fakegateway.Request) { r.Status, r.Reason = "refused", "nobody may approve it" }),
	decided("observed", func(_ *desk, r *fakegateway.Request) { r.Status = "observed" }),
	{name: "nobody decides in time, and the repeat continues", do: func(d *desk) {
		d.undecided(d.event(), d.input(d.event(), d.tool, d.args, ""))
		if r := d.Requests()[0]; r.Status == "pending" {
			d.Change(r.ID, func(r *fakegateway.Request) { r.Status = "approved" })
		}
		d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
		d.ask(d.event())
	}},
	{name: "an approver asks, and the repeat after the answer continues", do: func(d *desk) {
		d.OnAsk(func(r *fakegateway.Request) {
			r.Questions = []map[string]any{{"question": 0, "text": "Why now?", "by": "Team Lead"}}
			if d.event() == d.permission {
				r.Status = "approved"
			}
		})
		d.ask(d.event())
		d.Change("req_1", func(r *fakegateway.Request) { r.Questions[0]["answer"], r.Status = "A fix.", "approved" })
		if d.event() == d.before {
			d.ask(d.event())
		}
	}},
	{machine: true, name: "the gateway can't be reached", do: func(d *desk) {
		d.write("hook.json", `{"address": "http://127.0.0.1:1", "token_file": "token", "profile": "`+string(d.profile())+`", "state": "`+filepath.Join(d.dir, "state")+`"}`, 0o600)
		d.ask(d.event())
	}},
	broken("401", "/requests", func(w http.ResponseWriter) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		fakegateway.Problem(w, 401, "unauthorized", "there is no client with this token")
	}),
	broken("403: no such tool", "/requests", problem(403, "tool_not_allowed", "the policy does not let laptop ask for this tool")),
	broken("403: refused", "/requests", problem(403, "refused", "nobody could approve it")),
	broken("409: key in flight", "/requests", problem(409, "key_in_flight", "another request with this key is being stored")),
	broken("413", "/requests", problem(413, "too_large", "the arguments have more than 64 KiB")),
	broken("422", "/requests", problem(422, "invalid_arguments", "the arguments are not valid")),
	broken("429", "/requests", problem(429, "too_many_pending", "100 requests wait already")),
	broken("500 of a proxy", "/requests", func(w http.ResponseWriter) { http.Error(w, "<h1>no</h1>", http.StatusInternalServerError) }),
	broken("503: paused", "/requests", problem(503, "paused", "everything is paused")),
	broken("a page instead of JSON", "/requests", func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<h1>Sign in</h1>"))
	}),
	broken("broken JSON", "/requests", func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"id":"req_1","status":"appr`))
	}),
	broken("an approval without a hash", "/requests", func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"id":"req_1","status":"approved"}`))
	}),
	broken("an approval of other bytes", "/requests", func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"req_1","status":"approved","args_sha256":"%s","decision":{"type":"approve","by":[]}}`, fakegateway.Hash(`{}`))
	}),
	broken("the connection breaks", "/requests", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }),
	broken("the claim is refused", "/claim", problem(409, "other_arguments", "the hash is that of other arguments")),
	broken("the claim was used", "/claim", problem(409, "already_claimed", "the approval was used up")),
	broken("the claim finds the request pending again, for ever", "/claim", problem(409, "not_approved", "the policy asks for more approvals")),
	broken("the answer to the claim is lost", "/claim", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }),
	asked("no JSON", func(*desk) string { return "rm -rf build" }),
	asked("empty input", func(*desk) string { return "" }),
	asked("JSON and more", func(d *desk) string { return d.input(d.event(), d.tool, d.args, "") + "{}" }),
	asked("an unknown event", func(d *desk) string { return d.input("BeforeEverything", d.tool, d.args, "") }),
	asked("no session", func(d *desk) string {
		return strings.ReplaceAll(d.input(d.event(), d.tool, d.args, ""), `"s-1"`, `""`)
	}),
	asked("no folder", func(d *desk) string {
		return strings.ReplaceAll(d.input(d.event(), d.tool, d.args, ""), `"/home/kim/shop"`, `""`)
	}),
	asked("no tool", func(d *desk) string { return d.input(d.event(), "", d.args, "") }),
	asked("arguments that are a list", func(d *desk) string { return d.input(d.event(), d.tool, `["rm"]`, "") }),
	asked("a member of the input twice", func(d *desk) string {
		return strings.TrimSuffix(d.input(d.event(), d.tool, d.args, ""), "}") + `,"CWD":"/srv/production"}`
	}),
	asked("an argument twice", func(d *desk) string { return d.input(d.event(), d.tool, `{"command":"ls","command":"rm -rf /"}`, "") }),
	asked("an argument that looks like the folder", func(d *desk) string { return d.input(d.event(), d.tool, `{"working_folder":"/tmp"}`, "") }),
	asked("no arguments", func(d *desk) string { return d.input(d.event(), d.tool, `{}`, "") }),
	{machine: true, name: "others can read the token", do: func(d *desk) {
		if err := os.Chmod(filepath.Join(d.dir, "token"), 0o644); err != nil {
			d.Fatal(err)
		}
		d.ask(d.event())
	}},
	{machine: true, name: "no token", do: func(d *desk) {
		os.Remove(filepath.Join(d.dir, "token"))
		d.ask(d.event())
	}},
	{machine: true, name: "a broken configuration", do: func(d *desk) {
		d.write("hook.json", `{"url": "https://gate.example"}`, 0o600)
		d.ask(d.event())
	}},
	{machine: true, name: "the other profile", do: func(d *desk) {
		other := map[Profile]Profile{Control: Comfort, Comfort: Control}[d.profile()]
		d.write("hook.json", fmt.Sprintf(`{"address": %q, "token_file": "token", "profile": %q, "state": %q}`, d.URL, other, filepath.Join(d.dir, "state")), 0o600)
		d.ask(d.event())
	}},
	{machine: true, name: "the state can't be written", do: func(d *desk) {
		d.write("state", "a file", 0o600)
		d.ask(d.event())
	}},
	{name: "it ran", do: func(d *desk) {
		d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
		d.ask(d.event())
		d.run(d.after, d.input(d.after, d.tool, d.args, d.succeeded))
		d.run(d.after, d.input(d.after, d.tool, d.args, d.succeeded)) // after the first report, the hook has no record of the call
	}},
	{name: "it ran and failed", do: func(d *desk) {
		if d.failure == "" {
			return // the agent has no event for a failure
		}
		d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
		d.ask(d.event())
		d.run(d.failure, d.input(d.failure, d.tool, d.args, d.failed))
	}},
	{name: "the agent denies the call after the hook has allowed it", do: func(d *desk) {
		if d.denied == "" || d.profile() != Control {
			return // the settings have no event for this
		}
		d.OnAsk(func(r *fakegateway.Request) { r.Status, r.Automatic = "approved", true })
		d.run(d.denied, d.input(d.denied, d.tool, d.args, `,"reason":"It deletes files."`)) // another hook denied the call, and this hook was not asked
		d.ask(d.event())
		d.run(d.denied, d.input(d.denied, d.tool, d.args, `,"reason":"It deletes files."`))
	}},
	{name: "the report is lost", do: func(d *desk) {
		d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
		d.ask(d.event())
		d.Fault(func(w http.ResponseWriter, _ *http.Request) bool { panic(http.ErrAbortHandler) })
		d.run(d.after, d.input(d.after, d.tool, d.args, d.succeeded))
	}},
}

func (d *desk) profile() Profile {
	if d.event() == d.permission {
		return Comfort
	}
	return Control
}

// TestAnswers compares the answers for each agent in each scenario with testdata.
func TestAnswers(t *testing.T) {
	for _, a := range Agents() {
		profiles := []Profile{Control}
		if a.Comfort {
			profiles = append(profiles, Comfort)
		}
		answers(t, a, profiles, "", scenarios)
		if a.HTTP {
			answers(t, a, profiles, "http-", slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return s.machine }))
		}
	}
}

// answers compares the answers for one agent. The parameter way is the prefix of the profile in the name of the golden
// file.
func answers(t *testing.T, a Agent, profiles []Profile, way string, scenarios []scenario) {
	for _, profile := range profiles {
		t.Run(a.Name+"-"+way+string(profile), func(t *testing.T) {
			t.Parallel()
			var all strings.Builder
			for _, s := range scenarios {
				d := newDesk(t, a.Name, profile)
				if way != "" {
					d.http = &Held{}
				}
				s.do(d)
				fmt.Fprintf(&all, "# %s\n%s", s.name, d.now)
				for _, r := range d.Requests() {
					fmt.Fprintf(&all, "gate %s %s %s %v: %s\n", r.ID, r.Tool, r.Args, r.Accepts, strings.TrimSpace(r.Status+" "+r.Withdrawn+r.Outcome))
				}
				if log := d.Log(); len(log) > 0 {
					fmt.Fprintf(&all, "log  %s\n", strings.Join(log, ", "))
				}
				all.WriteString("\n")
			}
			golden(t, filepath.Join("testdata", a.Name+"-"+way+string(profile)+".txt"), all.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range g {
			if i >= len(w) || g[i] != w[i] {
				t.Fatalf("%s:%d (run with -update, and look at the difference)\ngot  %s\nwant %s", path, i+1, g[i], strings.Join(w[i:min(i+1, len(w))], ""))
			}
		}
		t.Fatalf("%s has more lines", path)
	}
}
