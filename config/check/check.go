package check

import (
	"encoding/json"
	"slices"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/yamldoc"
)

// Tool has the facts about a registered tool that the checks of a policy need.
type Tool struct {
	Name string
	// Schema is the JSON Schema of the arguments, as registered. If Schema is nil, the schema is not known.
	Schema json.RawMessage
	// Source is the server or the file that the tool comes from. If Source is empty, the tool is compiled in.
	Source string
	// Effect is the effect of a second run. If Effect is empty, the effect is not known.
	Effect approvers.Effect
}

// Run returns the problems of a policy, in the order of the file. tools lists the registered tools. If tools is nil,
// the registered tools are not known. A problem has the severity Error if a part of the policy can't work. For
// example, some call can never be allowed, a name does not exist, or a condition does not fit its tool.
func Run(f *config.File, tools []Tool) yamldoc.Problems {
	c := &checker{file: f, policy: f.Policy, registered: tools, known: namesOf(tools), used: map[string]bool{}, broken: map[string]bool{}, escalates: map[string][]string{}}
	c.roles()
	c.stages()
	c.pausers()
	c.agents()
	c.names()
	c.tools()
	c.unused()
	c.loosening()
	c.ruleConditions()
	names := argumentNames{c}
	names.grants()
	names.secrets()
	names.previews()
	c.previews()
	c.leads()
	c.idle()
	c.writtenSecrets()
	return c.problems.InOrder()
}

// Unknown describes a name that is not the name of a tool. The problem has no position. If not all tools are known, its
// severity is Warning.
type Unknown struct {
	yamldoc.Problem
	Similar bool // a tool has a similar name, so the name may be misspelt
}

// UnknownTool returns nil if a name is the name of a tool. The parameter tools is that of [Run].
func UnknownTool(f *config.File, tools []Tool, name string) *Unknown {
	c := &checker{file: f, policy: f.Policy, registered: tools, known: namesOf(tools)}
	if c.exists(name) {
		return nil
	}
	u := &Unknown{Similar: yamldoc.DidYouMean(name, c.allTools()) != ""}
	u.Severity, u.Message, u.Hint = unknownTool(c, name)
	return u
}

// checker collects problems. Later checks leave out problems that follow from earlier problems.
type checker struct {
	file       *config.File
	policy     *approvers.Policy
	registered []Tool
	known      []string            // names of the registered tools; nil: the registered tools are not known
	used       map[string]bool     // roles that some call can be routed to
	broken     map[string]bool     // by tool and stage: true if the stage itself has a problem that was reported
	escalates  map[string][]string // by role: the calls that none of the role's leads may decide
	orphans    []outcome           // calls to tools that the policy does not name and that nobody can allow
	problems   yamldoc.Problems
}

func (c *checker) wrong(path, message, hint string) {
	c.problems = append(c.problems, c.file.Document.Problem(yamldoc.Error, path, message, hint))
}

func (c *checker) warn(path, message, hint string) {
	c.problems = append(c.problems, c.file.Document.Problem(yamldoc.Warning, path, message, hint))
}

// warnOnce adds a warning once, because several outcomes may cause the same warning.
func (c *checker) warnOnce(path, message, hint string) {
	if p := c.file.Document.Problem(yamldoc.Warning, path, message, hint); !slices.Contains(c.problems, p) {
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

// allTools returns first the tools of the policy, in file order, and then the tools that are only registered.
func (c *checker) allTools() []string {
	names := c.toolNames()
	for _, k := range yamldoc.SortedUnique(c.known) {
		if !slices.Contains(names, k) {
			names = append(names, k)
		}
	}
	return names
}

// everyTool returns the tools of allTools, and then the tools that only clients name.
func (c *checker) everyTool() []string {
	names := c.allTools()
	for _, client := range c.policy.Clients {
		for _, tool := range client.Tools {
			if tool != "*" && !slices.Contains(names, tool) && client.MayUse(c.policy, tool) {
				names = append(names, tool)
			}
		}
	}
	return names
}

// namesOf returns the names of the registered tools. If the tools are not known, namesOf returns nil.
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
