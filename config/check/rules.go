package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/condition"
)

// ruleConditions checks the rules' conditions against the tools' schemas.
func (c *checker) ruleConditions() {
	checked := map[string]bool{}
	for _, tool := range c.registered {
		policy, named := c.policy.Tool(tool.Name, "")
		if !named || len(policy.Rules) == 0 || len(tool.Schema) == 0 {
			continue
		}
		arguments := condition.ArgumentShape(tool.Schema)
		for i := range policy.Rules {
			path := fmt.Sprintf("tools.%s.rules[%d].when", tool.Name, i)
			if cond, ok := c.file.Conditions[path]; ok && arguments != nil {
				c.problems = append(c.problems, cond.TypeProblems(tool.Name, arguments)...)
				c.problems = append(c.problems, cond.CostProblems(arguments)...)
				checked[path] = true
			}
		}
	}
	facts := factsOf(c.policy)
	for _, path := range slices.Sorted(maps.Keys(c.file.Conditions)) {
		c.problems = append(c.problems, c.file.Conditions[path].FactProblems(facts)...)
		if cond := c.file.Conditions[path]; !checked[path] && cond.Amplifies() {
			c.problems = append(c.problems, cond.CostProblems(nil)...) // with a nil shape: for any arguments
		}
	}
}

// factsOf describes the texts that the facts of a call can have. Facts of a client are empty if a person asks.
func factsOf(p *approvers.Policy) map[string]condition.Fact {
	var agents, clients []string
	for _, a := range p.Agents {
		agents = append(agents, a.Name)
	}
	for _, client := range p.Clients {
		clients = append(clients, client.Name)
	}
	user := condition.Fact{Is: func(text string) bool { return text == "" || config.IsUserID(text) }, Like: "a user id such as U0123ABCD"}
	facts := map[string]condition.Fact{
		"caller.name":       condition.OneOf(clients, "the name of a client"),
		"caller.mode":       condition.OneOf([]string{string(approvers.DecideMode), string(approvers.ExecuteMode)}, "a mode"),
		"caller.owner":      user,
		"caller.acting_for": user,
		"requester": {
			Is:   func(text string) bool { return user.Is(text) || strings.HasPrefix(text, "caller:") },
			Like: "a user id such as U0123ABCD, or caller: and the name of a client",
		},
		"conversation.channel": {
			Is:   func(text string) bool { return text == "" || config.IsChannelID(text) },
			Like: "the id of a channel, such as C0123ABCD, and not its name",
		},
	}
	if len(agents) > 0 { // a policy without an agent has an error
		facts["agent"] = condition.OneOf(agents, "the name of an agent")
	}
	return facts
}
