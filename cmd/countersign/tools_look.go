package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"countersign/agent"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/internal/visible"
)

// toolReport is the current state of a policy's tools, and their state relative to the pins.
type toolReport struct {
	file   *config.File
	path   string
	lock   pins.Lock
	policy *approvers.Policy // combined with the tools
	tools  []agent.Status
	down   map[string]string // unreachable sources, with the reasons
	left   []leftOut         // definitions that are not usable as tools
}

// reachWithin is how long a command waits for servers. A program that npx downloads first needs some time.
const reachWithin = 90 * time.Second

// look reads a policy with its lock file, and asks its servers for their tools unless alone is set.
func look(ctx context.Context, path string, alone bool) (*toolReport, error) {
	if path == "" {
		env, err := config.ReadEnv(config.Offline)
		if err != nil {
			return nil, cli.Misused("the environment can't be used:\n%w", err)
		}
		path = env.Policy
	}
	file, err := config.ReadPolicy(path)
	if err != nil {
		return nil, cli.Misused("the policy can't be used:\n%w", err)
	}
	s := &toolReport{file: file, path: path, down: map[string]string{}}
	if s.lock, err = lockBeside(path); err != nil {
		return nil, err
	}
	s.left = s.apiLeftOut()
	if alone {
		r, err := offline(file, path)
		if err != nil {
			return nil, unusable(err)
		}
		s.tools, _ = r.Status()
	} else if err := s.ask(ctx); err != nil {
		return nil, err
	}
	s.policy = file.Policy.With(overlay(file.Policy, s.tools))
	return s, nil
}

// ask connects to the servers and reads their lists.
func (s *toolReport) ask(ctx context.Context) error {
	told := new(heard)
	box, err := newToolbox(slog.New(listener{heard: told})) // the status has the faults of a whole server
	if err != nil {
		return err
	}
	if err := box.want(s.file, s.path); err != nil {
		return unusable(err)
	}
	letGo := box.begin(ctx)
	defer letGo()
	within, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	for _, server := range box.all() {
		_ = server.client.Settled(within) // a server that is too slow counts as down; its status says so
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, st := range box.status() {
		if !st.Connected {
			s.down[st.Server] = orWords(st.Problem, fmt.Sprintf("it did not say within %s what it offers", reachWithin))
		}
	}
	s.tools, _ = box.Status()
	told.mu.Lock()
	defer told.mu.Unlock()
	s.left = append(s.left, told.all...)
	return nil
}

func orWords(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// find returns a tool by name.
func (s *toolReport) find(name string) (agent.Status, error) {
	for _, t := range s.tools {
		if t.Tool.Name == name {
			return t, nil
		}
	}
	var near []string
	for _, t := range s.tools {
		if _, bare, _ := strings.Cut(t.Tool.Name, "."); bare == name || strings.EqualFold(t.Tool.Name, name) {
			near = append(near, t.Tool.Name)
		}
	}
	switch {
	case len(near) > 0:
		return agent.Status{}, cli.Misused("there is no tool %s; did you mean %s?", visible.Line(name), strings.Join(near, " or "))
	case len(s.down) > 0:
		return agent.Status{}, cli.Misused("there is no tool %s, as far as can be said: %s", visible.Line(name), s.downSentence())
	}
	return agent.Status{}, cli.Misused("there is no tool %s; countersign tools lists them", visible.Line(name))
}

// downSentence names the unreachable sources.
func (s *toolReport) downSentence() string {
	var parts []string
	for _, name := range s.downNames() {
		parts = append(parts, fmt.Sprintf("%s can't be reached: %s", name, s.down[name]))
	}
	return strings.Join(parts, "; ")
}

func (s *toolReport) downNames() []string {
	var names []string
	for name := range s.down {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// gate describes in short how the policy handles a tool's calls if no rule matches: auto, or who approves them.
func (s *toolReport) gate(t agent.Status) string {
	if !t.Tool.Callable(s.policy) {
		return "blocked"
	}
	plain := *s.policy
	plain.Tools = slices.Clone(plain.Tools)
	for i := range plain.Tools {
		plain.Tools[i].Rules = nil
	}
	policy, _ := s.policy.Tool(t.Tool.Name, "")
	plan := plain.Plan(approvers.Call{Tool: t.Tool.Name, Effect: t.Tool.Effect})
	words := ""
	switch plan.Verdict {
	case approvers.Auto:
		words = "auto"
		if policy.MaxAuto.Count > 0 {
			words += " " + policy.MaxAuto.String()
		}
	case approvers.Ask:
		var stages []string
		for _, stage := range plan.Stages {
			stages = append(stages, stage.String())
		}
		words = strings.Join(stages, ", then ")
	case approvers.Observed:
		words = "observed"
	default:
		words = "refused"
	}
	if len(policy.Rules) > 0 {
		words += ", or more by rule"
	}
	return words
}

// pinWord describes the state of a tool relative to its pin, or is REFUSED if its current definition can't be used.
func (s *toolReport) pinWord(t agent.Status) string {
	if s.refusal(t) != "" {
		return "REFUSED"
	}
	return pinWord(t.State)
}

// pinWord describes the state of a tool relative to its pin.
func pinWord(s pins.State) string {
	switch s {
	case pins.None:
		return "not needed"
	case pins.Same:
		return "pinned"
	case pins.Waiting:
		return "pinned, not asked"
	}
	return strings.ToUpper(string(s))
}

// hashOf returns the hash of a tool's definition, or "" for a tool that needs no pin.
func hashOf(t agent.Status) string {
	if t.State == pins.None || t.Definition == nil {
		return ""
	}
	hash, err := pins.Hash(t.Definition)
	if err != nil {
		return ""
	}
	return hash
}
