package setup

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/agent/client"
	"countersign/agent/hook"
)

// Scope selects the settings file of a person or of a project.
type Scope string

// The scopes.
const (
	User    Scope = "user"    // settings of this person, in all projects
	Project Scope = "project" // settings of all people who work in this folder
)

// form describes the form of one agent's settings.
type form struct {
	path    func(scope Scope, home, folder string, getenv func(string) string) string
	version bool // the file needs "version": 1
	flat    bool // an event has a list of hooks, instead of a list of groups of hooks
	control []string
	comfort []string
	asks    []string // the events for which the agent waits for a decision; all other events only report
	// fields returns the members of a hook in addition to the command.
	fields func(event string, asks bool, timeout time.Duration) map[string]any
	match  string // the matcher for all tools; empty: the agent needs no matcher
	named  bool   // the command contains the event's name
}

var forms = map[string]form{
	"claude-code": {
		path: func(s Scope, home, folder string, getenv func(string) string) string {
			if s == Project {
				return filepath.Join(folder, ".claude", "settings.json")
			}
			return filepath.Join(cmp.Or(getenv("CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude")), "settings.json")
		},
		control: []string{"PreToolUse", "PreSkillShellCommand", "PostToolUse", "PostToolUseFailure", "PermissionDenied"},
		comfort: []string{"PermissionRequest", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd"},
		asks:    []string{"PreToolUse", "PreSkillShellCommand", "PermissionRequest"},
		fields: func(event string, asks bool, timeout time.Duration) map[string]any {
			f := map[string]any{"type": "command", "timeout": int(timeout.Seconds())}
			if asks && event != "PermissionRequest" {
				f["onFailure"] = "block"
			}
			return f
		},
	},
	"codex": {
		path: func(s Scope, home, folder string, getenv func(string) string) string {
			if s == Project {
				return filepath.Join(folder, ".codex", "hooks.json")
			}
			return filepath.Join(cmp.Or(getenv("CODEX_HOME"), filepath.Join(home, ".codex")), "hooks.json")
		},
		control: []string{"PreToolUse", "PostToolUse"},
		comfort: []string{"PermissionRequest", "PostToolUse", "Stop"},
		asks:    []string{"PreToolUse", "PermissionRequest"},
		fields: func(_ string, _ bool, timeout time.Duration) map[string]any {
			return map[string]any{"type": "command", "timeout": int(timeout.Seconds())}
		},
	},
	"gemini": {
		path: func(s Scope, home, folder string, _ func(string) string) string {
			return filepath.Join(cmp.Or(map[Scope]string{Project: folder}[s], home), ".gemini", "settings.json")
		},
		control: []string{"BeforeTool", "AfterTool"},
		asks:    []string{"BeforeTool"},
		match:   "*",
		fields: func(_ string, _ bool, timeout time.Duration) map[string]any {
			return map[string]any{"name": "countersign", "type": "command", "timeout": timeout.Milliseconds()}
		},
	},
	"copilot": {
		path: func(s Scope, home, folder string, getenv func(string) string) string {
			if s == Project {
				return filepath.Join(folder, ".github", "hooks", "countersign.json")
			}
			return filepath.Join(cmp.Or(getenv("COPILOT_HOME"), filepath.Join(home, ".copilot")), "hooks", "countersign.json")
		},
		version: true, flat: true, named: true,
		control: []string{"preToolUse", "postToolUse", "postToolUseFailure"},
		comfort: []string{"permissionRequest", "postToolUse", "postToolUseFailure", "agentStop", "sessionEnd"},
		asks:    []string{"preToolUse", "permissionRequest"},
		fields: func(_ string, _ bool, timeout time.Duration) map[string]any {
			return map[string]any{"type": "command", "timeoutSec": int(timeout.Seconds())}
		},
	},
	"cursor": {
		path: func(s Scope, home, folder string, _ func(string) string) string {
			return filepath.Join(cmp.Or(map[Scope]string{Project: folder}[s], home), ".cursor", "hooks.json")
		},
		version: true, flat: true,
		control: []string{"preToolUse", "postToolUse", "postToolUseFailure"},
		asks:    []string{"preToolUse"},
		fields: func(_ string, asks bool, timeout time.Duration) map[string]any {
			f := map[string]any{"timeout": int(timeout.Seconds())}
			if asks {
				f["failClosed"] = true
			}
			return f
		},
	},
}

// Target is the settings file of an agent.
type Target struct {
	Agent   hook.Agent
	Scope   Scope
	Path    string
	Program []string // the command line of the hooks, such as /usr/local/bin/countersign hook
	Profile hook.Profile
	Timeout time.Duration // the agent's time limit for a hook that waits for a decision
	// Gateway is the address of the gateway, if the agent sends its events to the gateway over HTTP. Program is then
	// unused, and Variable is the environment variable with the token.
	Gateway  string
	Variable string
}

// DefaultVariable is the usual environment variable with the token of hooks over HTTP.
const DefaultVariable = "COUNTERSIGN_TOKEN"

// Limits of the times in the settings.
const (
	reportLimit    = 30 * time.Second
	shortestLimit  = time.Minute
	longestLimit   = 24 * time.Hour
	DefaultTimeout = time.Hour
)

// NewTarget returns the target for a settings file. The parameter home is the person's home folder, and the parameter
// folder is the project's folder.
func NewTarget(agent hook.Agent, scope Scope, home, folder string, getenv func(string) string) (Target, error) {
	f, ok := forms[agent.Name]
	switch {
	case !ok:
		return Target{}, fmt.Errorf("%q is not an agent whose settings can be changed", agent.Name)
	case scope != User && scope != Project:
		return Target{}, fmt.Errorf("%q is not a scope of settings: choose %s or %s", scope, User, Project)
	}
	if home == "" {
		return Target{}, errors.New("the home folder is not known")
	}
	return Target{Agent: agent, Scope: scope, Path: f.path(scope, home, folder, getenv), Profile: hook.Control, Timeout: DefaultTimeout}, nil
}

// events lists the events of the target's profile.
func (t Target) events() ([]string, error) {
	f := forms[t.Agent.Name]
	if t.Gateway != "" {
		if err := t.checkHTTP(); err != nil {
			return nil, err
		}
	}
	switch {
	case t.Gateway == "" && !ours(t.command(""), t.Agent.Name):
		return nil, fmt.Errorf("the name of the program %s must begin with countersign and have no spaces, because its hooks are found by this name later", t.Program[0])
	case t.Timeout < shortestLimit || t.Timeout > longestLimit:
		return nil, fmt.Errorf("the timeout must be between %s and %s", shortestLimit, longestLimit)
	case t.Profile == hook.Comfort && f.comfort == nil:
		return nil, fmt.Errorf("%s has no event for its permission dialog, so the profile comfort does not exist for it", t.Agent.Title)
	case t.Profile == hook.Comfort:
		return f.comfort, nil
	}
	return f.control, nil
}

// orDeny ends the command of a hook in the profile control. If the program fails or is missing, the command denies the
// call. Codex and Gemini CLI take exit code 2 as a denial only if the command also writes to its standard error.
const orDeny = "|| { echo 'The hook of Countersign failed, so the call was denied.' >&2; exit 2; }"

// command returns the shell command for an event. If the process crashes in the profile control, the command's exit
// code denies the call. If the process crashes in the profile comfort, the agent's dialog decides.
func (t Target) command(event string) string {
	f := forms[t.Agent.Name]
	parts := []string{hook.Quote(t.Program[0])}
	parts = append(parts, t.Program[1:]...)
	parts = append(parts, t.Agent.Name)
	if f.named {
		parts = append(parts, event)
	}
	if !slices.Contains(f.asks, event) {
		return strings.Join(parts, " ")
	}
	parts = append(parts, "--timeout", strconv.Itoa(int(t.Timeout.Seconds()))+"s")
	if t.Profile == hook.Control {
		parts = append(parts, orDeny)
	}
	return strings.Join(parts, " ")
}

// element returns the element for the list of an event's hooks.
func (t Target) element(event string) any {
	f := forms[t.Agent.Name]
	asks := slices.Contains(f.asks, event)
	limit := reportLimit
	if asks {
		limit = t.Timeout
	}
	h := f.fields(event, asks, limit)
	if t.Gateway != "" {
		h["type"], h["url"], h["allowedEnvVars"] = "http", t.url(event, limit), []string{t.Variable}
		h["headers"] = map[string]string{"Authorization": "Bearer $" + t.Variable}
		return map[string]any{"hooks": []any{h}}
	}
	name := "command"
	if t.Agent.Name == "copilot" {
		name = "bash"
	}
	h[name] = t.command(event)
	if f.flat {
		return h
	}
	group := map[string]any{"hooks": []any{h}}
	if f.match != "" {
		group["matcher"] = f.match
	}
	return group
}

// ours reports whether a command in a settings file runs this program's hook for the agent. The file name of the program
// may also have a version, such as countersign-1.4.0.
func ours(command, agent string) bool {
	words := strings.Fields(strings.ReplaceAll(command, "'", " "))
	for i, word := range words[:max(len(words)-1, 0)] {
		base := filepath.Base(word)
		switch {
		case strings.HasPrefix(base, "countersign-hook") && words[i+1] == agent:
			return true
		case strings.HasPrefix(base, "countersign") && words[i+1] == "hook" && i+2 < len(words) && words[i+2] == agent:
			return true
		}
	}
	return false
}

// hooksPath is the path of the gateway's endpoint for hooks, before the agent's name.
const hooksPath = "/v1/hooks/"

// variable matches the name of an environment variable.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (t Target) checkHTTP() error {
	switch {
	case !t.Agent.HTTP:
		return fmt.Errorf("%s can't send its events over HTTP so that a failure blocks the call; install the command instead", t.Agent.Title)
	case !variable.MatchString(t.Variable):
		return fmt.Errorf("%q is not the name of an environment variable", t.Variable)
	}
	_, err := client.New(t.Gateway, "token") // checks the address
	return err
}

// url returns the URL to which the agent sends an event.
func (t Target) url(event string, limit time.Duration) string {
	query := url.Values{"event": {event}}
	if slices.Contains(forms[t.Agent.Name].asks, event) {
		query.Set("timeout", strconv.Itoa(int(limit.Seconds())))
	}
	if t.Profile == hook.Comfort {
		query.Set("profile", string(hook.Comfort))
	}
	return strings.TrimRight(t.Gateway, "/") + hooksPath + t.Agent.Name + "?" + query.Encode()
}

// oursOverHTTP reports whether a URL in a settings file is the gateway's endpoint for the agent.
func oursOverHTTP(address, agent string) bool {
	u, err := url.Parse(address)
	return err == nil && strings.HasSuffix(u.Path, hooksPath+agent)
}
