package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"countersign/agent"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/config"
	"countersign/internal/visible"
)

// Report has the current state of a policy's tools and the differences between the tools and their pins.
type Report struct {
	File    *config.File
	Path    string // path of the policy file
	Lock    pins.Lock
	Policy  *approvers.Policy // the policy combined with the tools
	Tools   []agent.Status
	Down    map[string]string // unreachable sources, with the reasons
	LeftOut []LeftOut
}

// LeftOut is a problem of a source's definitions, such as an invalid definition.
type LeftOut struct {
	Source string // in the form of Tool.Source
	Reason string
}

// answerWithin is how long Examine waits for servers. The limit is high, because npx may first have to download a
// program.
const answerWithin = 90 * time.Second

// Examine connects to a policy's servers and reports on the current tools of the servers. A server without an answer
// in 90 seconds counts as down. The parameter version is this program's version, as sent to servers.
func Examine(ctx context.Context, file *config.File, path, version string) (*Report, error) {
	r, err := newReport(file, path)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	c, err := New(Config{Version: version, leftOut: func(l LeftOut) {
		mu.Lock()
		defer mu.Unlock()
		if l.Reason = visible.Line(l.Reason); !slices.Contains(r.LeftOut, l) {
			r.LeftOut = append(r.LeftOut, l)
		}
	}})
	if err != nil {
		return nil, err
	}
	if err := c.Adopt(file, r.Lock, ""); err != nil {
		return nil, err
	}
	if err := r.ask(ctx, c); err != nil {
		return nil, err
	}
	r.Policy = file.Policy.With(overlay(file.Policy, r.Tools))
	return r, nil
}

// ask waits until the servers have listed their tools, and then disconnects the servers.
func (r *Report) ask(ctx context.Context, c *Catalog) error {
	defer c.Begin(ctx)()
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	for _, k := range c.connections() {
		_ = k.client.Settled(within) // a server that is too slow counts as down, according to its status
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, s := range c.Servers() {
		if s.Connected {
			continue
		}
		if r.Down[s.Server] = s.Problem; s.Problem == "" {
			r.Down[s.Server] = fmt.Sprintf("it did not list its tools within %s", answerWithin)
		}
	}
	r.Tools, _ = c.Status()
	return nil
}

// ExamineOffline reports on the tools of a policy that are known without a connection to a server.
func ExamineOffline(file *config.File, path string) (*Report, error) {
	r, err := newReport(file, path)
	if err != nil {
		return nil, err
	}
	tools, err := Offline(file, path)
	if err != nil {
		return nil, err
	}
	r.Tools, _ = tools.Status()
	r.Policy = file.Policy.With(overlay(file.Policy, r.Tools))
	return r, nil
}

func newReport(file *config.File, path string) (*Report, error) {
	lock, err := ReadLock(path)
	if err != nil {
		return nil, err
	}
	r := &Report{File: file, Path: path, Lock: lock, Down: map[string]string{}}
	for _, api := range file.OpenAPI {
		for _, p := range apiFindings(file, api) {
			r.LeftOut = append(r.LeftOut, LeftOut{apiPrefix + api.Name, p.Error()})
		}
	}
	return r, nil
}

// Sources lists the names of the policy's servers and OpenAPI files.
func (r *Report) Sources() (out []string) {
	for _, server := range r.File.Servers {
		out = append(out, server.Name)
	}
	for _, api := range r.File.OpenAPI {
		out = append(out, api.Name)
	}
	return out
}

// NameInPolicy returns the name that a source has in the policy.
func NameInPolicy(source string) string { return strings.TrimPrefix(source, apiPrefix) }

// isFrom reports whether a name identifies a source. The name may be in the form of the policy or in the form of
// Tool.Source. An empty name matches every source.
func isFrom(source, name string) bool {
	return name == "" || source == name || source == apiPrefix+name
}

// From returns the tools of the named source of the policy, or all tools if the name is empty.
func (r *Report) From(name string) []agent.Status {
	var out []agent.Status
	for _, t := range r.Tools {
		if isFrom(t.Tool.Source, name) {
			out = append(out, t)
		}
	}
	return out
}

// LeftOutOf returns the problems of the named source's definitions, or of all sources if the name is empty.
func (r *Report) LeftOutOf(name string) []LeftOut {
	var out []LeftOut
	for _, l := range r.LeftOut {
		if isFrom(l.Source, name) {
			out = append(out, l)
		}
	}
	return out
}

// Refusal returns the reason why a tool's current definition can't be used. If the definition is valid or unknown,
// Refusal returns "".
func (r *Report) Refusal(t agent.Status) string {
	if t.Fault != nil {
		return visible.Line(t.Fault.Error())
	}
	if t.State != pins.Gone {
		return ""
	}
	name, bare := t.Tool.Name, t.Tool.Name
	if _, after, ok := strings.Cut(name, "."); ok {
		bare = after
	}
	for _, l := range r.LeftOut {
		if l.Source != t.Tool.Source {
			continue
		}
		for _, named := range []string{" " + name + ",", fmt.Sprintf("%q", name), fmt.Sprintf("%q", bare), "(" + bare + ")"} {
			if strings.Contains(l.Reason, named) {
				return l.Reason
			}
		}
	}
	return ""
}

// Obsolete returns the names of tools with an obsolete pin. A pin is obsolete if a reachable source does not offer
// the tool, or if the policy does not name the source.
func (r *Report) Obsolete(tools []agent.Status) (names []string) {
	for _, t := range tools {
		if t.State == pins.Gone && r.Refusal(t) == "" {
			names = append(names, t.Tool.Name)
		}
	}
	for _, p := range r.Lock.Pins {
		if !slices.Contains(r.Sources(), NameInPolicy(p.Source)) {
			names = append(names, p.Tool)
		}
	}
	return names
}

// Write replaces the lock file. If the file has changed since it was read, Write returns [ErrLockChanged].
func (r *Report) Write(lock pins.Lock) error {
	now, err := ReadLock(r.Path)
	if err != nil {
		return err
	}
	if string(now.Format()) != string(r.Lock.Format()) {
		return ErrLockChanged
	}
	return lock.Write(pins.Beside(r.Path))
}
