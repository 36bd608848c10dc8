package check

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// clients checks the agent and the tools that each client names, and whether somebody except the client's owner can
// approve the calls to these tools.
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
			default:
				if hint := yamldoc.DidYouMean(tool, c.allTools()); hint != "" && !slices.Contains(c.allTools(), tool) { // may be the client's own
					c.warn(at, yamldoc.Quote(tool)+" is not a tool of this policy, so it counts as an unknown tool", hint+" If it is a tool of the client's own, add it to tools")
				}
				c.onlyOwner(path, client, tool)
			}
		}
	}
}

// onlyOwner finds calls that only the client's owner could approve. Because owners can't approve calls of their own
// clients, nobody can approve these calls.
func (c *checker) onlyOwner(path string, client approvers.Client, tool string) {
	t, _ := c.policy.Tool(tool, client.Agent)
	if client.Owner == "" || t.SelfApproval {
		return
	}
	for _, o := range c.outcomes(tool, client.Agent) {
		if o.plan.Verdict == approvers.Refuse {
			continue // reported elsewhere
		}
		call := asked(tool, client.Agent)
		call.Requesters = []approvers.PersonID{approvers.Who("", client.Owner)}
		p := c.matching(tool, o.rules)
		plan := p.Plan(call)
		if o.limited {
			plan = p.AskFor(call, t.MaxAuto)
		}
		if plan.Verdict != approvers.Refuse {
			continue
		}
		what := fmt.Sprintf("owns the client, so nobody can approve its calls to %s", tool)
		switch when := o.when(); {
		case strings.HasPrefix(when, "after "):
			what += " " + when
		case when != "":
			what += " when " + when
		}
		c.warn(path+".owner", what, "add another member to the role, or let somebody else own the client")
		return
	}
}

// ClientReport describes the calls for which a client may ask.
type ClientReport struct {
	Name, Title string
	Agent       string   // the agent whose tools, overrides and mode apply to the client
	Tools       []string // the tools for which the client may ask
	Notes       []string
}

func clientReports(p *approvers.Policy) []ClientReport {
	var out []ClientReport
	for _, client := range p.Clients {
		r := ClientReport{Name: client.Name, Title: client.Title, Agent: client.Agent, Tools: client.Tools}
		r.Notes = append(r.Notes, client.Owner+" owns it, and can't approve its calls")
		waits := fmt.Sprintf("at most %d of its requests wait", client.MaxPending)
		if client.Requests.Count > 0 {
			waits += fmt.Sprintf(", and people are asked at most %s", client.Requests)
		}
		r.Notes = append(r.Notes, waits)
		if client.OAuth != nil {
			if client.OAuth.Subject != "" {
				note := "access tokens of " + client.OAuth.Issuer + " with the subject " + client.OAuth.Subject + " belong to it"
				if client.OAuth.Person != "" {
					note += ", also for people, who then can't approve"
				}
				r.Notes = append(r.Notes, note)
			}
			if client.OAuth.ClientID != "" {
				r.Notes = append(r.Notes, "people who sign in at "+client.OAuth.Issuer+" with the client_id "+client.OAuth.ClientID+" use it, and then can't approve")
			}
		}
		if client.Webhook != nil {
			r.Notes = append(r.Notes, "changes are reported to "+client.Webhook.URL)
		}
		out = append(out, r)
	}
	return out
}

// clientsName reports whether any client names a tool. A client may name tools that only the client has.
func clientsName(p *approvers.Policy, tool string) bool {
	return slices.ContainsFunc(p.Clients, func(o approvers.Client) bool { return slices.Contains(o.Tools, tool) })
}

// clientsRun reports whether any client may use a tool.
func (c *checker) clientsRun(tool string) bool {
	return slices.ContainsFunc(c.policy.Clients, func(o approvers.Client) bool { return o.MayUse(c.policy, tool) })
}
