package check

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// mostModelTools is the number of tools that OpenAI's API takes in a request.
const mostModelTools = 128

// agents checks that each agent has tools and can be asked somewhere.
func (c *checker) agents() {
	if len(c.policy.Agents) == 0 {
		c.problems = append(c.problems, c.file.Document.ProblemAt(c.file.Document.At("agents"), yamldoc.Error, "there is no agent, so the bot would answer nobody",
			`add agents: support: {channels: ["#support"], tools: ["*"]}`))
	}
	takes := map[string]string{} // by channel: the name of the agent that answers in the channel
	direct := ""
	for _, a := range c.policy.Agents {
		path := "agents." + a.Name
		forClients := slices.ContainsFunc(c.policy.Clients, func(o approvers.Client) bool { return o.Agent == a.Name })
		if len(a.Tools) == 0 {
			c.warn(path+".tools", "is empty, so the agent can do nothing but talk", `name tools, or "*" for every tool`)
		}
		if n := offeredBy(a, c.registered); n > mostModelTools {
			c.warn(path+".tools", fmt.Sprintf("offers the model %d tools, and OpenAI's API takes at most %d in a request", n, mostModelTools), "name fewer tools, or divide them among several agents")
		}
		reached := c.channels(a, takes)
		if !a.NoDM && direct == "" {
			direct, reached = a.Name, true
		}
		switch {
		case reached || forClients:
		case a.NoDM && len(a.Channels) == 0:
			c.wrong(path, "can't be asked anywhere: it has no channels, and direct messages are off", `add channels: ["#support"], or remove direct_messages: false`)
		case len(a.Channels) == 0:
			c.warn(path, "can't be asked anywhere: it has no channels, and "+direct+", which comes first, answers direct messages",
				`add channels: ["#support"], or write direct_messages: false for `+direct)
		}
	}
}

// offeredBy returns the number of registered tools that an agent offers to its model.
func offeredBy(a approvers.Agent, registered []Tool) (n int) {
	for _, t := range registered {
		if a.Offers(t.Name) {
			n++
		}
	}
	return n
}

// channels checks whether an earlier agent has the same channels, because the first agent in the file answers there.
func (c *checker) channels(a approvers.Agent, takes map[string]string) (reached bool) {
	for i, ch := range a.Channels {
		at := fmt.Sprintf("agents.%s.channels[%d]", a.Name, i)
		if first, taken := takes[ch]; taken {
			if first == a.Name {
				c.warn(at, ch+" is named twice", "remove one of them")
			} else {
				c.wrong(at, fmt.Sprintf("%s already answers in %s, because it comes first in the file", first, ch), "let one agent have the channel")
			}
			continue
		}
		if first, all := takes["*"]; all && first != a.Name {
			c.wrong(at, fmt.Sprintf("%s answers in every channel and comes first, so this agent is never asked here", first), "put this agent above "+first)
			continue
		}
		takes[ch], reached = a.Name, true
	}
	return reached
}

// The method checks the names of tools in the policy, except the names of tools that make previews.
func (c *checker) names() {
	c.toolList("never_loosen", c.policy.NeverLoosen)
	for _, r := range c.policy.Approvers {
		c.toolList("approvers."+r.Name+".can_approve", r.CanApprove)
	}
	for _, a := range c.policy.Agents {
		c.toolList("agents."+a.Name+".tools", a.Tools)
		for tool := range a.Overrides {
			path := "agents." + a.Name + ".overrides." + tool
			if !c.exists(tool) {
				c.unknown(path, tool)
			} else if !a.Offers(tool) {
				c.warn(path, "does nothing, because the agent is not offered "+tool, "add it to tools, or remove this")
			}
		}
	}
	c.clients()
	c.unoffered()
}

// unoffered warns about tools in the policy that no source offers.
func (c *checker) unoffered() {
	if c.known == nil {
		return
	}
	var missing []string
	for _, name := range c.toolNames() {
		if _, builtIn := approvers.BuiltIn(name); !builtIn && !slices.Contains(c.known, name) && !c.clientsRun(name) {
			missing = append(missing, name)
		}
	}
	silent := c.silent()
	switch {
	case len(missing) == 0:
	case len(silent) > 0:
		c.warn(silent[0], "its tools are not known, so it is unclear whether it offers "+strings.Join(missing, ", "), "pin its tools: countersign tools pin")
	case c.sourceless():
		c.warn("tools", "nothing offers "+strings.Join(missing, ", ")+" yet", "name where they come from under servers, http or openapi; until then nobody can call them")
	default:
		for _, name := range missing {
			c.warn("tools."+name, "nothing offers a tool of this name, so this governs nothing", yamldoc.OrHint(yamldoc.DidYouMean(name, c.unnamed()), "remove it, or name where it comes from under servers, http or openapi"))
		}
	}
}

// silent returns the paths of the servers whose tools are not known.
func (c *checker) silent() []string {
	var out []string
	for _, s := range c.file.Servers {
		if !slices.ContainsFunc(c.registered, func(t Tool) bool { return t.Source == s.Name }) {
			out = append(out, "servers."+s.Name)
		}
	}
	return out
}

// sourceless reports whether there are no tools except the built-in tools.
func (c *checker) sourceless() bool {
	builtInOnly := !slices.ContainsFunc(c.known, func(name string) bool { _, builtIn := approvers.BuiltIn(name); return !builtIn })
	return builtInOnly && len(c.file.Servers)+len(c.file.HTTP)+len(c.file.OpenAPI) == 0
}

// unnamed returns the registered tools that the policy does not name.
func (c *checker) unnamed() []string {
	var out []string
	for _, k := range c.known {
		if !slices.Contains(c.toolNames(), k) {
			out = append(out, k)
		}
	}
	return out
}

func (c *checker) toolList(path string, list []string) {
	for i, tool := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case slices.Contains(list[:i], tool):
			c.warn(at, tool+" is named twice", "remove one of them")
		case tool != "*" && !c.exists(tool):
			c.unknown(at, tool)
		}
	}
}

func (c *checker) exists(tool string) bool {
	_, builtIn := approvers.BuiltIn(tool)
	return builtIn || slices.Contains(c.toolNames(), tool) || slices.Contains(c.known, tool) || clientsName(c.policy, tool)
}

// unknown adds a finding about a name that is not the name of a tool.
func (c *checker) unknown(path, tool string) {
	severity, message, hint := unknownTool(c, tool)
	c.problems = append(c.problems, c.file.Document.Problem(severity, path, message, hint))
}

// unknownTool describes a name that is not the name of a tool. If not all tools are known, the severity is Warning,
// because a tool with this name may exist.
func unknownTool(c *checker, tool string) (severity yamldoc.Severity, message, hint string) {
	severity, message = yamldoc.Error, yamldoc.Quote(tool)+" is not a tool"
	if c.known == nil || len(c.silent()) > 0 {
		severity, message = yamldoc.Warning, yamldoc.Quote(tool)+" is not a tool of this policy"
	}
	return severity, message, yamldoc.OrHint(yamldoc.DidYouMean(tool, c.allTools()), "the tools are "+strings.Join(c.allTools(), ", "))
}
