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
	"countersign/config"
)

// survey is what a policy's tools are now, and how they stand to what is pinned.
type survey struct {
	file   *config.File
	path   string
	lock   pins.Lock
	policy *approvers.Policy // with what the tools add to it
	tools  []agent.Status
	down   map[string]string // sources that could not be asked, with why
	left   []leftOut         // what the sources have and what is no tool
}

// reachWithin is how long a command waits for servers. A program that npx has to fetch first takes its time.
const reachWithin = 90 * time.Second

// look reads a policy with its lock file, and asks its servers what they offer; alone, it asks nobody.
func look(ctx context.Context, path string, alone bool) (*survey, error) {
	if path == "" {
		env, err := config.ReadEnv(config.Offline)
		if err != nil {
			return nil, misused("the environment can't be used:\n%w", err)
		}
		path = env.Policy
	}
	file, err := config.ReadPolicy(path)
	if err != nil {
		return nil, misused("the policy can't be used:\n%w", err)
	}
	s := &survey{file: file, path: path, down: map[string]string{}}
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

// ask connects with the servers for as long as it takes to read their lists.
func (s *survey) ask(ctx context.Context) error {
	told := new(heard)
	box, err := newToolbox(slog.New(listener{heard: told})) // what is wrong with a server as a whole is said by its status
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
		_ = server.client.Settled(within) // one that does not say in time is down, which its status says
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

// find finds a tool.
func (s *survey) find(name string) (agent.Status, error) {
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
		return agent.Status{}, misused("there is no tool %s; did you mean %s?", onOneLine(name), strings.Join(near, " or "))
	case len(s.down) > 0:
		return agent.Status{}, misused("there is no tool %s, as far as can be said: %s", onOneLine(name), s.downSentence())
	}
	return agent.Status{}, misused("there is no tool %s; countersign tools lists them", onOneLine(name))
}

// downSentence names the sources that could not be asked.
func (s *survey) downSentence() string {
	var parts []string
	for _, name := range s.downNames() {
		parts = append(parts, fmt.Sprintf("%s can't be reached: %s", name, s.down[name]))
	}
	return strings.Join(parts, "; ")
}

func (s *survey) downNames() []string {
	var names []string
	for name := range s.down {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// gate says in short who lets a tool's calls through where no rule of the policy matches.
func (s *survey) gate(t agent.Status) string {
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

// pinWord says in capitals what the operator has to look at.
func (s *survey) pinWord(t agent.Status) string {
	if s.refusal(t) != "" {
		return "REFUSED"
	}
	return pinWord(t.State)
}

// pinWord says how a tool stands to its pin.
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

// hashOf is the hash of a tool's definition; empty for one that needs no pin.
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
