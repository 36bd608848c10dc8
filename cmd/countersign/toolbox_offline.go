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
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
)

// offline returns the tools of a policy that are known without contacting a server: the built-in ones, those that the
// policy declares, and those that the lock file pins. path is the policy file's path; it is empty for a built-in
// policy, which has no lock file. The error is [config.Problems] if sources of the policy can't be used.
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
	if err := declare(r, file, lock, nil, func(yamldoc.Problem) {}); err != nil {
		return nil, err
	}
	client := mcp.Open(mcp.Config{Servers: file.Servers}) // never run
	for _, s := range file.Servers {
		if err := errors.Join(pin(r, client, s.Name, lock)...); err != nil {
			return nil, cli.Misused("%s can't be used: %w. Pin the tools anew with countersign tools pin", pins.Beside(path), err)
		}
	}
	return r, nil
}

// httpSource is the source of the tools in the policy's http section. No server can have this name.
const httpSource = "the policy's http section"

// declare registers the tools that the policy file describes, and all tools of its OpenAPI files. The policy's own
// tools need no pins, because the policy's author wrote them. With a nil lookup the tools can be inspected but not run.
// The error is [config.Problems].
func declare(r *agent.Registry, file *config.File, lock pins.Lock, lookup httptool.Lookup, warn func(yamldoc.Problem)) error {
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

// unusable returns the error of a command that can't use a policy because its sources have faults.
func unusable(err error) error {
	var wrong yamldoc.Problems
	if errors.As(err, &wrong) {
		return cli.Misused("the policy can't be used:\n%w", wrong)
	}
	return err
}

// apiSource returns the source of the tools of an OpenAPI file. No server can have this name.
func apiSource(name string) string { return "openapi." + name }

// pinnedOf returns the pinned tools of a source that is always present: the tool itself if it equals its pin, and
// otherwise one with only the pinned definition.
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

// lockBeside reads the lock file of a policy. A built-in policy has none.
func lockBeside(path string) (pins.Lock, error) {
	if path == "" {
		return pins.Lock{}, nil
	}
	lock, err := pins.Read(pins.Beside(path))
	if err != nil {
		return lock, cli.Misused("%w", err)
	}
	return lock, nil
}

// pin registers the pins of a server's tools.
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

// readPolicy reads a policy file and its known tools. It accepts only a policy with which the bot would start.
func readPolicy(path string) (*approvers.Policy, *agent.Registry, error) {
	file, err := config.ReadPolicy(path)
	if err != nil {
		return nil, nil, cli.Misused("the policy can't be used:\n%w", err)
	}
	tools, err := offline(file, path)
	if err != nil {
		return nil, nil, unusable(err)
	}
	withTools(file, tools)
	if errs := check.Run(file, described(tools)).Errors(); len(errs) > 0 {
		return nil, nil, cli.Misused("the policy can't be used:\n%w", errs)
	}
	return file.Policy, tools, nil
}

// withTools adds the properties of the known tools to a policy.
func withTools(file *config.File, tools *agent.Registry) {
	all, _ := tools.Status()
	file.Policy = file.Policy.With(overlay(file.Policy, all))
}
