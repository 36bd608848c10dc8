package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/config"
)

// slowModel is the response time above which the model counts as slow. If an answer takes longer, people may think that
// the bot does not work.
const slowModel = 15 * time.Second

// model sends one small request to each model that is used, with the definitions of tools. If several agents use the
// model, the tools are those of the agent with the longest definitions.
func (d *Doctor) model(ctx context.Context, env config.Env, policy *approvers.Policy, tools *agent.Registry) {
	d.begin("Model")
	names, offered, by := []string{env.Model}, map[string]agent.Offered{}, map[string]string{}
	if policy != nil {
		for _, a := range policy.Agents {
			name := cmp.Or(a.Model, env.Model)
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			if its := tools.Offered(a, policy); its.Tokens() > offered[name].Tokens() {
				offered[name], by[name] = its, a.Name
			}
		}
	}
	for _, name := range names {
		t, err := agent.Try(ctx, agent.Model{BaseURL: env.ModelURL, Key: env.ModelKey.Reveal(), Name: name}, offered[name])
		switch {
		case errors.Is(err, agent.ErrModelKey):
			d.fail(cli.ExitUsage, err.Error(), "set OPENAI_API_KEY to a key of the endpoint's")
			return
		case errors.Is(err, agent.ErrNoModel):
			d.fail(cli.ExitUsage, name+": "+err.Error(), "check OPENAI_MODEL, the model that the policy names for an agent, and OPENAI_BASE_URL")
		case errors.Is(err, agent.ErrToolsTooLong):
			d.fail(cli.ExitNo, name+": "+err.Error(),
				fmt.Sprintf("offer the agent %s fewer than %s, or use a model with a larger context", by[name], cli.Count(len(offered[name]), "tool")))
		case errors.Is(err, agent.ErrModelRefuses):
			d.fail(cli.ExitNo, name+": "+err.Error(), "")
		case err != nil:
			d.fail(cli.ExitFailed, err.Error(), "check OPENAI_BASE_URL and the network")
			return
		case !t.Called:
			d.warn(name+" answers with text, although it was asked to call a tool", "use a model that can call tools: otherwise, an agent can only talk")
		case t.Took > slowModel:
			d.warn(name+" calls tools, and takes "+t.Took.Round(time.Second).String()+" for a small question", "people wait that long for each step")
		default:
			d.ok("%s answers in %s, and calls tools", name, t.Took.Round(time.Millisecond))
		}
	}
}
