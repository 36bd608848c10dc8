package setup

import (
	"embed"
	"fmt"

	"countersign/agent/hook"
)

//go:embed policy/*.yaml
var policies embed.FS

// Policy returns the part of a policy file for an agent's tools: the risks of the tools, and the previews for the
// cards.
func Policy(agent hook.Agent) (string, error) {
	text, err := policies.ReadFile("policy/" + agent.Name + ".yaml")
	if err != nil {
		return "", fmt.Errorf("there is no policy for %s", agent.Name)
	}
	return string(text), nil
}
