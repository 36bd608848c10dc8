package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"countersign/agent/hook"
	hooksetup "countersign/agent/hook/setup"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/testkit"
	"countersign/internal/testkit/npm"
)

// codingAgent is a coding agent from npm.
type codingAgent struct {
	name    string // the name of the agent's hook, and of the folder in testdata/agents
	large   bool   // a download of more than 100 MB
	program string // an environment variable with the path of the agent, if tests do not install the agent because of its licence
	wire    agentWire
	// command returns the command line that starts the agent without dialogs. The hook is then the only check of a call.
	// If tests do not install the agent, the first parameter is the path of the agent.
	command func(node, modules string) []string
	// settings returns the agent's settings file with the gateway as an MCP server, and environment variables. The agent
	// sends nothing to its maker.
	settings func(model, gate, program string) (file, text string, env []string)
	shell    func(command, folder string) scriptedmodel.Call
	edited   func(command, folder string) string // the arguments on the card of a shell call in the project's folder
	bash     string                              // the name of the shell tool in events
	mcp      string                              // the name of the tool issue_refund of the server gate, for the model
	mcpHook  string                              // the name of the tool issue_refund in events
	silent   []string                            // offered names without a hook event
	failed   string                              // what the agent tells its model after its hook has died; empty: the hook's own text
	http     bool                                // the agent sends its events to the gateway, without a program
}

var codingAgents = []codingAgent{
	{
		name: "gemini", wire: geminiWire, bash: "run_shell_command", mcp: "mcp_gate_issue_refund", mcpHook: "mcp_gate_issue_refund",
		command: func(node, modules string) []string {
			return []string{node, filepath.Join(modules, "@google", "gemini-cli", "bundle", "gemini.js"), "--model", "scripted", "--approval-mode", "yolo", "--prompt"}
		},
		settings: func(model, gate, _ string) (file, text string, env []string) {
			text = fmt.Sprintf(`{
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "privacy": {"usageStatisticsEnabled": false},
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "mcpServers": {"gate": {"type": "http", "url": "%s/mcp", "headers": {"Authorization": "Bearer %s"}}}
}
`, gate, "cs_laptop")
			return ".gemini/settings.json", text, []string{"GEMINI_API_KEY=unused", "GOOGLE_GEMINI_BASE_URL=" + model, "GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_NO_RELAUNCH=true"}
		},
		shell: func(command, folder string) scriptedmodel.Call {
			return scriptedmodel.NewCall("run_shell_command", map[string]string{"command": command, "dir_path": folder})
		},
		edited: func(command, folder string) string {
			return fmt.Sprintf(`{"command":%q,"dir_path":".","working_folder":%q}`, command, folder)
		},
	},
	{
		name: "codex", large: true, wire: codexWire, bash: "Bash", mcp: "mcp__gate/issue_refund", mcpHook: "mcp__gate__issue_refund",
		command: func(_, modules string) []string {
			machine := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
			found, _ := filepath.Glob(filepath.Join(modules, "@openai", "codex-"+runtime.GOOS+"-"+machine, "vendor", "*", "bin", "codex"))
			return append(found, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust")
		},
		settings: func(model, _, program string) (file, text string, env []string) {
			text = fmt.Sprintf(`model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "%s/v1"
wire_api = "responses"
[mcp_servers.gate]
command = %q
args = ["gateway", "--stdio"]
`, model, program)
			// Nothing listens at the proxy's address.
			return ".codex/config.toml", text, []string{"HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1"}
		},
		shell: func(command, folder string) scriptedmodel.Call {
			return scriptedmodel.NewCall("exec_command", map[string]string{"cmd": command, "workdir": folder})
		},
		edited: editedWithFolder,
		silent: []string{"exec_command" /* its events have the name Bash */, "write_stdin"},
	},
	claudeCode(false), claudeCode(true),
	{
		name: "copilot", program: "COUNTERSIGN_COPILOT", failed: "hook exited with code 2", wire: copilotWire, bash: "bash", mcp: "gate-issue_refund", mcpHook: "gate-issue_refund",
		command: func(program, _ string) []string {
			return []string{program, "--allow-all-tools", "--allow-all-paths", "--no-color", "--prompt"}
		},
		settings: func(model, gate, _ string) (file, text string, env []string) {
			text = fmt.Sprintf(`{"mcpServers": {"gate": {"type": "http", "url": "%s/mcp", "headers": {"Authorization": "Bearer %s"}, "tools": ["*"]}}}`, gate, "cs_laptop")
			return ".copilot/mcp-config.json", text, []string{
				"COPILOT_OFFLINE=true", "COPILOT_PROVIDER_BASE_URL=" + model + "/v1", "COPILOT_MODEL=scripted", "COPILOT_AUTO_UPDATE=false",
				"HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1",
			}
		},
		shell:  shellWithoutFolder("bash"),
		edited: editedWithFolder,
	},
}

// claudeCode is Claude Code, with the program of the hooks or with hooks over HTTP.
func claudeCode(http bool) codingAgent {
	a := codingAgent{
		name: "claude-code", program: "COUNTERSIGN_CLAUDE_CODE", wire: claudeWire, bash: "Bash", mcp: "mcp__gate__issue_refund", mcpHook: "mcp__gate__issue_refund",
		command: func(program, _ string) []string {
			return []string{program, "--model", "scripted", "--dangerously-skip-permissions", "--print"}
		},
		settings: func(model, gate, _ string) (file, text string, env []string) {
			text = fmt.Sprintf(`{"mcpServers": {"gate": {"type": "http", "url": "%s/mcp", "headers": {"Authorization": "Bearer %s"}}}}`, gate, "cs_laptop")
			return ".claude.json", text, []string{
				"ANTHROPIC_API_KEY=unused", "ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_SMALL_FAST_MODEL=scripted", "IS_SANDBOX=1" /* for root */, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
				"DISABLE_AUTOUPDATER=1", "HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1",
			}
		},
		shell:  shellWithoutFolder("Bash"),
		edited: editedWithFolder,
		silent: []string{"DeferredToolPlaceholder"}, // not a tool
	}
	if http {
		a.http, a.failed = true, `blocking because onFailure is "block"`
	}
	return a
}

// editedWithFolder is a function for the field edited.
func editedWithFolder(command, folder string) string {
	return fmt.Sprintf(`{"command":%q,"working_folder":%q}`, command, folder)
}

// shellWithoutFolder returns a function for the field shell of an agent whose shell tool has no argument for the folder.
func shellWithoutFolder(tool string) func(command, folder string) scriptedmodel.Call {
	return func(command, folder string) scriptedmodel.Call {
		if folder != "." {
			command = "(cd " + folder + " && " + command + ")" // Claude Code stays in the folder of a cd that is not in parentheses
		}
		return scriptedmodel.NewCall(tool, map[string]string{"command": command})
	}
}

// hookProgram builds the small program for hooks once.
var hookProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "countersign-hook")
	if out, err := exec.Command("go", "build", "-o", path, "countersign/cmd/countersign-hook").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// agentMachine is a machine on which a coding agent works.
type agentMachine struct {
	*testing.T
	home, folder string // the person's home, and the project
	hook         string // the program of the hooks
	model        *agentModel
	cmd          *exec.Cmd
	said         strings.Builder
	gone         chan error
}

// start prepares a machine, installs the hooks and starts the agent.
func (a codingAgent) start(t *testing.T, line []string, gate string, steps func(*agentMachine) []agentStep) *agentMachine {
	t.Helper()
	home, err := filepath.EvalSymlinks(newCoder(t, gate, "cs_laptop", hook.Control).home)
	if err != nil {
		t.Fatal(err)
	}
	m := &agentMachine{T: t, home: home, folder: filepath.Join(home, "shop"), hook: filepath.Join(home, "bin", "countersign-hook"), gone: make(chan error, 1)}
	m.model = openAgentModel(t, a.wire, steps(m))
	program, err := hookProgram()
	if err != nil {
		t.Fatal(err)
	}
	m.put(m.hook, "")
	// If this process itself wrote the program, a child that another test starts at that moment would keep the file busy.
	if out, err := exec.Command("cp", program, m.hook).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	whole := programPath(t)
	file, settings, env := a.settings(m.model.url, gate, whole)
	m.put(filepath.Join(home, file), settings)
	m.put(filepath.Join(m.folder, "backend", "README"), "The backend of a shop.\n")
	env = append(env, "HOME="+home, "PATH="+os.Getenv("PATH"))
	install := exec.Command(m.hook, "install", a.name, "--yes")
	if a.http {
		install.Args = append(install.Args, "--http", gate)
		env = append(env, "COUNTERSIGN_TOKEN=cs_laptop")
	}
	install.Env, install.Dir = env, m.folder
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m.cmd = exec.Command(line[0], append(line[1:len(line):len(line)], "Make the calls.")...)
	m.cmd.Env, m.cmd.Dir = env, m.folder
	m.cmd.Stdout, m.cmd.Stderr = &m.said, &m.said
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	m.cmd.WaitDelay = patience // a grandchild may keep the output open
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		m.gone <- m.cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL) // no effect if the whole group has ended
		<-ended
		if t.Failed() {
			t.Logf("%s said:\n%s", a.name, m.said.String())
		}
	})
	return m
}

// put writes a program or a settings file. A running program can be replaced.
func (m *agentMachine) put(path, text string) {
	m.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o700); err != nil {
		m.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		m.Fatal(err)
	}
}

// ends waits for the end of the agent, and returns the agent's output.
func (m *agentMachine) ends() string {
	m.Helper()
	select {
	case err := <-m.gone:
		if err != nil {
			m.Errorf("the agent ends with: %v", err)
		}
	case <-time.After(patience):
		m.Fatal("the agent does not end")
	}
	return m.said.String()
}

// The method "made" checks which files the agent has made in the project. The file README does not count, because it
// was there before the agent.
func (m *agentMachine) made(want ...string) {
	m.Helper()
	var got []string
	err := fs.WalkDir(os.DirFS(m.folder), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, "README") {
			got = append(got, path)
		}
		return err
	})
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		m.Errorf("the agent made the files %q, want %q: %v", got, want, err)
	}
}

// allAgents reports whether the tests include the large agents and the slow cases.
func allAgents() bool { return os.Getenv("COUNTERSIGN_AGENTS") == "all" }

// Real coding agents run against a scripted model. The agents' hooks ask a real bot, and people decide. The agents also
// call a tool of the gateway over MCP. Codex is a download of 170 MB, and runs only if COUNTERSIGN_AGENTS is "all". The test
// does not install Claude Code and GitHub Copilot CLI, because of their licences. It runs them if an environment variable
// (see codingAgents) has the path of the program.
func TestCodingAgents(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for _, a := range codingAgents {
		installed := os.Getenv(a.program)
		if a.large && !allAgents() || a.program != "" && installed == "" {
			continue
		}
		name := a.name
		if a.http {
			name += "-http"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := a.command(installed, "")
			if installed == "" {
				node, tool := npm.Require(t, "the coding agent "+a.name+" was")
				line = a.command(node, filepath.Join(npm.Installed(t, tool, filepath.Join("testdata", "agents", a.name), "agent-"+a.name), "node_modules"))
			}
			t.Run("decisions", func(t *testing.T) {
				t.Parallel()
				testDecisions(t, a, line)
			})
			t.Run("failures", func(t *testing.T) {
				t.Parallel()
				testFailures(t, a, line)
			})
		})
	}
}

// touch returns a call of the shell that makes a file in a folder of the project.
func (a codingAgent) touch(name, folder string) agentStep {
	return agentStep{call: a.shell("touch "+name+" && echo made "+name, folder)}
}

// testDecisions shows that a call runs only if the policy or a person allows it. If the person edits the arguments, the
// call runs with the edited arguments.
func testDecisions(t *testing.T, a codingAgent, line []string) {
	agent, _ := hook.Find(a.name)
	listed, err := hooksetup.Policy(agent)
	if err != nil {
		t.Fatal(err)
	}
	_, tools, _ := strings.Cut(listed, "\ntools:\n")
	shell := "  " + a.name + "." + a.bash + ": {risk: "
	if !strings.Contains(tools, shell+"high, ") {
		t.Fatalf("the tools lack %s:\n%s", shell, tools)
	}
	tools = strings.Replace(tools, shell+"high, ", shell+`low, rules: [{when: "!args.command.startsWith('touch allowed ')", risk: high}], `, 1)
	// So only the gateway asks people about the calls to this tool, and not also the hook.
	tools += "  " + a.name + "." + a.mcpHook + ": {risk: low}\n"
	p, _, ci := openGateway(t, func(policy string) string {
		policy = strings.Replace(policy, "\ntools:\n", "\ntools:\n"+tools, 1)
		policy = strings.Replace(policy, "send_email, delete_account]", `send_email, delete_account, "*"]`, 1)
		return policy + fmt.Sprintf("  laptop: {title: Sam's laptop, token: \"sha256:%s\", agent: support, owner: U0100, tools: [\"*\"]}\n", tokenHash("cs_laptop"))
	})
	teo := p.watcher("teo")
	refund := func(amount int) agentStep {
		return agentStep{call: scriptedmodel.Call{Name: a.mcp, Arguments: refundOf(fmt.Sprint(amount))}}
	}
	m := a.start(t, line, ci.base, func(*agentMachine) []agentStep {
		return []agentStep{a.touch("allowed", "."), a.touch("approved", "backend"), a.touch("rejected", "."), a.touch("rejected", "."), a.touch("proposed", "."), refund(11), refund(12)}
	})

	m.model.reports("made allowed") // nobody is asked

	folder := "backend"
	if a.program != "" {
		folder = "." // the command changes the folder
	}
	teo.clicks("countersign", "", "Approve", "In "+filepath.Join(m.folder, folder), "touch approved", "Sam's laptop")
	m.model.reports("made approved")
	teo.sees("countersign", "", "touch approved", "The client laptop says", "it ran")

	teo.clicks("countersign", "", "Reject…", "touch rejected")
	teo.fills("reason", "not today")
	m.model.reports("Team Lead rejected this call: not today", "did not run")
	m.model.reports("Team Lead rejected this call: not today") // the result of the repeated call

	teo.clicks("countersign", "", "Modify…", "touch proposed")
	teo.fills("arguments", a.edited("touch changed && echo made changed", m.folder))
	m.model.reports("made changed")
	teo.sees("countersign", "", "touch changed", "The client laptop says", "it ran")

	teo.clicks("countersign", "", "Approve", "Refund of $11.00")
	m.model.reports("refund")
	teo.clicks("countersign", "", "Reject…", "Refund of $12.00")
	teo.fills("reason", "too much")
	m.model.reports("rejected by Team Lead", "too much", "did not run")

	if said := m.ends(); !strings.Contains(said, agentEnds) {
		t.Error("the agent did not say the model's last answer")
	}
	m.made("allowed", "backend/approved", "changed")
	for _, name := range m.model.offered() {
		// The name in events is the name for the model, with or without its namespace.
		space, short, _ := strings.Cut(name, "/")
		listed := slices.ContainsFunc([]string{name, space + short, short}, func(n string) bool { return strings.Contains(tools, "  "+a.name+"."+n+":") })
		if !listed && !slices.Contains(a.silent, name) && !strings.HasPrefix(name, strings.TrimSuffix(a.mcp, "issue_refund")) {
			t.Errorf("%s offers its model the tool %s, which hook policy does not list", a.name, name)
		}
	}
}

// testFailures shows that no call runs in three cases: the gateway refuses the hook's token, the hook's program dies,
// or the program is missing. If COUNTERSIGN_AGENTS is "all", the gateway is down instead of refusing the token.
func testFailures(t *testing.T, a codingAgent, line []string) {
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer gate.Close()
	address := gate.URL
	if allAgents() {
		address = "http://127.0.0.1:1" // the hook tries for 30 seconds to reach the gateway
	}
	m := a.start(t, line, address, func(m *agentMachine) []agentStep {
		dead, missing := a.touch("dead", "."), a.touch("missing", ".")
		dead.before = func() { m.put(m.hook, "#!/bin/sh\nkill -PIPE $$\n") } // the shell does not report this signal
		missing.before = func() { os.Remove(m.hook) }
		return []agentStep{a.touch("unasked", "."), dead, missing}
	})
	if a.http {
		m.model.reports(a.failed)
	} else {
		m.model.reports("Countersign can't be asked", "did not run")
	}
	for range 2 {
		m.model.reports(cmp.Or(a.failed, "The hook of Countersign failed"))
	}
	m.ends()
	m.made()
}
