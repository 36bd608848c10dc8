package config

import (
	"encoding/json"
	"slices"

	"countersign/approvers"
)

// Tool is a tool that is registered, as far as a policy is held against it.
type Tool struct {
	Name string
	// Schema is the JSON Schema of its arguments, as it was registered. What conditions read is held against it. Nil: it is not known.
	Schema json.RawMessage
	// Source is the server or the file that it comes from; empty: it is compiled in.
	Source string
	// Effect is what a second run would do. Empty: it is not known.
	Effect approvers.Effect
}

// Check finds what can be read and still makes no sense. tools are those that are registered; nil: it is not known which.
// A problem of severity Error means that some call could never be allowed, that something named does not exist, or that a
// condition can't mean what it says.
func (f *File) Check(tools []Tool) Problems {
	c := &checker{file: f, policy: f.Policy, registered: tools, known: namesOf(tools), used: map[string]bool{}, broken: map[string]bool{}, escalates: map[string][]string{}}
	c.roles()
	c.stages()
	c.pausers()
	c.agents()
	c.names()
	c.tools()
	c.unused()
	c.loosening()
	c.typedRules()
	c.grantArguments()
	c.previews()
	c.leads()
	c.idle()
	c.writtenSecrets()
	return c.problems.inOrder()
}

// checker gathers findings. The later checks leave out what follows from earlier findings.
type checker struct {
	file       *File
	policy     *approvers.Policy
	registered []Tool
	known      []string            // their names; nil: not known
	used       map[string]bool     // roles that some call can come to
	broken     map[string]bool     // tool and role: the stage has a finding of its own
	escalates  map[string][]string // by role: calls that it would pass to a lead of whom none may decide
	orphans    []outcome           // calls of tools that the policy does not name, of which nobody could allow one
	problems   Problems
}

func (c *checker) wrong(path, message, hint string) {
	c.problems = append(c.problems, c.file.problem(Error, path, message, hint))
}

func (c *checker) odd(path, message, hint string) {
	c.problems = append(c.problems, c.file.problem(Warning, path, message, hint))
}

// oddOnce warns of what several outcomes come to.
func (c *checker) oddOnce(path, message, hint string) {
	if p := c.file.problem(Warning, path, message, hint); !slices.Contains(c.problems, p) {
		c.problems = append(c.problems, p)
	}
}

func (c *checker) roleNames() []string {
	names := make([]string, len(c.policy.Approvers))
	for i, r := range c.policy.Approvers {
		names[i] = r.Name
	}
	return names
}

func (c *checker) toolNames() []string {
	names := make([]string, len(c.policy.Tools))
	for i, t := range c.policy.Tools {
		names[i] = t.Name
	}
	return names
}

// allTools are the tools of the policy in file order, then those that are only registered.
func (c *checker) allTools() []string {
	names := c.toolNames()
	for _, k := range sorted(c.known) {
		if !slices.Contains(names, k) {
			names = append(names, k)
		}
	}
	return names
}

// orHint is a suggestion, or else something to do.
func orHint(suggestion, otherwise string) string {
	if suggestion != "" {
		return suggestion
	}
	return otherwise
}

// namesOf is nil where it is not known which tools there are.
func namesOf(tools []Tool) []string {
	if tools == nil {
		return nil
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}
