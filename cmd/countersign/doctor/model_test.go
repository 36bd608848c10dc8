package doctor

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"countersign/agent"
	"countersign/approvers"
	"countersign/config"
	"countersign/internal/demo/scriptedmodel"
)

// The doctor names the agent whose tools have definitions that are too long for the model.
func TestToolsTooLong(t *testing.T) {
	tools := new(agent.Registry)
	for name, length := range map[string]int{"find": 10, "pay": 120} {
		run := func(context.Context, agent.Invocation, struct{}) (string, error) { return "", nil }
		if err := tools.Register(agent.Func(name, strings.Repeat("does it ", length), approvers.ReadOnly, run)); err != nil {
			t.Fatal(err)
		}
	}
	web := httptest.NewServer(scriptedmodel.New(scriptedmodel.Config{ContextTokens: 300}))
	defer web.Close()
	policy := &approvers.Policy{Agents: []approvers.Agent{{Name: "finder", Tools: []string{"find"}}, {Name: "payer", Tools: []string{"*"}}}}
	env := config.Env{Model: scriptedmodel.DefaultModel, ModelURL: web.URL + "/v1"}
	for want, p := range map[string]*approvers.Policy{
		"offer the agent payer fewer than 2 tools, or use a model with a larger context": policy,
		"": {Agents: policy.Agents[:1]},
	} {
		var d Doctor
		d.model(t.Context(), env, p, tools)
		if len(d.findings) != 1 || d.findings[0].Do != want {
			t.Errorf("got %+v, want %q", d.findings, want)
		}
	}
}
