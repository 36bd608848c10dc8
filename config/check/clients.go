package check

import (
	"fmt"
	"slices"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// clients checks what each client may ask for, and who can approve it.
func (c *checker) clients() {
	for _, client := range c.policy.Clients {
		path := "clients." + client.Name
		agent, ok := c.policy.Agent(client.Agent)
		if !ok && client.Agent != "" {
			var names []string
			for _, a := range c.policy.Agents {
				names = append(names, a.Name)
			}
			c.wrong(path+".agent", yamldoc.Quote(client.Agent)+" is not an agent", yamldoc.OrHint(yamldoc.DidYouMean(client.Agent, names), "name an agent of this file"))
			continue
		}
		for i, tool := range client.Tools {
			at := fmt.Sprintf("%s.tools[%d]", path, i)
			_, builtIn := approvers.BuiltIn(tool)
			switch {
			case tool == "*":
			case slices.Contains(client.Tools[:i], tool):
				c.warn(at, tool+" is named twice", "remove one of them")
			case builtIn:
				c.warn(at, tool+" is about a conversation in Slack, so no client may use it", "remove it")
			case ok && !agent.Offers(tool):
				c.warn(at, fmt.Sprintf("the agent %s is not offered %s, so the client may not use it", agent.Name, tool), "add it to the agent's tools, or remove it here")
			}
		}
	}
}

// clientsName reports whether a client names a tool. A client may run tools that only it knows.
func (c *checker) clientsName(tool string) bool {
	return slices.ContainsFunc(c.policy.Clients, func(o approvers.Client) bool { return slices.Contains(o.Tools, tool) })
}

// clientsRun reports whether a client may ask for a tool that no source offers.
func (c *checker) clientsRun(tool string) bool {
	return slices.ContainsFunc(c.policy.Clients, func(o approvers.Client) bool { return o.MayUse(c.policy, tool) })
}
