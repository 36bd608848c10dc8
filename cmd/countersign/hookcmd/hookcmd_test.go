package hookcmd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"countersign/agent/hook"
	"countersign/internal/testkit/fakegateway"
)

// build builds the program once.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "countersign-hook")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "countersign-hook")
	out, err := exec.Command("go", "build", "-o", path, "countersign/cmd/countersign-hook").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := build(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// laptop is a machine with a person's home folder. The program is installed on this machine.
type laptop struct {
	testing.TB
	*fakegateway.Gateway
	home, program string
}

func newLaptop(t testing.TB, profile hook.Profile) *laptop {
	t.Helper()
	built, err := build()
	if err != nil {
		t.Fatal(err)
	}
	l := &laptop{TB: t, Gateway: fakegateway.New(t, "../../../agent/gateway/openapi.json"), home: t.TempDir()}
	l.program = filepath.Join(l.home, "my tools", "countersign-hook")
	program, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	l.write("my tools/countersign-hook", string(program), 0o755)
	l.write(".config/countersign/token", fakegateway.Token+"\n", 0o600)
	l.write(".config/countersign/hook.json", fmt.Sprintf(`{"address": %q, "token_file": "token", "profile": %q}`, l.URL, profile), 0o600)
	return l
}

func (l *laptop) write(name, text string, mode os.FileMode) {
	l.Helper()
	path := filepath.Join(l.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		l.Fatal(err)
	}
}

type result struct {
	out, err string
	code     int
}

// start runs a process with the environment that an agent gives its hooks.
func (l *laptop) start(input string, args ...string) result {
	l.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"HOME=" + l.home, "PATH=/usr/bin:/bin"}
	cmd.Dir = l.home
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		l.Fatal(err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

func (l *laptop) run(input string, args ...string) result {
	l.Helper()
	return l.start(input, append([]string{l.program}, args...)...)
}

// settings has, for each agent, the settings file, the names of the events before and after a call, and an example of
// an event.
var settings = map[string]struct{ file, ask, report, input string }{
	"claude-code": {".claude/settings.json", "PreToolUse", "PostToolUse", `{"session_id":"s","cwd":"/w","hook_event_name":"EVENT","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1"}`},
	"codex":       {".codex/hooks.json", "PreToolUse", "PostToolUse", `{"session_id":"s","turn_id":"t","cwd":"/w","hook_event_name":"EVENT","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1"}`},
	"gemini":      {".gemini/settings.json", "BeforeTool", "AfterTool", `{"session_id":"s","cwd":"/w","hook_event_name":"EVENT","tool_name":"Bash","tool_input":{"command":"ls"}}`},
	"copilot":     {".copilot/hooks/countersign.json", "preToolUse", "postToolUse", `{"sessionId":"s","cwd":"/w","toolName":"Bash","toolArgs":{"command":"ls"}}`},
	"cursor":      {".cursor/hooks.json", "preToolUse", "postToolUse", `{"conversation_id":"s","cwd":"/w","hook_event_name":"EVENT","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1"}`},
}

// The method "commands" reads the commands in a settings file in the same way as the agent does.
func (l *laptop) commands(file, event string) []string {
	l.Helper()
	text, err := os.ReadFile(filepath.Join(l.home, file))
	if err != nil {
		l.Fatal(err)
	}
	type entry struct {
		Command, Bash string
		Hooks         []struct{ Command string }
	}
	var s struct{ Hooks map[string][]entry }
	if err := json.Unmarshal(text, &s); err != nil {
		l.Fatal(err)
	}
	var list []string
	for _, e := range s.Hooks[event] {
		if c := e.Command + e.Bash; c != "" {
			list = append(list, c)
		}
		for _, h := range e.Hooks {
			list = append(list, h.Command)
		}
	}
	return list
}

// TestAsAgentsRunIt installs the hooks of each agent. TestAsAgentsRunIt then runs the commands in the agent's settings.
func TestAsAgentsRunIt(t *testing.T) {
	for _, a := range hook.Agents() {
		t.Run(a.Name, func(t *testing.T) {
			l, s := newLaptop(t, hook.Control), settings[a.Name]
			if r := l.run("", "install", a.Name, "--yes"); r.code != 0 {
				t.Fatalf("%+v", r)
			}
			if r := l.run("", "doctor", a.Name); r.code != 0 {
				t.Errorf("%+v", r)
			}
			ask, report := l.commands(s.file, s.ask), l.commands(s.file, s.report)
			if len(ask) != 1 || len(report) != 1 {
				t.Fatalf("%q, %q", ask, report)
			}
			event := func(name string) string { return strings.Replace(s.input, "EVENT", name, 1) }
			status := "approved"
			l.OnAsk(func(r *fakegateway.Request) { r.Status = status })
			allowed := l.start(event(s.ask), "sh", "-c", ask[0])
			if allowed.code != 0 || a.Name != "codex" && !strings.Contains(allowed.out, `"allow"`) || a.Name == "codex" && allowed.out != "" {
				t.Errorf("approved: %+v", allowed)
			}
			if r := l.start(event(s.report), "sh", "-c", report[0]); r.code != 0 || r.out != "{}\n" {
				t.Errorf("the report: %+v", r)
			}
			if got := l.Requests()[0]; got.Outcome != "succeeded" || got.Args != `{"command":"ls","working_folder":"/w"}` || got.Tool != a.Name+".Bash" {
				t.Errorf("%+v", got)
			}
			status = "rejected"
			if r := l.start(event(s.ask), "sh", "-c", ask[0]); r.code != 0 || !strings.Contains(r.out, `"deny"`) {
				t.Errorf("rejected: %+v", r)
			}
			status = "approved" // otherwise the hook denies the call even if nothing is broken
			for name, path := range map[string]string{"the token is gone": filepath.Join(l.home, ".config/countersign/token"), "the program is gone": l.program} {
				t.Run(name, func(t *testing.T) {
					if err := os.Rename(path, path+".away"); err != nil {
						t.Fatal(err)
					}
					r := l.start(event(s.ask), "sh", "-c", ask[0])
					if err := os.Rename(path+".away", path); err != nil {
						t.Fatal(err)
					}
					denied := r.code == 0 && strings.Contains(r.out, `"deny"`) || r.code == 2 && r.err != ""
					if !denied || strings.Contains(r.out, `"allow"`) {
						t.Errorf("%+v", r)
					}
				})
			}
			if r := l.start(event(s.ask), "sh", "-c", ask[0]); r.code != 0 || strings.Contains(r.out, `"deny"`) {
				t.Errorf("when nothing is broken any more: %+v", r)
			}
		})
	}
}

// TestKilled shows that the agent gets a denial with a text if the hook's process dies.
func TestKilled(t *testing.T) {
	l := newLaptop(t, hook.Control)
	l.run("", "install", "codex", "--yes")
	command := l.commands(".codex/hooks.json", "PreToolUse")[0]
	command = strings.Replace(command, "my tools", "killer", 1)
	for _, death := range []string{"kill -9 $$", "kill -PIPE $$", "exit 1"} { // the shell reports only some of the signals
		l.write("killer/countersign-hook", "#!/bin/sh\n"+death+"\n", 0o755)
		if r := l.start(settings["codex"].input, "sh", "-c", command); r.code != 2 || !strings.Contains(r.err, "the call was denied") {
			t.Errorf("%s: %+v", death, r)
		}
	}
}

// TestInstallAsks shows that the installation first prints the change. The installation makes the change only after the
// answer yes.
func TestInstallAsks(t *testing.T) {
	l := newLaptop(t, hook.Control)
	const before = "{\n  // mine\n  \"theme\": \"dark\"\n}\n"
	l.write(".gemini/settings.json", before, 0o644)
	path := filepath.Join(l.home, ".gemini/settings.json")
	for _, answer := range []string{"", "n\n", "what?\n"} {
		r := l.run(answer, "install", "gemini")
		if now, err := os.ReadFile(path); err != nil || string(now) != before || r.code != 1 || !strings.Contains(r.out, "+    \"BeforeTool\": [") {
			t.Errorf("%q: %+v\n%s", answer, r, now)
		}
	}
	if r := l.run("y\n", "install", "gemini"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := l.run("", "install", "gemini"); r.code != 0 || !strings.Contains(r.out, "there already") {
		t.Errorf("%+v", r)
	}
	if r := l.run("", "uninstall", "gemini", "--yes"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != before {
		t.Errorf("%v\n%s", err, now)
	}
}

// TestProgramBehindALink installs hooks with a program that has a version in its name, and that is started through a
// link. The settings have the link, so the hooks also work with the next version. A second installation and the
// uninstallation find the hooks, even if they are started by another name.
func TestProgramBehindALink(t *testing.T) {
	l := newLaptop(t, hook.Control)
	link, version := filepath.Join(l.home, "bin", "countersign-hook"), filepath.Join(l.home, "countersign-hook-1.4.0")
	if err := errors.Join(os.Rename(l.program, version), os.Mkdir(filepath.Dir(link), 0o755), os.Symlink(version, link)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.home, ".claude/settings.json")
	for name, start := range map[string][]string{
		"by the link's path": {link}, "by the link's name": {"sh", "-c", `PATH="$HOME/bin:$PATH"; countersign-hook "$@"`, "sh"}, "without the link": {version},
	} {
		l.program = start[0]
		run := func(args ...string) result { return l.run("", append(slices.Clone(start[1:]), args...)...) }
		if r := run("install", "claude-code", "--yes"); r.code != 0 {
			t.Fatalf("%s: %+v", name, r)
		}
		first, err := os.ReadFile(path)
		want := "'" + link + "' claude-code"
		if start[0] == version {
			want = "'" + version + "' claude-code"
		}
		if err != nil || !strings.Contains(string(first), want) {
			t.Errorf("%s: the settings have no %s (%v):\n%s", name, want, err, first)
		}
		if r := run("install", "claude-code", "--yes"); r.code != 0 || !strings.Contains(r.out, "there already") {
			t.Errorf("%s: %+v", name, r)
		}
		if r := l.start("", link, "install", "claude-code", "--yes"); r.code != 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if n := len(l.commands(".claude/settings.json", "PreToolUse")); n != 1 {
			t.Errorf("%s: there are %d hooks", name, n)
		}
		if r := l.start("", version, "uninstall", "claude-code", "--yes"); r.code != 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: the settings remain: %v", name, err)
		}
	}
	other := filepath.Join(l.home, "approve") // uninstall would not find hooks of a program with this name
	if err := os.Link(version, other); err != nil {
		t.Fatal(err)
	}
	if r := l.start("", other, "install", "claude-code", "--yes"); r.code != 2 || !strings.Contains(r.err, "must begin with countersign") {
		t.Errorf("%+v", r)
	}
}

// TestInstallHTTP installs hooks that need no program on the machine, and removes them. If the gateway's address would
// send the token unencrypted, the address is refused. An agent that can't block a call over HTTP is refused, too.
func TestInstallHTTP(t *testing.T) {
	l := newLaptop(t, hook.Control)
	const gateway = "https://gate.example.com"
	path := filepath.Join(l.home, ".claude/settings.json")
	if r := l.run("y\n", "install", "claude-code", "--http", gateway, "--token-variable", "CS"); r.code != 0 || !strings.Contains(r.out, `+            "onFailure": "block"`) || !strings.Contains(r.out, "variable CS") {
		t.Errorf("%+v", r)
	}
	if now, err := os.ReadFile(path); err != nil || !strings.Contains(string(now), `"Bearer $CS"`) || strings.Contains(string(now), "countersign-hook") {
		t.Errorf("%s (%v)", now, err)
	}
	if r := l.run("", "doctor", "claude-code"); !strings.Contains(r.out, "has the hooks of the profile control") {
		t.Errorf("%+v", r)
	}
	if r := l.run("y\n", "uninstall", "claude-code"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the settings remain: %v", err)
	}
	for _, wrong := range [][]string{{"claude-code", "--http", "http://gate.example.com"}, {"claude-code", "--http", gateway, "--token-variable", "$CS"}, {"copilot", "--http", gateway}} {
		if r := l.run("y\n", append([]string{"install"}, wrong...)...); r.code != 2 {
			t.Errorf("%q: %+v", wrong, r)
		}
	}
}

func TestExitCodes(t *testing.T) {
	l := newLaptop(t, hook.Control)
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"claude-code --later 1s", 2, "unknown flag"},
		{"claude-code PreToolUse", 2, "takes flags only"},
		{"copilot", 2, "needs EVENT"},
		{"claude-code", 2, "not the expected JSON"},
		{"vim", 2, "unknown command"},
		{"install vim", 2, "not an agent"},
		{"install", 2, "needs AGENT"},
		{"install claude-code --scope team", 2, "scope"},
		{"install claude-code --profile both", 2, "neither"},
		{"install gemini --profile comfort --yes", 2, "does not exist"},
		{"install claude-code --timeout 5s --yes", 2, "between"},
		{"uninstall claude-code", 0, "no hooks"},
		{"doctor claude-code", 1, "no hooks of Countersign"},
		{"doctor", 0, "No agent has hooks"},
		{"policy claude-code", 0, "claude-code.Bash"},
		{"policy vim", 2, "not an agent"},
		{"answer req_1 x text", 2, "number"},
		{"answer req_1 0 text", 3, "not_found"},
	} {
		if r := l.run("", strings.Fields(test.args)...); r.code != test.code || !strings.Contains(r.out+r.err, test.want) {
			t.Errorf("%s: %+v, want %d and %q", test.args, r, test.code, test.want)
		}
	}
}

// TestQuestion answers an approver's question with the command in the denial, on a machine that has only the program
// countersign-hook. A person can run the command. If the agent runs the command, the hook sends the answer.
func TestQuestion(t *testing.T) {
	for _, by := range []string{"a person", "the agent"} {
		l := newLaptop(t, hook.Control)
		l.OnAsk(func(r *fakegateway.Request) {
			r.Questions = []map[string]any{{"question": 0, "text": "Why?", "by": "Lead"}}
		})
		event := strings.Replace(settings["codex"].input, "EVENT", "PreToolUse", 1)
		denied := l.run(event, "codex")
		command := "'" + l.program + "' answer req_1 0 'TEXT'"
		if !strings.Contains(denied.out, command) {
			t.Fatalf("%+v", denied)
		}
		command = strings.Replace(command, "TEXT", "a fix", 1)
		var r result
		if by == "a person" {
			r = l.start("", "sh", "-c", command)
		} else {
			r = l.run(strings.NewReplacer(`"ls"`, fmt.Sprintf("%q", command), "t1", "t2").Replace(event), "codex")
		}
		if got := l.Requests(); r.code != 0 || len(got) != 1 || got[0].Questions[0]["answer"] != "a fix" {
			t.Errorf("%s: %+v, with %+v", by, r, got)
		}
	}
}

// BenchmarkHook measures a whole event for a call that needs no approval. The time includes the start of the process,
// the request and the claim at a gateway on this machine, and the end of the process.
func BenchmarkHook(b *testing.B) {
	l := newLaptop(b, hook.Control)
	l.OnAsk(func(r *fakegateway.Request) { r.Status, r.Automatic = "approved", true })
	i := 0
	for b.Loop() {
		i++
		input := strings.NewReplacer("EVENT", "PreToolUse", `"t1"`, fmt.Sprintf(`"t%d"`, i)).Replace(settings["claude-code"].input)
		if r := l.run(input, "claude-code"); r.code != 0 || r.out != "{}\n" {
			b.Fatalf("%+v", r)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/event")
}
