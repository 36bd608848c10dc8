package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/agent/client"
	"countersign/internal/testkit/fakegateway"
)

// allows reports whether an answer lets a call run.
func allows(a Answer) bool {
	return a.Code == 0 && strings.Contains(string(a.Out), `"allow"`)
}

// withID returns the agent's usual call with another id.
func (d *desk) withID(event, id string) string {
	return strings.NewReplacer("toolu_01", id, "call_01", id, "d024a132", id).Replace(d.input(event, d.tool, d.args, ""))
}

// TestRepeatContinues repeats a call that was denied before a decision. The repetition continues the same request,
// although the id of the call is new.
func TestRepeatContinues(t *testing.T) {
	for _, a := range Agents() {
		t.Run(a.Name, func(t *testing.T) {
			d := newDesk(t, a.Name, Control)
			for i := range 3 {
				if got := d.undecided(d.before, d.withID(d.before, fmt.Sprint("id-", i))); allows(got) || !strings.Contains(string(got.Out), "req_1") {
					t.Fatalf("%s", got.Out)
				}
			}
			other := strings.Replace(d.input(d.before, d.tool, d.args, ""), "/home/kim/shop", "/srv/production", 1)
			d.undecided(d.before, other) // the same call in another folder is a different call
			if n := len(d.Requests()); n != 2 {
				t.Fatalf("%d requests", n)
			}
			d.Change("req_1", func(r *fakegateway.Request) { r.Status = "approved" })
			d.run(d.before, d.withID(d.before, "id-3"))
			if got := d.Requests(); got[0].Status != "running" || len(got) != 2 {
				t.Errorf("%+v", got)
			}
			d.run(d.after, d.withID(d.after, "id-3"))
			if got := d.Requests()[0]; got.Outcome != "succeeded" {
				t.Errorf("the outcome of the repeat is %q", got.Outcome)
			}
			d.undecided(d.before, d.withID(d.before, "id-3"))
			if n := len(d.Requests()); n != 3 {
				t.Errorf("an approval was used twice: %d requests", n)
			}
		})
	}
}

// TestStaleRequests repeats calls whose requests have ended. If the request was rejected, the repetition gets the
// rejection. In every other case, the repetition makes a new request.
func TestStaleRequests(t *testing.T) {
	for status, requests := range map[string]int{"expired": 2, "withdrawn": 2, "voided": 2, "revoked": 2, "succeeded": 2, "rejected": 1} {
		t.Run(status, func(t *testing.T) {
			d := newDesk(t, "claude-code", Control)
			d.undecided(d.before, d.withID(d.before, "a"))
			d.Change("req_1", func(r *fakegateway.Request) { r.Status = status })
			d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
			got := d.run(d.before, d.withID(d.before, "b"))
			if len(d.Requests()) != requests || allows(got) != (requests == 2) {
				t.Errorf("%d requests, %s", len(d.Requests()), got.Out)
			}
		})
	}
}

// TestLostRequest repeats a call whose request is lost: the store was restored while the request was open, or the records
// of the approval are lost. The agent first learns that the call may have run. Then the repetition makes a new request.
// The agent is not told about a request whose outcome is unknown because the agent claimed it and did not report.
func TestLostRequest(t *testing.T) {
	for name, lose := range map[string]func(*fakegateway.Request){
		"restored":       func(r *fakegateway.Request) { r.Status = "voided" },
		"records lost":   func(r *fakegateway.Request) { r.Status, r.Lost = "unknown", true },
		"never reported": func(r *fakegateway.Request) { r.Status = "unknown" },
	} {
		for at, newDesk := range map[string]func(*testing.T) *desk{
			"on the machine": func(t *testing.T) *desk { return newDesk(t, "claude-code", Control) },
			"over HTTP":      func(t *testing.T) *desk { return newRemoteDesk(t, Control) },
		} {
			t.Run(name+" "+at, func(t *testing.T) {
				d := newDesk(t)
				d.undecided(d.before, d.withID(d.before, "a"))
				d.Change("req_1", func(r *fakegateway.Request) {
					lose(r)
					r.Disposition, r.Reason = "outcome-unknown", "check before it is asked for again"
				})
				d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
				if name != "never reported" {
					got := d.run(d.before, d.withID(d.before, "b"))
					if out := string(got.Out); allows(got) || strings.Contains(out, "did not run") || !strings.Contains(out, "It is not known whether this call ran: check before") {
						t.Errorf("%s", out)
					}
					if n := len(d.Requests()); n != 1 {
						t.Errorf("%d requests before the agent knows of the loss", n)
					}
				}
				if got := d.run(d.before, d.withID(d.before, "c")); !allows(got) || len(d.Requests()) != 2 {
					t.Errorf("%d requests, %s", len(d.Requests()), got.Out)
				}
				d.run(d.after, d.withID(d.after, "c"))
				if got := d.run(d.before, d.withID(d.before, "d")); !allows(got) || len(d.Requests()) != 3 { // the agent is told once
					t.Errorf("%d requests, %s", len(d.Requests()), got.Out)
				}
			})
		}
	}
}

// TestSameCallsAtOnce checks that identical concurrent calls never share an approval. If the agent has no ids, the
// calls share a request until the request is claimed.
func TestSameCallsAtOnce(t *testing.T) {
	for _, agent := range []string{"claude-code", "gemini"} {
		t.Run(agent, func(t *testing.T) {
			d := newDesk(t, agent, Control)
			d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
			var wg sync.WaitGroup
			answers := make([]Answer, 3)
			for i := range answers {
				wg.Go(func() {
					answers[i] = Run(t.Context(), Options{
						Agent: agent, Timeout: time.Hour, Input: strings.NewReader(d.withID(d.before, fmt.Sprint(i))), Getenv: func(name string) string { return d.env[name] },
					})
				})
			}
			wg.Wait()
			allowed := 0
			for _, a := range answers {
				if allows(a) {
					allowed++
				}
			}
			running := 0
			for _, r := range d.Requests() {
				if r.Status == "running" {
					running++
				}
			}
			if allowed != running || allowed == 0 || agent == "claude-code" && allowed != 3 {
				t.Errorf("%d calls run with %d claims", allowed, running)
			}
		})
	}
}

// TestSharedRecord checks two processes that share a record because they have the same call. The process that claims
// the approval lets its call run, even if the other process has removed the record.
func TestSharedRecord(t *testing.T) {
	d := newDesk(t, "claude-code", Control)
	d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
	d.Fault(func(_ http.ResponseWriter, req *http.Request) bool {
		if strings.HasSuffix(req.URL.Path, "/claim") {
			records, err := filepath.Glob(filepath.Join(d.dir, "state", "*"+open))
			if err != nil || len(records) != 1 || os.Remove(records[0]) != nil {
				t.Errorf("the records are %s (%v)", records, err)
			}
		}
		return false
	})
	if got := d.run(d.before, d.input(d.before, d.tool, d.args, "")); !allows(got) {
		t.Errorf("%s", got.Out)
	}
	d.run(d.after, d.input(d.after, d.tool, d.args, ""))
	if r := d.Requests()[0]; r.Outcome != "succeeded" {
		t.Errorf("the request is %s, its outcome is %q", r.Status, r.Outcome)
	}
}

// TestStopped checks the state of a request after the agent has ended the hook.
func TestStopped(t *testing.T) {
	for profile, want := range map[Profile]string{Control: "pending ", Comfort: "withdrawn " + answeredHere} {
		t.Run(string(profile), func(t *testing.T) {
			d := newDesk(t, "claude-code", profile)
			event := map[Profile]string{Control: d.before, Comfort: d.permission}[profile]
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				d.Await("the request arrives", func(list []fakegateway.Request) bool { return len(list) == 1 })
				stop()
			}()
			if a := d.runIn(ctx, event, d.input(event, d.tool, d.args, "")); allows(a) {
				t.Errorf("%s", a.Out)
			}
			if r := d.Requests()[0]; r.Status+" "+r.Withdrawn != want {
				t.Errorf("%s %s, want %s", r.Status, r.Withdrawn, want)
			}
		})
	}
}

// TestLocalAnswers checks that a request ends when the user answers the agent's dialog. The agents report the user's
// answer in different ways.
func TestLocalAnswers(t *testing.T) {
	for _, a := range Agents() {
		if !a.Comfort {
			continue
		}
		for _, how := range []string{"the call ran", "the turn ended"} {
			t.Run(a.Name+", "+how, func(t *testing.T) {
				d := newDesk(t, a.Name, Comfort)
				answer := make(chan Answer)
				go func() { answer <- d.ask(d.permission) }()
				d.Await("the request arrives", func(list []fakegateway.Request) bool { return len(list) == 1 })
				other := &desk{T: t, Gateway: d.Gateway, talk: d.talk, agent: d.agent, dir: d.dir, env: d.env, now: &strings.Builder{}}
				for d.Requests()[0].Status == "pending" { // wait until the hook has stored the request's id
					if how == "the call ran" {
						other.run(d.after, d.input(d.after, d.tool, d.args, d.succeeded))
					} else {
						other.run(d.ended, d.input(d.ended, d.tool, d.args, ""))
					}
				}
				if got := <-answer; allows(got) || got.Code != 0 {
					t.Errorf("%+v", got)
				}
				if r := d.Requests()[0]; r.Status != "withdrawn" || r.Withdrawn != answeredHere {
					t.Errorf("%s %s", r.Status, r.Withdrawn)
				}
			})
		}
	}
}

// TestControlIgnoresTheEnd checks that in the profile control, a request continues to wait after the end of the turn.
func TestControlIgnoresTheEnd(t *testing.T) {
	d := newDesk(t, "claude-code", Control)
	d.undecided(d.before, d.input(d.before, d.tool, d.args, ""))
	d.run(d.ended, d.input(d.ended, d.tool, d.args, ""))
	if r := d.Requests()[0]; r.Status != "pending" {
		t.Errorf("%s", r.Status)
	}
}

// TestNoEnd checks that the hook waits for the end of its input only until its timeout.
func TestNoEnd(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	a := Run(t.Context(), Options{Agent: "codex", Timeout: 20 * time.Millisecond, Input: r, Getenv: func(string) string { return "" }})
	if a.Code != blocked || !strings.Contains(a.Err, "no end") {
		t.Errorf("%+v", a)
	}
}

func TestUnknownAgent(t *testing.T) {
	if a := Run(t.Context(), Options{Agent: "vim", Input: strings.NewReader("{}")}); a.Code != blocked || a.Err == "" {
		t.Errorf("%+v", a)
	}
}

// TestReportComesLater checks an outcome that could not be reported at first. The hook of a later event reports the
// outcome once, even if the event belongs to another session.
func TestReportComesLater(t *testing.T) {
	for _, failed := range []bool{false, true} {
		d := newDesk(t, "claude-code", Control)
		d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
		d.ask(d.before)
		event, extra, want := d.after, d.succeeded, "succeeded"
		if failed {
			event, extra, want = d.failure, d.failed, "failed exit status 1"
		}
		d.Fault(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		if a := d.run(event, d.input(event, d.tool, d.args, extra)); a.Err == "" {
			t.Error("the hook does not say that it could not report")
		}
		other := strings.Replace(d.input(d.before, "Write", `{"file_path":"/a"}`, ""), "s-1", "s-2", 1)
		d.run(d.before, other) // the gateway is unreachable
		d.Fault(func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.HasSuffix(req.URL.Path, "/outcome") {
				return false
			}
			fakegateway.Problem(w, http.StatusTooManyRequests, "too_many_requests", "Wait.")
			return true
		})
		d.run(d.before, other)
		if r := d.Requests()[0]; r.Outcome != "" {
			t.Fatalf("reported as %q", r.Outcome)
		}
		d.Fault(nil)
		d.run(d.before, other)
		if r := d.Requests()[0]; strings.TrimSpace(r.Outcome) != want {
			t.Errorf("reported as %q, want %q", r.Outcome, want)
		}
		d.run(d.before, other)
		reports := 0
		for _, line := range d.Log() {
			if strings.HasSuffix(line, "/outcome") {
				reports++
			}
		}
		if left, err := filepath.Glob(filepath.Join(d.dir, "state", "*"+unreported)); err != nil || len(left) > 0 || reports != 4 {
			t.Errorf("%d reports (want 2 that were cut off, 1 that was refused and 1 that arrived); left %v, %v", reports, left, err)
		}
	}
}

// TestRanAsOlderVersions compares the fingerprint of compact arguments with the fingerprint that older versions made. So a
// bot can continue the requests of a bot of another version.
func TestRanAsOlderVersions(t *testing.T) {
	const args = `{"command":"cat <a> && echo é","n":10,"wait":true}`
	if got, want := ranAs("shell", json.RawMessage(args)), fingerprint("shell", args); got != want {
		t.Errorf("the fingerprint is %s, want %s", got, want)
	}
}

// TestRewrittenEdit reports the outcome of a call that an approver has changed. The agent reports the same arguments in
// other bytes than the approver wrote. Without ids, the hook recognizes the call by the arguments.
func TestRewrittenEdit(t *testing.T) {
	const edit = `{"description": "Deploy \u003cthe shop>", "wait": 1e3, "command": "make deploy"}`
	for _, agent := range []string{"gemini", "copilot"} {
		for reported, want := range map[string]string{
			`{"command":"make deploy","wait":1000,"description":"Deploy <the shop>"}`:  "succeeded",
			`{"command":"make deploy","wait":1001,"description":"Deploy <the shop>"}`:  "",
			`{"command":"make  deploy","wait":1000,"description":"Deploy <the shop>"}`: "",
		} {
			d := newDesk(t, agent, Control)
			d.OnAsk(func(r *fakegateway.Request) {
				r.Status, r.Edited = "approved", strings.TrimSuffix(edit, "}")+`,"working_folder":"/home/kim/shop"}`
			})
			if a := d.ask(d.before); !allows(a) {
				t.Fatalf("%s: %s", agent, a.Out)
			}
			d.run(d.after, d.input(d.after, d.tool, reported, d.succeeded))
			if r := d.Requests()[0]; r.Outcome != want {
				t.Errorf("%s reported %s: the outcome is %q, want %q", agent, reported, r.Outcome, want)
			}
		}
	}
}

// TestLastOfIdenticalCalls reports the outcome of a call that the agent repeated, because the first call did not run
// although its approval was claimed. Without ids, the outcome belongs to the last call.
func TestLastOfIdenticalCalls(t *testing.T) {
	for _, agent := range []string{"gemini", "copilot"} {
		d := newDesk(t, agent, Control)
		d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
		d.ask(d.before)
		d.ask(d.before)
		d.run(d.after, d.input(d.after, d.tool, d.args, d.succeeded))
		if r := d.Requests(); len(r) != 2 || r[0].Outcome != "" || r[1].Outcome != "succeeded" {
			t.Errorf("%s: %+v", agent, r)
		}
	}
}

// TestOldRecords checks that records are deleted after keepRecords.
func TestOldRecords(t *testing.T) {
	d := newDesk(t, "claude-code", Control)
	d.undecided(d.before, d.input(d.before, d.tool, d.args, ""))
	files, err := filepath.Glob(filepath.Join(d.dir, "state", "*"+left))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	old := time.Now().Add(-keepRecords - time.Hour)
	if err := os.Chtimes(files[0], old, old); err != nil {
		t.Fatal(err)
	}
	d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
	d.run(d.before, strings.Replace(d.input(d.before, d.tool, d.args, ""), "rm -rf", "ls", 1))
	if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

func TestFolderArgument(t *testing.T) {
	for _, test := range []struct{ input, want string }{
		{`{}`, `{"working_folder":"/a b"}`},
		{` { } `, `{ "working_folder":"/a b"}`},
		{`{ "n" : 1.0 , "t":"<é & \u0041>" }`, `{ "n" : 1.0 , "t":"<é & \u0041>","working_folder":"/a b"}`},
		{`{"deep":{"working_folder":1}}`, `{"deep":{"working_folder":1},"working_folder":"/a b"}`},
	} {
		got, err := withFolder(json.RawMessage(test.input), "/a b")
		if err != nil || string(got) != test.want || !json.Valid(got) {
			t.Errorf("%s: %s, %v", test.input, got, err)
		}
		back, err := withoutFolder(got, "/a b")
		if err != nil || compact(t, back) != compact(t, []byte(test.input)) {
			t.Errorf("%s comes back as %s, %v", test.input, back, err)
		}
	}
	for _, wrong := range []string{``, `[]`, `{`, `null`, `{"working_folder":""}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`} {
		if got, err := withFolder(json.RawMessage(wrong), "/a"); err == nil {
			t.Errorf("%s becomes %s", wrong, got)
		}
	}
	for _, wrong := range []string{`{}`, `{"working_folder":"/b"}`, `{"working_folder":1}`} {
		if got, err := withoutFolder(json.RawMessage(wrong), "/a"); err == nil {
			t.Errorf("%s becomes %s", wrong, got)
		}
	}
}

// TestChosenFolder shows that the working folder is the folder that the call itself chooses. An approver can't change
// this folder.
func TestChosenFolder(t *testing.T) {
	for _, test := range []struct{ agent, tool, input, want string }{
		{"gemini", "run_shell_command", `{"command":"ls","dir_path":"/srv/production"}`, "/srv/production"},
		{"gemini", "run_shell_command", `{"command":"ls","dir_path":"../bank/."}`, "/home/kim/bank"},
		{"gemini", "run_shell_command", `{"command":"ls","dir_path":""}`, "/home/kim/shop"},
		{"gemini", "run_shell_command", `{"command":"ls","dir_path":7}`, "/home/kim/shop"},
		{"gemini", "glob", `{"pattern":"*","dir_path":"/srv"}`, "/home/kim/shop"},
		{"cursor", "Shell", `{"command":"ls","cwd":"/srv/production"}`, "/srv/production"},
		{"cursor", "Shell", `{"command":"ls","working_directory":"/srv/production"}`, "/srv/production"},
		{"cursor", "Shell", `{"command":"ls","cwd":"","working_directory":"../bank"}`, "/home/kim/bank"},
		{"cursor", "Shell", `{"command":"ls","cwd":"/srv/production/","working_directory":"/srv/production"}`, "/srv/production"},
		{"claude-code", "Bash", `{"command":"ls","dir_path":"/srv"}`, "/home/kim/shop"},
	} {
		d := newDesk(t, test.agent, Control)
		edited := ""
		d.OnAsk(func(r *fakegateway.Request) {
			r.Status, r.Edited = "approved", edited
		})
		whole := strings.TrimSuffix(test.input, "}") + fmt.Sprintf(`,"working_folder":%q}`, test.want)
		got := d.run(d.before, d.input(d.before, test.tool, test.input, ""))
		if r := d.Requests()[0]; !allows(got) || r.Args != whole {
			t.Errorf("%s %s: %s, with the request %s", test.agent, test.input, got.Out, r.Args)
		}
		if test.want != "/srv/production" {
			continue
		}
		edited = strings.Replace(whole, "/srv/production", "/srv/staging", 1)
		if got := d.run(d.before, d.input(d.before, test.tool, test.input, "")); allows(got) || !strings.Contains(string(got.Out), "changed the working folder") {
			t.Errorf("%s after the edit %s: %s", test.agent, edited, got.Out)
		}
	}
}

// TestTwoFolders checks that a call with two different folders is denied, because the agent may use either of them.
func TestTwoFolders(t *testing.T) {
	d := newDesk(t, "cursor", Control)
	d.OnAsk(func(r *fakegateway.Request) { r.Status = "approved" })
	got := d.run(d.before, d.input(d.before, d.tool, `{"command":"ls","cwd":"/srv/staging","working_directory":"/srv/production"}`, ""))
	if allows(got) || !strings.Contains(string(got.Out), "different folders") || len(d.Requests()) != 0 {
		t.Errorf("%s, with %d requests", got.Out, len(d.Requests()))
	}
}

func compact(t *testing.T, raw []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// FuzzInput checks that the hook lets no call run for any input, while the gateway is unreachable.
func FuzzInput(f *testing.F) {
	for _, a := range Agents() {
		talk := talks[a.Name]
		for _, event := range []string{talk.before, talk.permission, talk.after, talk.ended} {
			if event != "" {
				f.Add(a.Name, event, talk.input(event, talk.tool, talk.args, ""))
			}
		}
	}
	f.Add("codex", "", `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"Bash","tool_input":null}`)
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(fakegateway.Token), 0o600); err != nil {
		f.Fatal(err)
	}
	env := map[string]string{
		"COUNTERSIGN_HOOK_ADDRESS": "http://127.0.0.1:1", "COUNTERSIGN_HOOK_TOKEN_FILE": filepath.Join(dir, "token"), "COUNTERSIGN_HOOK_STATE": filepath.Join(dir, "state"), "HOME": dir,
	}
	f.Fuzz(func(t *testing.T, agent, event, input string) {
		a := Run(t.Context(), Options{Agent: agent, Event: event, Timeout: time.Hour, Input: strings.NewReader(input), Getenv: func(name string) string { return env[name] }, patience: time.Nanosecond})
		if allows(a) {
			t.Fatalf("%+v", a)
		}
		if a.Code == 0 && len(a.Out) == 0 || a.Code != 0 && a.Code != blocked {
			t.Fatalf("%+v", a) // if the hook prints nothing, Codex lets the call run
		}
		gate, err := client.New("http://127.0.0.1:1", fakegateway.Token)
		if err != nil {
			t.Fatal(err)
		}
		d := Delivery{Agent: "claude-code", Profile: Control, Body: []byte(input), Gate: gate, Requests: atGateway{&desk{T: t, Gateway: &fakegateway.Gateway{}}}, Held: &Held{}}
		if out := serve(t.Context(), d, time.Nanosecond); !json.Valid(out) || strings.Contains(string(out), `"allow"`) {
			t.Fatalf("over HTTP: %s", out)
		}
	})
}
