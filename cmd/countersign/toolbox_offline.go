package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"countersign/agent"
	"countersign/agent/httptool"
	"countersign/agent/mcp"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/config"
)

// offline is what is known of a policy's tools while nobody is asked: the built-in ones, those that it declares itself, and of its servers what is pinned in the lock file beside it.
// The file is the policy's, and path is where it is; empty: it is built in, and has no lock. The error is [config.Problems] where sources of the policy can't be used.
func offline(file *config.File, path string) (*agent.Registry, error) {
	r := new(agent.Registry)
	for _, t := range agent.BuiltIns() {
		if err := r.Register(t); err != nil {
			return nil, fmt.Errorf("built-in tools: %w", err)
		}
	}
	lock, err := lockBeside(path)
	if err != nil {
		return nil, err
	}
	if err := declare(r, file, lock, nil, func(config.Problem) {}); err != nil {
		return nil, err
	}
	client := mcp.Open(mcp.Config{Servers: file.Servers}) // which is never run
	for _, s := range file.Servers {
		if err := errors.Join(pin(r, client, s.Name, lock)...); err != nil {
			return nil, misused("%s can't be used: %w. Pin the tools anew with countersign tools pin", pins.Beside(path), err)
		}
	}
	return r, nil
}

// httpSource is what the tools of a policy's http section come from. No server can be called that.
const httpSource = "the policy's http section"

// declare makes the tools that the policy file itself describes, and those of the OpenAPI files that it names, all that there are of them. The policy's own need no
// pins: who writes the policy wrote them. With a nil lookup they can be looked at, and don't run. The error is [config.Problems].
func declare(r *agent.Registry, file *config.File, lock pins.Lock, lookup httptool.Lookup, warn func(config.Problem)) error {
	tools, errs := httptool.Tools(file.HTTP, lookup)
	if len(errs) == 0 {
		r.Trust(httpSource)
		errs = r.Replace(httpSource, tools)
	}
	found := placed(file, httpSource, errs)
	for _, api := range file.OpenAPI {
		tools, faults := httptool.OpenAPI(api, lookup)
		source := apiSource(api.Name)
		faults = append(faults, r.Pin(source, pinnedOf(tools, lock.Of(source)))...)
		found = append(found, placed(file, source, append(faults, r.Replace(source, tools)...))...)
	}
	for _, w := range found.Warnings() {
		warn(w)
	}
	if errs := found.Errors(); len(errs) > 0 {
		return errs
	}
	return nil
}

// unusable is the error of a command that can't use a policy because of what is wrong with its sources.
func unusable(err error) error {
	var wrong config.Problems
	if errors.As(err, &wrong) {
		return misused("the policy can't be used:\n%w", wrong)
	}
	return err
}

// apiSource is what the tools of an OpenAPI file come from. No server can be called that.
func apiSource(name string) string { return "openapi." + name }

// pinnedOf makes the tools of pins of a source that is always there: a tool that is as it was pinned, or one that only says what was.
func pinnedOf(live []agent.Tool, pinned []pins.Pin) []agent.Tool {
	var out []agent.Tool
	for _, p := range pinned {
		t := agent.Tool{Name: p.Tool, Description: "It is pinned, and not offered any more.", Schema: json.RawMessage(`{"type":"object"}`), Effect: approvers.Unprotected}
		if i := slices.IndexFunc(live, func(l agent.Tool) bool { return l.Name == p.Tool }); i >= 0 {
			t = live[i]
		}
		t.Definition = p.Definition
		out = append(out, t)
	}
	return out
}

// lockBeside reads the lock file of a policy; a built-in policy has none.
func lockBeside(path string) (pins.Lock, error) {
	if path == "" {
		return pins.Lock{}, nil
	}
	lock, err := pins.Read(pins.Beside(path))
	if err != nil {
		return lock, misused("%w", err)
	}
	return lock, nil
}

// pin makes known what the lock has of a server's tools.
func pin(r *agent.Registry, client *mcp.Client, server string, lock pins.Lock) []error {
	var errs []error
	var pinned []agent.Tool
	for _, p := range lock.Of(server) {
		t, err := client.Tool(server, p.Definition)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pinned = append(pinned, t)
	}
	return append(errs, r.Pin(server, pinned)...)
}

// readPolicy reads a policy file and what is known of its tools. It is good: the bot would start with it.
func readPolicy(path string) (*approvers.Policy, *agent.Registry, error) {
	file, err := config.ReadPolicy(path)
	if err != nil {
		return nil, nil, misused("the policy can't be used:\n%w", err)
	}
	tools, err := offline(file, path)
	if err != nil {
		return nil, nil, unusable(err)
	}
	withTools(file, tools)
	if errs := file.Check(described(tools)).Errors(); len(errs) > 0 {
		return nil, nil, misused("the policy can't be used:\n%w", errs)
	}
	return file.Policy, tools, nil
}

// withTools has a policy say what its tools add to it, as far as they are known while nobody is asked.
func withTools(file *config.File, tools *agent.Registry) {
	all, _ := tools.Status()
	file.Policy = file.Policy.With(overlay(file.Policy, all))
}
