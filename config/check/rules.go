package check

import (
	"fmt"
	"maps"
	"slices"

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
	for _, path := range slices.Sorted(maps.Keys(c.file.Conditions)) {
		if cond := c.file.Conditions[path]; !checked[path] && cond.Amplifies() {
			c.problems = append(c.problems, cond.CostProblems(nil)...) // with a nil shape: for any arguments
		}
	}
}
