// Package npmtest runs the programs of docs/sdks.md with the SDKs that are published on npm, and scripted models.
package npmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/agent/client"
	"countersign/internal/testkit/fakegateway"
	"countersign/internal/testkit/npm"
)

const untried = "the adapters for the OpenAI Agents SDK, the AI SDK and LangChain were"

// mostLines is the maximum length of a program in docs/sdks.md, in lines.
const mostLines = 20

// programs returns the programs of docs/sdks.md, by the name of the SDK.
func programs(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/sdks.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, block := range regexp.MustCompile("(?s)```ts\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		name := "without"
		if m := regexp.MustCompile(`countersign-client/(\w+)"`).FindStringSubmatch(block[1]); m != nil {
			name = m[1]
		}
		out[name] = block[1]
	}
	if len(out) != 4 {
		t.Fatalf("the page has %d programs, want 4", len(out))
	}
	return out
}

// compile compiles the client and the programs, and returns the path of Node.js and the folder with the compiled
// programs.
func compile(t *testing.T) (node, dir string) {
	t.Helper()
	node, tool := npm.Require(t, untried)
	packages := filepath.Join(npm.Installed(t, tool, ".", "client"), "node_modules")
	dir = t.TempDir()
	modules := filepath.Join(dir, "node_modules")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(modules, 0o755))
	entries, err := os.ReadDir(packages)
	must(err)
	for _, e := range entries {
		must(os.Symlink(filepath.Join(packages, e.Name()), filepath.Join(modules, e.Name())))
	}
	// The client is in a separate directory beside the programs, as it is after an installation.
	lib := filepath.Join(dir, "client")
	must(os.CopyFS(lib, os.DirFS("../typescript")))
	must(os.Symlink(lib, filepath.Join(modules, "countersign-client")))
	tsc := func(in string, args ...string) {
		t.Helper()
		cmd := exec.Command(node, append([]string{filepath.Join(packages, "typescript", "bin", "tsc")}, args...)...)
		cmd.Dir = in
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("tsc: %v\n%s", err, out)
		}
	}
	tsc(lib)
	must(os.CopyFS(dir, os.DirFS("testdata")))
	for name, program := range programs(t) {
		must(os.WriteFile(filepath.Join(dir, name+".ts"), []byte(program), 0o644))
	}
	must(os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o644))
	must(os.WriteFile(filepath.Join(dir, "tsconfig.json"), []byte(`{"compilerOptions": {"target": "es2022", "module": "nodenext",
		"lib": ["es2023", "dom", "dom.iterable"], "types": ["node"], "strict": true, "skipLibCheck": true}, "include": ["*.ts"]}`), 0o644))
	tsc(dir)
	return node, dir
}

// agent is a program of docs/sdks.md that uses a test gateway.
type agent struct {
	*testing.T
	node, dir, sdk string
	gate           *fakegateway.Gateway
	build          string
	calls          string // JSON: the arguments of the model's calls
	host           *host
}

func (a agent) env() map[string]string {
	return map[string]string{"SDK": a.sdk, "GATE": a.gate.URL, "TOKEN": fakegateway.Token, "BUILD": a.build, "CALLS": a.calls}
}

// killed starts the program in a process of its own, calls the function until, and then kills the process.
func (a agent) killed(until func()) {
	a.Helper()
	cmd := exec.CommandContext(a.Context(), a.node, a.sdk+".js")
	cmd.Dir, cmd.Stdout, cmd.Stderr = a.dir, a.Output(), a.Output()
	cmd.Env = os.Environ()
	for name, value := range a.env() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if err := cmd.Start(); err != nil {
		a.Fatal(err)
	}
	until()
	if err := cmd.Process.Kill(); err != nil {
		a.Fatal(err)
	}
	_ = cmd.Wait() // the error says that the process was killed
}

// start starts the program. The returned function waits for the end of the program.
func (a agent) start() (wait func() ended) {
	a.Helper()
	own := filepath.Join(a.dir, a.build) // the host loads a file once, so each program has its own files
	if err := os.Mkdir(own, 0o755); err != nil {
		a.Fatal(err)
	}
	for _, file := range []string{a.sdk + ".js", "app.js", "script.js", a.sdk + "_model.js"} {
		raw, err := os.ReadFile(filepath.Join(a.dir, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(own, file), raw, 0o644)
		}
		if err != nil {
			a.Fatal(err)
		}
	}
	if err := a.host.to.Encode(map[string]any{"file": filepath.Join(own, a.sdk+".js"), "env": a.env()}); err != nil {
		a.Fatal(err)
	}
	return func() (e ended) {
		a.Helper()
		if err := a.host.from.Decode(&e); err != nil {
			a.Fatalf("the host of the programs: %v\n%s", err, &a.host.errors)
		}
		return e
	}
}

// run runs the program to its end, and returns what it prints.
func (a agent) run() string {
	a.Helper()
	e := a.start()()
	if e.Failed {
		a.Fatal(e.Out)
	}
	return strings.TrimSpace(e.Out)
}

// ended is the result of a program.
type ended struct {
	Out    string
	Failed bool
}

// host is a process that runs the programs of one SDK in sequence.
type host struct {
	to     *json.Encoder
	from   *json.Decoder
	errors bytes.Buffer
}

// newHost starts a host, which ends with the test.
func newHost(t *testing.T, node, dir string) *host {
	t.Helper()
	cmd := exec.Command(node, "host.js")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h := &host{to: json.NewEncoder(in), from: json.NewDecoder(out)}
	cmd.Stderr = &h.errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the process may have ended already
		_ = cmd.Wait()         // the error says that the process was killed
	})
	return h
}

// ran returns the arguments with which the tool ran.
func (a agent) ran() string {
	raw, err := os.ReadFile(filepath.Join(a.dir, a.build+".ran"))
	if err != nil && !os.IsNotExist(err) {
		a.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// asked has the bytes of the model's call. An encoder would change these bytes.
const asked = `{ "service":"shop",  "version":"1.4.2" }`

const plain = `{"service":"shop","version":"1.4.2"}`

// approve approves every request immediately.
func approve(r *fakegateway.Request) { r.Status = "approved" }

func TestClient(t *testing.T) {
	node, dir := compile(t)
	t.Run("SDKs", func(t *testing.T) { sdks(t, node, dir) })
	t.Run("core", func(t *testing.T) { core(t, node, dir) })
}

// sdks tests the programs of docs/sdks.md.
func sdks(t *testing.T, node, dir string) {
	one := fmt.Sprintf("[%q]", asked)
	list := programs(t)
	delete(list, "without") // this program is only compiled
	for sdk, program := range list {
		lines := 0
		for line := range strings.Lines(program) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		if lines > mostLines {
			t.Errorf("%s: the program has %d lines, more than %d", sdk, lines, mostLines)
		}
		host := newHost(t, node, dir)
		scenario := func(name, calls string, decide func(*fakegateway.Request), test func(t *testing.T, a agent)) {
			t.Run(sdk+"/"+name, func(t *testing.T) {
				g := fakegateway.New(t, "../../gateway/openapi.json")
				g.OnAsk(decide)
				test(t, agent{t, node, dir, sdk, g, sdk + "-" + strings.ReplaceAll(name, " ", "-"), calls, host})
			})
		}
		// exchange adds a test case with a call that is decided immediately. heard is a part of the text that the
		// model reads. ran has the arguments of the run, and outcome is the reported outcome.
		exchange := func(name, calls string, decide func(*fakegateway.Request), heard, ran, outcome string) {
			scenario(name, calls, decide, func(t *testing.T, a agent) {
				if got := a.run(); !strings.Contains(got, heard) {
					t.Errorf("the model reads %s\nwant %s", got, heard)
				}
				if got := a.ran(); got != ran {
					t.Errorf("the tool ran with %q, want %q", got, ran)
				}
				if got := a.gate.Requests()[0].Outcome; got != outcome {
					t.Errorf("the outcome is %q, want %q", got, outcome)
				}
			})
		}
		exchange("approved", one, approve, "heard: deployed shop 1.4.2", plain, "succeeded deployed shop 1.4.2")
		scenario("asked", one, func(r *fakegateway.Request) { r.Status = "rejected" }, func(t *testing.T, a agent) {
			a.run()
			got := a.gate.Requests()[0]
			args := plain // the SDKs parse and encode the model's bytes
			if sdk == "openai" {
				args = asked
			}
			if got.Key != a.build+":call_0" || got.Tool != "deploy" || got.Mode != "decide" || got.Args != args || !slices.Equal(got.Accepts, client.All) {
				t.Errorf("the gateway is asked %+v", got)
			}
		})
		exchange("edited", one, func(r *fakegateway.Request) {
			r.Status, r.Edited, r.Reason = "approved", `{"service":"shop","version":"1.4.1"}`, "1.4.2 is broken"
		},
			`An approver changed the arguments of the call to {"service":"shop","version":"1.4.1"}. The reason: 1.4.2 is broken`,
			`{"service":"shop","version":"1.4.1"}`, "succeeded deployed shop 1.4.1")
		scenario("edited to what the tool can't take", one, func(r *fakegateway.Request) { r.Status, r.Edited = "approved", `{"service":7,"version":"1"}` }, func(t *testing.T, a agent) {
			got := a.run()
			if outcome := a.gate.Requests()[0].Outcome; !strings.HasPrefix(outcome, "failed ") || a.ran() != "" {
				t.Errorf("the model reads %s; the outcome is %q; the tool ran with %q", got, outcome, a.ran())
			}
		})
		exchange("rejected", one, func(r *fakegateway.Request) { r.Status, r.Reason = "rejected", "not on a Friday" },
			"heard: The call was rejected by Team Lead, and did not run: not on a Friday", "", "")
		scenario("failed", `["{\"service\":\"broken\",\"version\":\"1\"}"]`, approve, func(t *testing.T, a agent) {
			end := a.start()()
			if end.Failed != (sdk == "langchain") { // LangChain's agents end at the error of a tool
				t.Errorf("it failed: %v\n%s", end.Failed, end.Out)
			}
			if got := a.gate.Requests()[0].Outcome; got != "failed the service is broken" || a.ran() != `{"service":"broken","version":"1"}` {
				t.Errorf("the outcome is %q; the tool ran with %q\n%s", got, a.ran(), end.Out)
			}
		})
		scenario("refused by the policy", one, nil, func(t *testing.T, a agent) {
			a.gate.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
				fakegateway.Problem(w, http.StatusForbidden, "tool_not_allowed", "the client may not ask for deploy")
				return true
			})
			if got := a.run(); !strings.Contains(got, "heard: The call did not run") || !strings.Contains(got, "may not ask for deploy") || a.ran() != "" {
				t.Errorf("the model reads %s; the tool ran %q", got, a.ran())
			}
		})
		scenario("stopped while people think", one, nil, func(t *testing.T, a agent) {
			var list []fakegateway.Request
			a.killed(func() {
				list = a.gate.Await("the call is asked about", func(list []fakegateway.Request) bool { return len(list) == 1 })
				a.gate.AwaitLog("the agent waits", "GET /v1/requests/"+list[0].ID, 1)
			})
			wait := a.start()
			a.gate.AwaitLog("the agent attaches again", "POST /v1/requests", 2)
			a.gate.Change(list[0].ID, approve)
			if end := wait(); end.Failed || !strings.Contains(end.Out, "heard: deployed shop 1.4.2") {
				t.Error(end.Out)
			}
			if n := len(a.gate.Requests()); n != 1 || a.ran() != plain {
				t.Errorf("%d requests; the tool ran with %q", n, a.ran())
			}
		})
		slow := `{"service":"slow","version":"1"}`
		scenario("stopped while the tool runs", fmt.Sprintf("[%q]", slow), approve, func(t *testing.T, a agent) {
			a.killed(func() {
				a.gate.Await("the approval is claimed", func(list []fakegateway.Request) bool { return len(list) == 1 && list[0].Status == "running" })
			})
			before := a.ran()
			if got := a.run(); !strings.Contains(got, "its outcome is not known") || a.ran() != before {
				t.Errorf("the model reads %s; the tool ran with %q", got, a.ran())
			}
		})
		scenario("stopped after the tool ran", one, func(r *fakegateway.Request) { r.Status, r.Outcome = "succeeded", "succeeded deployed shop 1.4.2" }, func(t *testing.T, a agent) {
			if got := a.run(); !strings.Contains(got, "This call ran before, and was not made again. Its result: deployed shop 1.4.2") || a.ran() != "" {
				t.Errorf("the model reads %s; the tool ran with %q", got, a.ran())
			}
		})
		scenario("one of two is rejected", fmt.Sprintf(`[%q, "{\"service\":\"blog\",\"version\":\"2\"}"]`, asked), func(r *fakegateway.Request) {
			r.Status = "approved"
			if strings.Contains(r.Args, "blog") {
				r.Status, r.Reason = "rejected", "not now"
			}
		}, func(t *testing.T, a agent) {
			got := a.run()
			list := a.gate.Requests()
			if !strings.Contains(got, "not now") || len(list) != 2 {
				t.Fatalf("the model reads %s; %+v", got, list)
			}
			shop := list[0]
			if strings.Contains(shop.Args, "blog") {
				shop = list[1]
			}
			if sdk == "langchain" { // LangChain runs none of the calls
				if shop.Withdrawn == "" || a.ran() != "" {
					t.Errorf("the approved call is not withdrawn: %+v; the tool ran with %q", shop, a.ran())
				}
			} else if a.ran() != plain || shop.Outcome != "succeeded deployed shop 1.4.2" {
				t.Errorf("the approved call did not run: %+v, %q", shop, a.ran())
			}
		})
	}
}

// core tests the client without an SDK.
func core(t *testing.T, node, dir string) {
	g := fakegateway.New(t, "../../gateway/openapi.json")
	g.OnAsk(func(r *fakegateway.Request) {
		r.Status = "approved"
		switch r.Key {
		case "question":
			r.Status, r.Questions = "pending", []map[string]any{{"question": 0, "text": "Why now?", "by": "Team Lead"}}
		case "edited":
			r.Edited, r.Reason = `{"n":2}`, "half"
		case "other-bytes":
			r.Edited = `{"n":2}`
		case "running":
			r.Status = "running"
		}
	})
	seen := map[string]int{}
	g.Fault(func(w http.ResponseWriter, req *http.Request) bool {
		id := strings.TrimPrefix(req.URL.Path, "/v1/requests/")
		name, action, _ := strings.Cut(id, "/")
		for _, r := range g.Requests() {
			if r.ID == name {
				name = r.Key
			}
		}
		if req.URL.Path == "/v1/requests" {
			name, action = req.Header.Get("Idempotency-Key"), "ask"
		}
		seen[name+" "+action]++
		switch name + " " + action {
		case "busy ask", "busy claim":
			if seen[name+" "+action] > 1 {
				return false
			}
			fakegateway.Problem(w, http.StatusServiceUnavailable, "unavailable", "the store is busy")
		case "claim-lost claim":
			panic(http.ErrAbortHandler)
		case "report-lost outcome":
			http.Error(w, "<h1>Bad gateway</h1>", http.StatusBadGateway)
		case "other-bytes ask":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"req_x","status":"approved","args_sha256":%q,"decision":{"type":"edit","args_json":"{\"n\":3}","by":[]}}`, fakegateway.Hash(`{"n":2}`))
		default:
			return false
		}
		return true
	})
	cmd := exec.CommandContext(t.Context(), node, "core.js")
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Env = append(os.Environ(), "GATE="+g.URL, "TOKEN="+fakegateway.Token)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	list := g.Await("the question is answered", func(list []fakegateway.Request) bool {
		return len(list) == 2 && list[1].Questions[0]["answer"] != nil
	})
	if got := list[1].Questions[0]["answer"]; got != "question says: because Why now?" {
		t.Errorf("the answer is %q", got)
	}
	g.Change(list[1].ID, approve)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	want := `bytes ran: { "amount" : 12345678901234567890.10, "note":"<a & ü>" }
bytes returns: {"done":"bytes"}
question ran: {}
question returns: {"done":"question"}
busy ran: {}
busy returns: {"done":"busy"}
claim-lost throws: the answer to the claim was lost, so the tool did not run
report-lost ran: {}
warned: countersign: the outcome of req_5 was not reported: the gateway, or something before it, answered 502 Bad Gateway
report-lost returns: {"done":"report-lost"}
edited ran: {"n":2}
edited returns: {"note":"An approver changed the arguments of the call to {\"n\":2}. The reason: half","result":{"done":"edited"}}
other-bytes throws: the gateway approved other arguments than those that it returned
running throws a refusal: The call may have run: its outcome is not known. People are asked what happened. Don't try it in another way.
no-object throws: the arguments are not a JSON object
refused: http://example.com
refused: ftp://127.0.0.1
refused: https://user@example.com
refused: https://example.com?x=1
`
	if got := out.String(); got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
	if seen["claim-lost claim"] != 1 || seen["busy ask"] != 2 || seen["busy claim"] != 2 || seen["other-bytes claim"] != 0 {
		t.Errorf("the gateway saw %v", seen)
	}
	if got := g.Requests()[0]; got.Summary != "tests passed" || got.Outcome != `succeeded {"done":"bytes"}` {
		t.Errorf("%+v", got)
	}
}
