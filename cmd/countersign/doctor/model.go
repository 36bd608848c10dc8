package doctor

import (
	"context"
	"errors"
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

// model sends one small request to each model that is used.
func (d *Doctor) model(ctx context.Context, env config.Env, policy *approvers.Policy) {
	d.begin("Model")
	names := []string{env.Model}
	if policy != nil {
		for _, a := range policy.Agents {
			if a.Model != "" && !slices.Contains(names, a.Model) {
				names = append(names, a.Model)
			}
		}
	}
	for _, name := range names {
		t, err := agent.Try(ctx, agent.Model{BaseURL: env.ModelURL, Key: env.ModelKey.Reveal(), Name: name})
		switch {
		case errors.Is(err, agent.ErrModelKey):
			d.fail(cli.ExitUsage, err.Error(), "set OPENAI_API_KEY to a key of the endpoint's")
			return
		case errors.Is(err, agent.ErrNoModel):
			d.fail(cli.ExitUsage, name+": "+err.Error(), "check OPENAI_MODEL, the model that the policy names for an agent, and OPENAI_BASE_URL")
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
