package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/agent/client"
	"countersign/agent/hook"
)

// Finding is the result of one check.
type Finding struct {
	State string // ok, warn or fail
	What  string
	Do    string
}

// The states of findings.
const (
	OK   = "ok"
	Warn = "warn" // the hooks work, but a person should look at the settings
	Fail = "fail" // calls can run without a request, or no call can run
)

// Machine is the machine on which hooks are examined.
type Machine struct {
	Home, Folder string
	Getenv       func(string) string
	Managed      string // the folder of Claude Code's managed settings; empty: the default folder
}

// Examine checks the hooks of one agent in both scopes. The result installed is false if no hooks are installed and
// all settings can be read.
func (m Machine) Examine(ctx context.Context, agent hook.Agent) (list []Finding, installed bool) {
	profiles := map[Scope]hook.Profile{}
	seen := map[string]bool{} // in the home folder, both scopes use the same file
	for _, scope := range []Scope{User, Project} {
		t, err := NewTarget(agent, scope, m.Home, m.Folder, m.Getenv)
		if err != nil || seen[t.Path] {
			continue
		}
		seen[t.Path] = true
		profile, ok, err := t.Installed()
		if err != nil {
			list = append(list, Finding{Fail, err.Error(), "repair the file; the agent may read none of its hooks"})
			continue
		}
		if !ok {
			continue
		}
		profiles[scope] = profile
		list = append(list, m.examine(t)...)
	}
	switch user, project := profiles[User], profiles[Project]; {
	case len(profiles) == 0:
		return list, len(list) > 0
	case len(profiles) == 2 && user != project:
		list = append(list, Finding{Fail, fmt.Sprintf("%s has hooks of both profiles: %s for the user, %s in this project", agent.Title, user, project), "remove one: countersign hook uninstall " + agent.Name + " --scope project"})
	case len(profiles) == 2:
		list = append(list, Finding{Fail, agent.Title + " has the hooks twice, for the user and in this project, so every call is asked about twice", "remove one: countersign hook uninstall " + agent.Name + " --scope project"})
	}
	control := profiles[User] == hook.Control || profiles[Project] == hook.Control
	list = append(list, m.switches(agent, control)...)
	if agent.Name == "claude-code" && control {
		list = append(list, m.version(ctx))
	}
	return list, true
}

// examine checks the hooks in one file.
func (m Machine) examine(t Target) []Finding {
	c, err := t.read()
	if err != nil {
		return []Finding{{Fail, err.Error(), ""}}
	}
	hooks, err := t.find(c.Before)
	if err != nil {
		return []Finding{{Fail, err.Error(), ""}}
	}
	f := forms[t.Agent.Name]
	again := fmt.Sprintf("run: countersign hook install %s --scope %s", t.Agent.Name, t.Scope)
	if i := slices.IndexFunc(hooks, func(h found) bool { return h.url != "" }); i >= 0 {
		if u, err := url.Parse(hooks[i].url); err == nil {
			again += " --http " + baseOf(u)
		}
	}
	var list []Finding
	fail := func(format string, args ...any) {
		list = append(list, Finding{Fail, t.Path + ": " + fmt.Sprintf(format, args...), again})
	}
	profile := hook.Control
	seen := map[string]int{}
	for _, h := range hooks {
		seen[h.event]++
		if !slices.Contains(f.asks, h.event) {
			continue
		}
		if slices.Contains(f.comfort, h.event) {
			profile = hook.Comfort
		}
		m.examineHook(t, h, fail)
	}
	wanted := f.control
	if profile == hook.Comfort {
		wanted = f.comfort
		if slices.ContainsFunc(f.control, func(e string) bool { return seen[e] > 0 && slices.Contains(f.asks, e) }) {
			fail("it has hooks of both profiles")
		}
	}
	for _, event := range wanted {
		switch {
		case seen[event] == 0 && slices.Contains(f.asks, event):
			fail("the hook %s is missing, so calls run without approval", event)
		case seen[event] == 0:
			list = append(list, Finding{Warn, fmt.Sprintf("%s: the hook %s is missing, so some outcomes are not reported", t.Path, event), again})
		case seen[event] > 1:
			fail("the hook %s occurs %d times", event, seen[event])
		}
	}
	if len(list) == 0 {
		list = append(list, Finding{OK, fmt.Sprintf("%s has the hooks of the profile %s (%s)", t.Path, profile, t.Scope), ""})
	}
	return list
}

// examineHook checks one hook for an event that needs a decision.
func (m Machine) examineHook(t Target, h found, fail func(string, ...any)) {
	control := !slices.Contains(forms[t.Agent.Name].comfort, h.event)
	limit, ok := limitOf(t.Agent.Name, h.fields)
	own := deadlineOf(h.command)
	if h.url != "" {
		m.examineURL(t, h, limit, fail)
		own = limit // examineURL compares the two times of a hook over HTTP
	}
	switch {
	case !ok:
		fail("the hook %s has no timeout, so the agent's own of %s holds, and then the call runs", h.event, t.Agent.Timeout)
	case own != limit:
		fail("the hook %s has the timeout %s, and its command says %s; they must be equal, so that an answer comes before the agent's limit", h.event, limit, own)
	}
	if control {
		if t.Agent.Name == "claude-code" && h.fields["onFailure"] != "block" {
			fail("the hook %s has no \"onFailure\": \"block\", so a failure lets the call run", h.event)
		}
		if t.Agent.Name == "cursor" && h.fields["failClosed"] != true {
			fail("the hook %s has no \"failClosed\": true, so a failure lets the call run", h.event)
		}
		if h.url == "" && !strings.HasSuffix(h.command, orDeny) {
			fail("the command of the hook %s does not end with %s, so a failure may let the call run", h.event, orDeny)
		}
	}
	if matcher, ok := h.fields["matcher"].(string); ok && matcher != "*" && matcher != "" && matcher != ".*" {
		fail("the hook %s has the matcher %q, so calls to other tools run without approval", h.event, matcher)
	}
	if h.fields["once"] == true {
		fail("the hook %s is run once, and later calls run without approval", h.event)
	}
	if h.fields["async"] == true {
		fail("the hook %s is async, so nothing waits for its answer", h.event)
	}
	if h.fields["if"] != nil {
		fail("the hook %s has a condition (if), so calls that do not match it run without approval", h.event)
	}
	if program := programOf(h.command); h.url == "" && program != "" {
		if _, err := exec.LookPath(program); err != nil {
			fail("the program of the hook %s does not exist: %s", h.event, program)
		}
	}
}

// limitOf returns the time limit that the settings give a hook.
func limitOf(agent string, fields map[string]any) (time.Duration, bool) {
	name, unit := "timeout", time.Second
	switch agent {
	case "gemini":
		unit = time.Millisecond
	case "copilot":
		name = "timeoutSec"
	}
	n, ok := fields[name].(float64)
	return time.Duration(n) * unit, ok
}

// deadlineOf returns the time limit in a hook's command.
func deadlineOf(command string) time.Duration {
	_, rest, _ := strings.Cut(command, "--timeout ")
	text, _, _ := strings.Cut(rest, " ")
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

// programOf returns the path of the program in a command. A quoted path has the form that hook.Quote writes.
func programOf(command string) string {
	if rest, ok := strings.CutPrefix(command, "'"); ok {
		program, _, _ := strings.Cut(rest, "' ")
		return strings.ReplaceAll(program, `'\''`, "'")
	}
	program, _, _ := strings.Cut(command, " ")
	return program
}

// switches looks for settings that turn hooks off, or keep them from sending events. It also says what a person must do
// so that the agent runs the hooks, or so that nobody can remove them.
func (m Machine) switches(agent hook.Agent, control bool) []Finding {
	var list []Finding
	// setting returns the text of a setting in a file, or "".
	setting := func(path string, names ...string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		n, err := parse(string(text))
		if err != nil {
			return ""
		}
		for _, name := range names {
			n, _ = n.get(name)
		}
		return string(text)[n.from:n.to]
	}
	off := func(path string, names ...string) {
		last := len(names) - 1
		want, value, _ := strings.Cut(names[last], "=")
		names = append(slices.Clone(names[:last]), want)
		if setting(path, names...) == value {
			list = append(list, Finding{Fail, fmt.Sprintf("%s turns hooks off: %s is %s", path, strings.Join(names, "."), value), "remove it"})
		}
	}
	each := func(user, project string, names ...string) {
		off(user, names...)
		off(filepath.Join(m.Folder, project), names...)
	}
	switch agent.Name {
	case "claude-code":
		dir := filepath.Dir(forms[agent.Name].path(User, m.Home, m.Folder, m.Getenv))
		for _, name := range []string{"settings.json", "settings.local.json"} {
			each(filepath.Join(dir, name), filepath.Join(".claude", name), "disableAllHooks=true")
		}
		list = append(list, m.allowlists(agent, dir)...)
		if control {
			list = append(list, m.managed())
		}
	case "codex":
		dir := filepath.Dir(forms[agent.Name].path(User, m.Home, m.Folder, m.Getenv))
		for _, path := range []string{filepath.Join(dir, "config.toml"), filepath.Join(m.Folder, ".codex", "config.toml")} {
			if name, ok := featureOff(path); ok {
				list = append(list, Finding{Fail, fmt.Sprintf("%s turns hooks off: %s is false", path, name), "remove it"})
			}
		}
		list = append(list, Finding{Warn, "Codex runs hooks only after somebody has reviewed them, and runs calls until then", "open Codex, run /hooks, and trust the hooks of Countersign; again after each change"})
	case "gemini":
		each(filepath.Join(m.Home, ".gemini", "settings.json"), ".gemini/settings.json", "hooksConfig", "enabled=false")
		for _, scope := range []Scope{User, Project} {
			path := forms[agent.Name].path(scope, m.Home, m.Folder, m.Getenv)
			var disabled []string // the names or the commands of hooks
			if json.Unmarshal([]byte(setting(path, "hooksConfig", "disabled")), &disabled) != nil {
				continue // there is no such list
			}
			for _, name := range disabled {
				if name == "countersign" || ours(name, agent.Name) {
					list = append(list, Finding{Fail, fmt.Sprintf("%s turns hooks of Countersign off: hooksConfig.disabled names %s", path, name), "run /hooks enable in Gemini CLI, or remove the name"})
				}
			}
		}
	case "copilot":
		each(forms[agent.Name].path(User, m.Home, m.Folder, m.Getenv), ".github/hooks/countersign.json", "disableAllHooks=true")
		each(filepath.Join(m.Home, ".copilot", "settings.json"), ".github/copilot/settings.json", "disableAllHooks=true")
		off(filepath.Join(m.Folder, ".github/copilot/settings.local.json"), "disableAllHooks=true")
	}
	return list
}

// versionWithin is the time that Claude Code has to print its version.
const versionWithin = 10 * time.Second

// printedVersion matches the version at the beginning of the output of "claude --version".
var printedVersion = regexp.MustCompile(`^([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})\b`)

// The version method checks whether the installed Claude Code runs the hooks of the profile control for all calls. The
// method starts the program "claude" only from the folders of PATH, and never from the current folder.
func (m Machine) version(ctx context.Context) Finding {
	const yourself = "run \"claude --version\" yourself: the hooks need 2.1.332 or later"
	path, err := exec.LookPath("claude") // an error also for a program in the current folder
	if err != nil {
		return Finding{Warn, "the version of Claude Code is not known, because no folder of PATH has the program claude", yourself}
	}
	ctx, cancel := context.WithTimeout(ctx, versionWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Dir = m.Home            // so that the program reads no settings of the current folder
	cmd.WaitDelay = time.Second // the program's children may keep its output open
	out, err := cmd.Output()
	parts := printedVersion.FindStringSubmatch(string(out))
	switch {
	case err != nil:
		return Finding{Warn, fmt.Sprintf("the version of Claude Code can't be read: %v (%s --version)", err, path), yourself}
	case parts == nil:
		return Finding{Warn, fmt.Sprintf("the version of Claude Code can't be read: claude --version printed %.40q", strings.TrimSpace(string(out))), yourself}
	}
	var version [3]int
	for i, part := range parts[1:] {
		version[i], _ = strconv.Atoi(part) // at most nine digits
	}
	before := func(patch int) bool { return slices.Compare(version[:], []int{2, 1, patch}) < 0 }
	switch name := "Claude Code " + parts[0]; {
	case before(101):
		return Finding{Fail, name + " ignores a whole settings file if it does not know one of the file's events, and it does not know PreSkillShellCommand. So calls run without approval, and the other settings of the file have no effect", "update Claude Code to 2.1.332 or later"}
	case before(295) && len(m.gateways()) > 0:
		return Finding{Fail, name + " does not know \"onFailure\", so calls run if the gateway can't be reached", "update Claude Code to 2.1.332 or later, or install the command: countersign hook install claude-code"}
	case before(332):
		return Finding{Warn, name + " does not know the event PreSkillShellCommand, so commands in skills run without approval", "update Claude Code to 2.1.332 or later"}
	default:
		return Finding{OK, name + " knows all events of the hooks", ""}
	}
}

func (m Machine) managedPath() string {
	if m.Managed == "" {
		return "/etc/claude-code/managed-settings.json"
	}
	return filepath.Join(m.Managed, "managed-settings.json")
}

// managed checks whether managed settings prevent people from removing the hooks of Claude Code.
func (m Machine) managed() Finding {
	path := m.managedPath()
	text, err := os.ReadFile(path)
	if err == nil {
		root, err := parse(string(text))
		if v, ok := root.get("allowManagedHooksOnly"); err == nil && ok && string(text)[v.from:v.to] == "true" {
			t := Target{Agent: hook.Agent{Name: "claude-code", HTTP: true}, Path: path}
			if found, err := t.find(string(text)); err == nil && len(found) > 0 {
				return Finding{OK, path + " has the hooks, and no other hooks are run", ""}
			}
			return Finding{Fail, path + " allows managed hooks only, and has none of Countersign, so the others are not run", "install the hooks there: --file " + path}
		}
	}
	return Finding{Warn, "every user of this machine can remove the hooks: they are not in the managed settings", "install them there, with \"allowManagedHooksOnly\": true: --file " + path}
}

// featureOff reports whether a configuration of Codex turns hooks off. featureOff reads the two usual notations of
// this setting.
func featureOff(path string) (string, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	table := ""
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.Join(strings.Fields(line), "")
		if strings.HasPrefix(line, "[") {
			table = strings.Trim(line, "[]") + "."
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		name = table + name
		if value == "false" && (name == "features.hooks" || name == "features.codex_hooks") {
			return name, true
		}
	}
	return "", false
}

// Reach checks the configuration, the folder of the state, the connection to the gateway and the token. To check the
// connection, Reach reads a request that does not exist.
func (m Machine) Reach(ctx context.Context) []Finding {
	gateways := m.gateways()
	if len(gateways) > 0 && !m.configured() {
		var list []Finding
		for _, h := range gateways {
			list = append(list, m.reachOverHTTP(ctx, h))
		}
		return list
	}
	c, err := hook.ReadConfig(m.Getenv)
	if err != nil {
		return []Finding{{Fail, err.Error(), "every call is denied until this is fixed"}}
	}
	list := []Finding{{OK, fmt.Sprintf("the configuration is read from %s: profile %s", c.Path, c.Profile), ""}}
	if err := writable(c.State); err != nil {
		list = append(list, Finding{Fail, "the state can't be written: " + err.Error(), "every call is denied until this is fixed"})
	}
	gate, err := client.New(c.Address, c.Token)
	if err != nil {
		return append(list, Finding{Fail, err.Error(), ""})
	}
	return append(list, knows(ctx, gate, c.Address))
}

// knows checks whether a gateway answers, and knows the token of the client.
func knows(ctx context.Context, gate *client.Client, address string) Finding {
	gate.Patience = 0
	_, err := gate.Get(ctx, "req_doctor", 0)
	switch {
	case client.Is(err, client.NotFound):
		return Finding{OK, "the gateway at " + address + " knows the token", ""}
	case client.Is(err, client.Unauthorized):
		return Finding{Fail, "the gateway at " + address + " does not know the token", "compare its hash with the policy: countersign client add makes a new one"}
	}
	return Finding{Fail, fmt.Sprintf("the gateway does not answer: %v", err), "every call is denied until it does"}
}

// writable checks that files can be created in a folder.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".doctor.*")
	if err != nil {
		return err
	}
	f.Close()
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ProfileMismatch compares the profile of the installed commands with the profile in the configuration.
func (m Machine) ProfileMismatch(agent hook.Agent) (Finding, bool) {
	c, err := hook.ReadConfig(m.Getenv)
	if err != nil {
		return Finding{}, false // Reach reports the error
	}
	for _, scope := range []Scope{User, Project} {
		t, err := NewTarget(agent, scope, m.Home, m.Folder, m.Getenv)
		if err != nil {
			continue
		}
		if p, ok, err := t.Installed(); err == nil && ok && p != c.Profile && !t.overHTTP() {
			return Finding{Fail, fmt.Sprintf("%s has hooks of the profile %s, and the configuration says %s", t.Path, p, c.Profile), "install them again with --profile " + string(c.Profile) + ", or change the configuration"}, true
		}
	}
	return Finding{}, false
}
