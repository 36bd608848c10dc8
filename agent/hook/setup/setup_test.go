package setup

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/agent/hook"
	"countersign/internal/testkit/fakegateway"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func agents(t *testing.T, each func(t *testing.T, a hook.Agent, profile hook.Profile)) {
	for _, a := range hook.Agents() {
		profiles := []hook.Profile{hook.Control}
		if a.Comfort {
			profiles = append(profiles, hook.Comfort)
		}
		for _, p := range profiles {
			t.Run(a.Name+"-"+string(p), func(t *testing.T) { each(t, a, p) })
		}
	}
}

// machine returns a machine with a home folder and a project. Claude Code on this machine knows all events of its hooks.
func machine(t *testing.T) Machine {
	t.Helper()
	root := t.TempDir()
	claude(t, "echo '2.1.332 (Claude Code)'")
	env := map[string]string{}
	return Machine{Home: filepath.Join(root, "home"), Folder: filepath.Join(root, "shop"), Managed: filepath.Join(root, "etc"), Getenv: func(name string) string { return env[name] }}
}

func target(t *testing.T, m Machine, a hook.Agent, scope Scope, profile hook.Profile) Target {
	t.Helper()
	tg, err := NewTarget(a, scope, m.Home, m.Folder, m.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	tg.Profile, tg.Program = profile, []string{program(t), "hook"}
	return tg
}

// program creates an executable with the name countersign, and returns its path.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "it's here", "countersign")
	write(t, path, "#!/bin/sh\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func do(t *testing.T, plan func() (Change, error)) Change {
	t.Helper()
	c, err := plan()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestInstallGolden compares the settings of each agent with testdata.
func TestInstallGolden(t *testing.T) {
	agents(t, func(t *testing.T, a hook.Agent, profile hook.Profile) {
		m := machine(t)
		tg := target(t, m, a, User, profile)
		tg.Program[0] = "/usr/local/bin/countersign"
		c := do(t, tg.Install)
		path := filepath.Join("testdata", a.Name+"-"+string(profile)+".json")
		if *update {
			write(t, path, c.After)
		}
		if want := read(t, path); c.After != want || read(t, tg.Path) != want {
			t.Errorf("got\n%s\nwant\n%s", c.After, want)
		}
		if !json.Valid([]byte(c.After)) {
			t.Errorf("it is not JSON")
		}
	})
}

// foreign has settings of other programs. An installation must not change them.
var foreign = map[string]string{
	"none":   "",
	"empty":  "{}",
	"spaced": "{\n\n}\n",
	"hooks of others": `{
    "model": "m", // the model
    /* {"hooks": 1} */
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh \"a, b\""}]}
        ],
        "preToolUse": [ { "command": "./check.sh" } ],
        "BeforeTool": [],
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]
    },
    "permissions": {"deny": ["Read(.env)"]}
}
`,
	"tabs and a comma at the end": "{\n\t\"theme\": \"dark\",\n\t\"hooks\": {\n\t\t\"PostToolUse\": [\n\t\t\t{\"hooks\": [{\"command\": \"x\"}]},\n\t\t],\n\t},\n}",
	"one line":                    `{"a":{"b":[1,2.50,"}"]},"hooks":{}}`,
	"comments in empty values":    "{\n  \"hooks\": { // nothing here yet\n    \"PreToolUse\": [ /* no hooks yet */ ],\n    \"preToolUse\": [\n      // none of Cursor\n    ],\n    \"BeforeTool\": []\n  }\n}\n",
	"a comment in an empty file":  "{ // nothing here yet\n}\n",
	"our words":                   `{"note": "countersign hook claude-code", "hooks": {"PreToolUse": [{"hooks": [{"command": "echo countersign hook vim"}]}]}}`,
}

// TestRoundTrip checks that an installation keeps the settings of other programs. After an uninstallation, the file
// is the same as before, byte for byte.
func TestRoundTrip(t *testing.T) {
	agents(t, func(t *testing.T, a hook.Agent, profile hook.Profile) {
		for name, text := range foreign {
			t.Run(name, func(t *testing.T) {
				m := machine(t)
				tg := target(t, m, a, Project, profile)
				if name != "none" {
					write(t, tg.Path, text)
				}
				first := do(t, tg.Install)
				if first.Empty() || !strings.Contains(first.Diff(), "+") {
					t.Errorf("nothing changes")
				}
				rest := first.After
				for line := range strings.Lines(text) { // every line of other programs is still in the file
					if line = strings.TrimRight(line, "], \n"); len(line) > 12 && !strings.Contains(rest, line) && name != "one line" && name != "our words" {
						t.Errorf("%q is gone:\n%s", line, rest)
					}
				}
				again, err := tg.Install()
				if err != nil || !again.Empty() {
					t.Errorf("installing again changes:\n%s%v", again.Diff(), err)
				}
				if found, err := m.Examine(t.Context(), a); !err || failed(found) {
					t.Errorf("%+v", found)
				}
				if name != "none" && read(t, tg.Path+BackupSuffix) != text {
					t.Errorf("there is no copy of the settings")
				}
				do(t, tg.Uninstall)
				if name == "none" {
					if _, err := os.Stat(tg.Path); !os.IsNotExist(err) {
						t.Errorf("a file is left: %v", err)
					}
					return
				}
				got := read(t, tg.Path)
				for line := range strings.Lines(text) {
					if _, comment, ok := strings.Cut(line, "// "); ok && !strings.Contains(got, strings.TrimSpace(comment)) {
						t.Errorf("the comment %q is gone:\n%s", comment, got)
					}
				}
				// Uninstall also removes empty lists of other programs.
				if got != text && !strings.Contains(text, `[]`) && !strings.Contains(text, `{}}`) {
					t.Errorf("got\n%s\nwant\n%s", got, text)
				}
				if info, err := os.Stat(tg.Path); err != nil || info.Mode().Perm() != 0o640 {
					t.Errorf("%v, %v", info.Mode(), err)
				}
			})
		}
	})
}

func failed(list []Finding) bool {
	for _, f := range list {
		if f.State == Fail {
			return true
		}
	}
	return false
}

// TestUninstallAfterChanges checks that an uninstallation keeps all other changes since the installation.
func TestUninstallAfterChanges(t *testing.T) {
	m := machine(t)
	a, _ := hook.Find("claude-code")
	tg := target(t, m, a, User, hook.Control)
	write(t, tg.Path, "{\n  \"model\": \"m\"\n}\n")
	do(t, tg.Install)
	write(t, tg.Path, strings.Replace(read(t, tg.Path), `"m"`, `"n"`, 1))
	do(t, tg.Uninstall)
	if got := read(t, tg.Path); got != "{\n  \"model\": \"n\"\n}\n" {
		t.Errorf("%q", got)
	}
	if c, err := tg.Uninstall(); err != nil || !c.Empty() {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestRefusedSettings(t *testing.T) {
	a, _ := hook.Find("claude-code")
	for _, text := range []string{"[]", "{", `{"hooks": []}`, `{"hooks": {"PreToolUse": {}}}`, `{"hooks": {"PreToolUse": 1}}`, `{"a" 1}`, `{"a": tru}`, `{} {}`, `{"a": "`, "{/*", "{/*/}", `{"hooks": {}, "hooks": {}}`} {
		m := machine(t)
		tg := target(t, m, a, User, hook.Control)
		write(t, tg.Path, text)
		if c, err := tg.Install(); err == nil {
			t.Errorf("%s becomes %s", text, c.After)
		}
		if read(t, tg.Path) != text {
			t.Errorf("%s changed", text)
		}
	}
	// An agent reads only the last of two members with the same name, so nobody can say which hooks are installed.
	m := machine(t)
	tg := target(t, m, a, User, hook.Control)
	do(t, tg.Install)
	write(t, tg.Path, strings.Replace(read(t, tg.Path), "{", `{"hooks": {},`, 1))
	if c, err := tg.Uninstall(); err == nil || !strings.Contains(err.Error(), `the key "hooks" occurs twice`) {
		t.Errorf("%+v, %v", c, err)
	}
	if list, _ := m.Examine(t.Context(), a); !failed(list) {
		t.Errorf("%+v", list)
	}
	gemini, _ := hook.Find("gemini")
	if _, err := target(t, machine(t), gemini, User, hook.Comfort).Install(); err == nil {
		t.Errorf("Gemini CLI has the profile comfort")
	}
	short := target(t, machine(t), a, User, hook.Control)
	short.Timeout = time.Second
	if _, err := short.Install(); err == nil {
		t.Errorf("a timeout of a second is accepted")
	}
}

func TestChangedMeanwhile(t *testing.T) {
	m := machine(t)
	a, _ := hook.Find("cursor")
	tg := target(t, m, a, User, hook.Control)
	write(t, tg.Path, "{}")
	c, err := tg.Install()
	if err != nil {
		t.Fatal(err)
	}
	write(t, tg.Path, `{"version": 1}`)
	if err := c.Apply(); err == nil || read(t, tg.Path) != `{"version": 1}` {
		t.Errorf("%v", err)
	}
}

// TestExamine breaks the settings in each way that would let calls run without a decision. Examine must find each
// fault.
func TestExamine(t *testing.T) {
	type harm struct{ agent, from, to, want string }
	for _, h := range []harm{
		{"claude-code", `"onFailure": "block"`, `"onFailure": "continue"`, "onFailure"},
		{"claude-code", `"timeout": 3600`, `"timeout": 60`, "they must be equal"},
		{"claude-code", `"timeout": 3600`, `"later": 3600`, "has no timeout"},
		{"claude-code", " || { echo 'The hook of Countersign failed, so the call was denied.' >&2; exit 2; }", "", "exit 2"},
		{"codex", "|| { echo 'The hook of Countersign failed, so the call was denied.' >&2; exit 2; }", "|| exit 2", "exit 2"},
		{"claude-code", `"PreToolUse"`, `"Notification"`, "PreToolUse is missing"},
		{"claude-code", `"PostToolUse"`, `"Notification"`, "PostToolUse is missing"},
		{"claude-code", `"type": "command"`, `"type": "command", "async": true`, "async"},
		{"claude-code", `"type": "command"`, `"type": "command", "if": "Bash(git *)"`, "condition"},
		{"claude-code", `"PreToolUse": [`, `"PermissionRequest": [{"hooks": [{"command": "countersign hook claude-code"}]}], "PreToolUse": [`, "both profiles"},
		{"claude-code", `{`, `{"disableAllHooks": true,`, "turns hooks off"},
		{"claude-code", "/countersign' hook", "/gone/countersign' hook", "does not exist"},
		{"cursor", `"failClosed": true`, `"failClosed": false`, "failClosed"},
		{"cursor", `"failClosed": true`, `"failClosed": true, "matcher": "Shell"`, "matcher"},
		{"gemini", `"timeout": 3600000`, `"timeout": 3600`, "they must be equal"},
		{"gemini", `"matcher": "*"`, `"matcher": "write_.*"`, "matcher"},
		{"gemini", `{`, `{"hooksConfig": {"enabled": false},`, "turns hooks off"},
		{"gemini", `{`, `{"hooksConfig": {"disabled": ["other", "countersign"]},`, "hooksConfig.disabled names countersign"},
		{"copilot", `"timeoutSec": 3600`, `"wait": 3600`, "has no timeout"},
		{"copilot", `{`, `{"disableAllHooks": true,`, "turns hooks off"},
		{"codex", `"PreToolUse"`, `"PreCompact"`, "PreToolUse is missing"},
		{"codex", `{`, `{{`, "form of Codex's settings"},
	} {
		t.Run(h.agent+" "+h.want, func(t *testing.T) {
			m := machine(t)
			a, _ := hook.Find(h.agent)
			tg := target(t, m, a, User, hook.Control)
			do(t, tg.Install)
			if list, ok := m.Examine(t.Context(), a); !ok || failed(list) {
				t.Fatalf("sound settings: %+v", list)
			}
			text := read(t, tg.Path)
			if !strings.Contains(text, h.from) {
				t.Fatalf("%s\nhas no %s", text, h.from)
			}
			write(t, tg.Path, strings.Replace(text, h.from, h.to, 1))
			list, _ := m.Examine(t.Context(), a)
			if said := fmt.Sprint(list); !strings.Contains(said, h.want) || !failed(list) && !strings.Contains(said, Warn) {
				t.Errorf("%s", said)
			}
		})
	}
	t.Run("Codex's configuration", func(t *testing.T) {
		m := machine(t)
		a, _ := hook.Find("codex")
		do(t, target(t, m, a, User, hook.Control).Install)
		for _, text := range []string{"[features]\nhooks = false # no\n", "features.hooks=false\n", "[features]\ncodex_hooks = false"} {
			write(t, filepath.Join(m.Home, ".codex", "config.toml"), text)
			if list, _ := m.Examine(t.Context(), a); !failed(list) {
				t.Errorf("%q: %+v", text, list)
			}
		}
		write(t, filepath.Join(m.Home, ".codex", "config.toml"), "[other]\nhooks = false\n[features]\nhooks = true")
		if list, _ := m.Examine(t.Context(), a); failed(list) {
			t.Errorf("%+v", list)
		}
	})
	t.Run("a hook of Gemini CLI is switched off", func(t *testing.T) {
		a, _ := hook.Find("gemini")
		for _, test := range []struct {
			disabled func(command string) any
			off      bool
		}{
			{func(string) any { return []string{"countersign"} }, true},
			{func(command string) any { return []string{"lint", command} }, true},
			{func(string) any { return []string{"lint"} }, false},
			{func(string) any { return true }, false}, // not a list
		} {
			for _, project := range []bool{false, true} {
				m := machine(t)
				tg := target(t, m, a, User, hook.Control)
				do(t, tg.Install)
				off, err := json.Marshal(map[string]any{"disabled": test.disabled(tg.command("BeforeTool"))})
				if err != nil {
					t.Fatal(err)
				}
				if project { // the settings of the project switch the user's hook off
					write(t, filepath.Join(m.Folder, ".gemini", "settings.json"), `{"hooksConfig": `+string(off)+`}`)
				} else {
					write(t, tg.Path, strings.Replace(read(t, tg.Path), "{", `{"hooksConfig": `+string(off)+`,`, 1))
				}
				if list, _ := m.Examine(t.Context(), a); failed(list) != test.off {
					t.Errorf("%s: %+v", off, list)
				}
			}
		}
	})
	t.Run("two scopes", func(t *testing.T) {
		m := machine(t)
		a, _ := hook.Find("claude-code")
		do(t, target(t, m, a, User, hook.Control).Install)
		do(t, target(t, m, a, Project, hook.Control).Install)
		if list, _ := m.Examine(t.Context(), a); !strings.Contains(fmt.Sprint(list), "twice") {
			t.Errorf("%+v", list)
		}
		do(t, target(t, m, a, Project, hook.Comfort).Install)
		if list, _ := m.Examine(t.Context(), a); !strings.Contains(fmt.Sprint(list), "both profiles") {
			t.Errorf("%+v", list)
		}
	})
	t.Run("managed", func(t *testing.T) {
		m := machine(t)
		a, _ := hook.Find("claude-code")
		do(t, target(t, m, a, User, hook.Control).Install)
		managed := target(t, m, a, User, hook.Control)
		managed.Path = filepath.Join(m.Managed, "managed-settings.json")
		write(t, managed.Path, `{"allowManagedHooksOnly": true}`)
		if list, _ := m.Examine(t.Context(), a); !failed(list) {
			t.Errorf("hooks that are not run: %+v", list)
		}
		do(t, managed.Install)
		if list, _ := m.Examine(t.Context(), a); failed(list) || strings.Contains(fmt.Sprint(list), Warn) {
			t.Errorf("%+v", list)
		}
	})
	if list, ok := machine(t).Examine(t.Context(), hook.Agents()[0]); ok || len(list) > 0 {
		t.Errorf("nothing is installed: %+v", list)
	}
}

// The function claude puts a program with the name claude on PATH, which is a shell script.
func claude(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "claude"), "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(filepath.Join(dir, "claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

// TestExamineVersion checks that Examine finds versions of Claude Code with which the hooks do not block all calls.
func TestExamineVersion(t *testing.T) {
	commands := func(m Machine, profile hook.Profile) Target {
		a, _ := hook.Find("claude-code")
		return target(t, m, a, User, profile)
	}
	web := func(m Machine, profile hook.Profile) Target { return overHTTP(t, m, profile, "https://gate.example") }
	for _, c := range []struct {
		script, state, want string
		installed           func(Machine, hook.Profile) Target
		profile             hook.Profile
	}{
		{"echo '2.1.332 (Claude Code)'", OK, "knows all events of the hooks", commands, hook.Control},
		{"echo 3.0.0", OK, "Claude Code 3.0.0", commands, hook.Control},
		{"echo '2.1.331 (Claude Code)'", Warn, "commands in skills run without approval", commands, hook.Control},
		{"echo '2.1.101 (Claude Code)'", Warn, "commands in skills run without approval", commands, hook.Control},
		{"echo '2.1.100 (Claude Code)'", Fail, "Claude Code 2.1.100 ignores a whole settings file", commands, hook.Control},
		{"echo '1.9.999 (Claude Code)'", Fail, "Claude Code 1.9.999 ignores a whole settings file", commands, hook.Control},
		{"echo '2.1.295 (Claude Code)'", Warn, "commands in skills run without approval", web, hook.Control},
		{"echo '2.1.294 (Claude Code)'", Fail, `Claude Code 2.1.294 does not know "onFailure"`, web, hook.Control},
		{"echo '2.1.100 (Claude Code)'", "", "", commands, hook.Comfort},
		{"echo soon", Warn, `can't be read: claude --version printed "soon"`, commands, hook.Control},
		{"echo no >&2; exit 1", Warn, "can't be read: exit status 1", commands, hook.Control},
	} {
		m := machine(t)
		claude(t, `[ "$*" = --version ] && `+c.script)
		do(t, c.installed(m, c.profile).Install)
		a, _ := hook.Find("claude-code")
		list, _ := m.Examine(t.Context(), a)
		i := slices.IndexFunc(list, func(f Finding) bool {
			return strings.Contains(f.What, "Claude Code ") && strings.Contains(f.What, c.want)
		})
		if c.want == "" {
			if said := fmt.Sprint(list); strings.Contains(said, "2.1.100") || failed(list) {
				t.Errorf("%s: %s", c.script, said)
			}
		} else if i < 0 || list[i].State != c.state {
			t.Errorf("%s: %+v", c.script, list)
		}
	}
	t.Run("without an answer", func(t *testing.T) {
		m := machine(t)
		claude(t, "exec /bin/sleep 600")
		do(t, commands(m, hook.Control).Install)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		a, _ := hook.Find("claude-code")
		if list, _ := m.Examine(ctx, a); !strings.Contains(fmt.Sprint(list), "can't be read") {
			t.Errorf("%+v", list)
		}
	})
	t.Run("not on PATH", func(t *testing.T) {
		m := machine(t)
		do(t, commands(m, hook.Control).Install)
		write(t, filepath.Join(m.Folder, "claude"), "#!/bin/sh\ntouch "+m.Home+"/ran\n")
		if err := os.Chmod(filepath.Join(m.Folder, "claude"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Chdir(m.Folder)
		t.Setenv("PATH", ".:")
		a, _ := hook.Find("claude-code")
		list, _ := m.Examine(t.Context(), a)
		if _, err := os.Stat(filepath.Join(m.Home, "ran")); err == nil || !strings.Contains(fmt.Sprint(list), "the version of Claude Code is not known") {
			t.Errorf("a program of this folder ran (%v), or the version is known: %+v", err, list)
		}
	})
}

// overHTTP returns a target whose hooks are HTTP requests.
func overHTTP(t *testing.T, m Machine, profile hook.Profile, gateway string) Target {
	t.Helper()
	a, _ := hook.Find("claude-code")
	tg := target(t, m, a, User, profile)
	tg.Gateway, tg.Variable, tg.Program = gateway, DefaultVariable, nil
	return tg
}

// TestInstallHTTP compares the settings with testdata. The installation replaces hooks that are commands, and keeps the
// settings of other programs.
func TestInstallHTTP(t *testing.T) {
	for _, profile := range []hook.Profile{hook.Control, hook.Comfort} {
		t.Run(string(profile), func(t *testing.T) {
			m := machine(t)
			tg := overHTTP(t, m, profile, "https://gate.example/")
			c := do(t, tg.Install)
			path := filepath.Join("testdata", "claude-code-http-"+string(profile)+".json")
			if *update {
				write(t, path, c.After)
			}
			if want := read(t, path); c.After != want {
				t.Errorf("got\n%s\nwant\n%s", c.After, want)
			}
			if again, err := tg.Install(); err != nil || !again.Empty() {
				t.Errorf("the second installation changes\n%s (%v)", again.Diff(), err)
			}
			do(t, tg.Uninstall)
			if _, err := os.Stat(tg.Path); !os.IsNotExist(err) {
				t.Errorf("the settings remain: %v", err)
			}
			do(t, target(t, m, tg.Agent, User, profile).Install)
			do(t, tg.Install)
			if list, err := tg.find(read(t, tg.Path)); err != nil || slices.ContainsFunc(list, func(h found) bool { return h.url == "" }) || !tg.overHTTP() {
				t.Errorf("the hooks that were commands become %+v (%v)", list, err)
			}
			for name, text := range foreign {
				if name == "one line" {
					continue // Uninstall also removes the empty object of hooks
				}
				other := overHTTP(t, machine(t), profile, "https://gate.example")
				if name != "none" {
					write(t, other.Path, text)
				}
				do(t, other.Install)
				do(t, other.Uninstall)
				if got, err := os.ReadFile(other.Path); string(got) != text || (err != nil) != (name == "none") {
					t.Errorf("%s comes back as %s (%v)", name, got, err)
				}
			}
		})
	}
	m := machine(t)
	codex, _ := hook.Find("codex")
	refused := []Target{overHTTP(t, m, hook.Control, "http://gate.example"), overHTTP(t, m, hook.Control, "gate.example"), overHTTP(t, m, hook.Control, "https://gate.example/?a=b"), overHTTP(t, m, hook.Control, "https://gate.example"), overHTTP(t, m, hook.Control, "https://gate.example")}
	refused[3].Variable, refused[4].Agent = "$CS", codex
	for _, tg := range refused {
		if c, err := tg.Install(); err == nil {
			t.Errorf("%+v is installed:\n%s", tg, c.After)
		}
	}
	if _, err := overHTTP(t, m, hook.Control, "http://127.0.0.1:8081").Install(); err != nil {
		t.Errorf("a gateway on this machine: %v", err)
	}
}

// TestExamineHTTP breaks settings of hooks over HTTP. Examine must find each fault.
func TestExamineHTTP(t *testing.T) {
	for _, harm := range []struct {
		profile        hook.Profile
		from, to, want string
	}{
		{hook.Control, `"onFailure": "block"`, `"onFailure": "continue"`, "onFailure"},
		{hook.Control, `"timeout": 3600`, `"timeout": 600`, "after the agent's limit"},
		{hook.Control, `timeout=3600`, `timeout=7200`, "after the agent's limit"},
		{hook.Control, `&timeout=3600`, ``, ""},
		{hook.Control, `"timeout": 3600`, `"later": 3600`, "has no timeout"},
		{hook.Control, `"timeout": 3600`, `"timeout": 30`, "too short for people"},
		{hook.Control, `https://gate.example/v1/hooks/claude-code?event=PreToolUse`, `http://gate.example/v1/hooks/claude-code?event=PreToolUse`, "unencrypted"},
		{hook.Control, `event=PreToolUse`, `event=PostToolUse`, "is for the event PostToolUse"},
		{hook.Control, `event=PreToolUse`, `profile=comfort`, "profile control"},
		{hook.Comfort, `profile=comfort`, `profile=control`, "profile comfort"},
		{hook.Control, `"Bearer $COUNTERSIGN_TOKEN"`, `"Bearer csgw_secret"`, "Authorization"},
		{hook.Control, `"COUNTERSIGN_TOKEN"`, `"OTHER"`, "does not allow the variable"},
		{hook.Control, `"type": "http"`, `"type": "http", "if": "Bash(git *)"`, "condition"},
		{hook.Control, `"type": "http"`, `"type": "http", "once": true`, "once"},
		{hook.Control, `"PreToolUse"`, `"Notification"`, "PreToolUse is missing"},
		{hook.Control, `{`, `{"allowedHttpHookUrls": ["https://hooks.example/*"],`, "allowedHttpHookUrls"},
		{hook.Control, `{`, `{"allowedHttpHookUrls": [],`, "allowedHttpHookUrls"},
		{hook.Control, `{`, `{"allowedHttpHookUrls": ["https://gate.example/*"],`, ""},
		{hook.Control, `{`, `{"httpHookAllowedEnvVars": ["OTHER"],`, "httpHookAllowedEnvVars"},
		{hook.Control, `{`, `{"httpHookAllowedEnvVars": ["OTHER", "COUNTERSIGN_TOKEN"],`, ""},
	} {
		m := machine(t)
		tg := overHTTP(t, m, harm.profile, "https://gate.example")
		do(t, tg.Install)
		if list, ok := m.Examine(t.Context(), tg.Agent); !ok || failed(list) {
			t.Fatalf("sound settings: %+v", list)
		}
		text := read(t, tg.Path)
		if !strings.Contains(text, harm.from) {
			t.Fatalf("%s\nhas no %s", text, harm.from)
		}
		write(t, tg.Path, strings.Replace(text, harm.from, harm.to, 1))
		list, _ := m.Examine(t.Context(), tg.Agent)
		if said := fmt.Sprint(list); failed(list) != (harm.want != "") || !strings.Contains(said, harm.want) {
			t.Errorf("%s becomes %s: %s", harm.from, harm.to, said)
		}
	}
}

// TestReachHTTP checks what Reach reports about the token if a machine's hooks use HTTP. Such a machine has no file
// with a configuration.
func TestReachHTTP(t *testing.T) {
	g := fakegateway.New(t, "../../gateway/openapi.json")
	m := machine(t)
	env := map[string]string{"HOME": m.Home}
	m.Getenv = func(name string) string { return env[name] }
	tg := overHTTP(t, m, hook.Control, g.URL)
	do(t, tg.Install)
	for _, test := range []struct{ token, want, state string }{
		{"", "environment has no COUNTERSIGN_TOKEN", Warn}, {"other", "does not know the token", Fail}, {fakegateway.Token, "knows the token", OK},
	} {
		env[DefaultVariable] = test.token
		list := m.Reach(t.Context())
		if len(list) != 1 || list[0].State != test.state || !strings.Contains(list[0].What, test.want) {
			t.Errorf("with the token %q: %+v", test.token, list)
		}
		if f, ok := m.ProfileMismatch(tg.Agent); ok {
			t.Errorf("%+v", f)
		}
	}
}

func TestReach(t *testing.T) {
	g := fakegateway.New(t, "../../gateway/openapi.json")
	m := machine(t)
	write(t, filepath.Join(m.Home, "token"), fakegateway.Token)
	env := map[string]string{
		"HOME": m.Home, "COUNTERSIGN_HOOK_ADDRESS": g.URL, "COUNTERSIGN_HOOK_TOKEN_FILE": filepath.Join(m.Home, "token"), "COUNTERSIGN_HOOK_STATE": filepath.Join(m.Home, "state"),
	}
	m.Getenv = func(name string) string { return env[name] }
	said := func() string { return fmt.Sprint(m.Reach(t.Context())) }
	if s := said(); !strings.Contains(s, "others can read") {
		t.Errorf("%s", s)
	}
	if err := os.Chmod(env["COUNTERSIGN_HOOK_TOKEN_FILE"], 0o600); err != nil {
		t.Fatal(err)
	}
	if s := said(); !strings.Contains(s, "knows the token") || strings.Contains(s, Fail) {
		t.Errorf("%s", s)
	}
	if err := os.WriteFile(env["COUNTERSIGN_HOOK_TOKEN_FILE"], []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := said(); !strings.Contains(s, "does not know the token") {
		t.Errorf("%s", s)
	}
	env["COUNTERSIGN_HOOK_ADDRESS"] = "http://127.0.0.1:1"
	if s := said(); !strings.Contains(s, "does not answer") {
		t.Errorf("%s", s)
	}
}

// FuzzSettings adds a hook to any settings file, and removes the hook. The settings can be read after each change.
func FuzzSettings(f *testing.F) {
	for _, text := range foreign {
		f.Add(text)
	}
	a, _ := hook.Find("claude-code")
	tg := Target{Agent: a, Program: []string{"/usr/bin/countersign", "hook"}, Profile: hook.Control, Timeout: time.Hour}
	f.Fuzz(func(t *testing.T, text string) {
		if found, err := tg.find(text); err != nil || len(found) > 0 || strings.TrimSpace(text) == "" {
			return
		}
		added, err := add(text, []string{"hooks", "PreToolUse"}, tg.element("PreToolUse"))
		if err != nil {
			return
		}
		if _, err := parse(added); err != nil {
			t.Fatalf("%q becomes %q: %v", text, added, err)
		}
		if found, err := tg.find(added); err != nil || len(found) != 1 {
			t.Fatalf("%q becomes %q, with %d hooks", text, added, len(found))
		}
		back, err := tg.without(added)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(back); err != nil {
			t.Fatalf("%q comes back as %q: %v", text, back, err)
		}
	})
}
