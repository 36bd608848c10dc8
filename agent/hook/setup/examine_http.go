package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/agent/client"
	"countersign/agent/hook"
)

// reference matches a reference to an environment variable in a header.
var reference = regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)

// tokenVariable returns the environment variable with the token of a hook over HTTP, or "".
func tokenVariable(h found) string {
	headers, _ := h.fields["headers"].(map[string]any)
	for name, value := range headers {
		text, _ := value.(string)
		if parts := reference.FindStringSubmatch(text); strings.EqualFold(name, "Authorization") && parts != nil {
			return parts[1] + parts[2]
		}
	}
	return ""
}

// examineURL checks a hook over HTTP for an event that needs a decision.
func (m Machine) examineURL(t Target, h found, limit time.Duration, fail func(string, ...any)) {
	u, err := url.Parse(h.url)
	if err != nil {
		fail("the URL of the hook %s is not valid", h.event)
		return
	}
	if _, err := client.New(baseOf(u), "token"); err != nil {
		fail("the URL of the hook %s: %v", h.event, err)
	}
	query := u.Query()
	own := t.Agent.Timeout
	if query.Has("timeout") {
		seconds, err := strconv.Atoi(query.Get("timeout"))
		if err != nil {
			fail("the parameter timeout in the URL of the hook %s is not a number of seconds", h.event)
		}
		own = time.Duration(seconds) * time.Second
	}
	if limit > 0 && own > limit {
		fail("the hook %s has the timeout %s, and its URL means %s, so an answer can come after the agent's limit", h.event, limit, own)
	}
	if limit > 0 && limit < shortestLimit {
		fail("the hook %s has the timeout %s, which is too short for people", h.event, limit)
	}
	if event := query.Get("event"); event != "" && event != h.event {
		fail("the URL of the hook %s is for the event %s, so every call is denied", h.event, event)
	}
	profile := hook.Control
	if slices.Contains(forms[t.Agent.Name].comfort, h.event) {
		profile = hook.Comfort
	}
	if named := query.Get("profile"); named != string(profile) && (named != "" || profile == hook.Comfort) {
		fail("the URL of the hook %s does not have the profile %s, so every call is denied", h.event, profile)
	}
	name := tokenVariable(h)
	allowed, _ := h.fields["allowedEnvVars"].([]any)
	switch {
	case name == "":
		fail("the hook %s has no header Authorization: Bearer $VARIABLE, so every call is denied, or everybody who reads the settings has the token", h.event)
	case !slices.Contains(allowed, any(name)):
		fail("the hook %s does not allow the variable %s (allowedEnvVars), so every call is denied", h.event, name)
	}
}

// baseOf returns the gateway's address in the URL of a hook.
func baseOf(u *url.URL) string {
	base := *u
	base.Path, _, _ = strings.Cut(u.Path, hooksPath)
	base.RawPath, base.RawQuery = "", ""
	return base.String()
}

// overHTTP reports whether any of this program's hooks in the settings is a hook over HTTP.
func (t Target) overHTTP() bool {
	c, err := t.read()
	if err != nil {
		return false
	}
	list, err := t.find(c.Before)
	return err == nil && slices.ContainsFunc(list, func(h found) bool { return h.url != "" })
}

// gateways returns hooks over HTTP in this machine's settings: one for each pair of gateway and token variable.
func (m Machine) gateways() []found {
	var list []found
	for _, agent := range hook.Agents() {
		for _, scope := range []Scope{User, Project} {
			t, err := NewTarget(agent, scope, m.Home, m.Folder, m.Getenv)
			if err != nil || !agent.HTTP {
				continue
			}
			paths := []string{t.Path}
			if agent.Name == "claude-code" && scope == User {
				paths = append(paths, m.managedPath())
			}
			for _, path := range paths {
				t.Path = path
				c, err := t.read()
				if err != nil {
					continue
				}
				hooks, err := t.find(c.Before)
				if err != nil {
					continue // Examine reports the error
				}
				for _, h := range hooks {
					same := func(o found) bool { return hostOf(o.url) == hostOf(h.url) && tokenVariable(o) == tokenVariable(h) }
					if h.url != "" && !slices.ContainsFunc(list, same) {
						list = append(list, h)
					}
				}
			}
		}
	}
	return list
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// configured reports whether the machine has a configuration of hooks that are commands.
func (m Machine) configured() bool {
	path, err := hook.ConfigPath(m.Getenv)
	if err != nil {
		return false
	}
	_, err = os.Stat(path)
	return err == nil || m.Getenv("COUNTERSIGN_HOOK_ADDRESS") != ""
}

// reachOverHTTP is like Reach, for a hook over HTTP.
func (m Machine) reachOverHTTP(ctx context.Context, h found) Finding {
	u, err := url.Parse(h.url)
	if err != nil {
		return Finding{Fail, "the URL of the hook " + h.event + " is not valid", ""}
	}
	name := tokenVariable(h)
	if name == "" || m.Getenv(name) == "" {
		return Finding{Warn, fmt.Sprintf("the token of the hook %s is not known here: the environment has no %s", h.event, name), "start Claude Code with this variable, or every call is denied"}
	}
	gate, err := client.New(baseOf(u), m.Getenv(name))
	if err != nil {
		return Finding{Fail, err.Error(), ""}
	}
	return knows(ctx, gate, baseOf(u))
}

// allowlists looks for settings of Claude Code that do not let the hooks send their events, or their token. Claude Code
// joins the lists of all settings files.
func (m Machine) allowlists(agent hook.Agent, dir string) []Finding {
	var urls, variables []string
	var haveURLs, haveVariables bool
	for _, path := range []string{
		m.managedPath(), filepath.Join(dir, "settings.json"), filepath.Join(dir, "settings.local.json"),
		filepath.Join(m.Folder, ".claude", "settings.json"), filepath.Join(m.Folder, ".claude", "settings.local.json"),
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		root, err := parse(string(text))
		if err != nil {
			continue
		}
		read := func(name string, into *[]string, have *bool) {
			var list []string
			if v, ok := root.get(name); ok && json.Unmarshal(text[v.from:v.to], &list) == nil {
				*into, *have = append(*into, list...), true
			}
		}
		read("allowedHttpHookUrls", &urls, &haveURLs)
		read("httpHookAllowedEnvVars", &variables, &haveVariables)
	}
	var list []Finding
	for _, h := range m.gateways() {
		if haveURLs && !slices.ContainsFunc(urls, func(pattern string) bool { return matchesURL(pattern, h.url) }) {
			list = append(list, Finding{Fail, fmt.Sprintf("allowedHttpHookUrls does not allow %s, so the hooks of %s are not run", h.url, agent.Title), "add the address of the gateway, followed by /*"})
		}
		if name := tokenVariable(h); haveVariables && name != "" && !slices.Contains(variables, name) {
			list = append(list, Finding{Fail, fmt.Sprintf("httpHookAllowedEnvVars does not allow %s, so every call is denied", name), "add the variable"})
		}
	}
	return list
}

// matchesURL reports whether a pattern matches a URL. In the pattern, * stands for any text.
func matchesURL(pattern, address string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	ok, err := regexp.MatchString("^"+strings.Join(parts, ".*")+"$", address)
	return err == nil && ok
}
