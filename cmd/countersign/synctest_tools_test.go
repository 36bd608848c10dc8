package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"countersign/agent"
	"countersign/internal/demo/scriptedmodel"
)

// runPolicy is a policy under which the tools of inRun's tests run without approval.
const runPolicy = `version: 1
defaults: {expires_after: 30m, unknown_tool: {risk: low}}
tools:
TOOLS
approvers:
  lead: {title: Lead, members: [U0002], max_risk: critical, can_approve: ["*"], cards: "#support-approvals"}
agents:
  support: {channels: ["#support"], prompt: Do as you are told., tools: ["*"]}
`

// inRun lets the product run tools in faked time. For each line "run NAME {…}" in a message, the model calls a tool.
// Then the model answers with the results.
func inRun(t *testing.T, tools []agent.Tool, fn func(*synctestHarness)) {
	t.Helper()
	inRunWith(t, tools, nil, fn)
}

func inRunWith(t *testing.T, tools []agent.Tool, change func(*synctestHarness), fn func(*synctestHarness)) {
	t.Helper()
	inFakedTime(t, func(b *synctestHarness) {
		var named strings.Builder
		for _, tool := range tools {
			if tool.Schema == nil {
				tool.Schema = json.RawMessage(`{"type":"object"}`)
			}
			if tool.Description == "" {
				tool.Description = "Is tried."
			}
			b.ok(b.setup.tools.Register(tool))
			named.WriteString("  " + tool.Name + ": {risk: low}\n")
		}
		for _, tool := range agent.BuiltIns() {
			b.ok(b.setup.tools.Register(tool))
		}
		b.usePolicy(strings.Replace(runPolicy, "TOOLS\n", named.String(), 1))
		b.instead = func(http.Handler) http.Handler {
			return scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(runner)})
		}
		if change != nil {
			change(b)
		}
	}, fn)
}

// runner is the model of inRun.
func runner(_ context.Context, r scriptedmodel.Request) (scriptedmodel.Reply, error) {
	last := r.Last()
	if last.Role != "user" {
		return scriptedmodel.Reply{Content: "That is settled: " + strings.Join(strings.Fields(last.Content), " ")}, nil
	}
	var reply scriptedmodel.Reply
	for line := range strings.Lines(last.Content) {
		if _, what, ok := strings.Cut(strings.TrimSpace(line), "run "); ok {
			name, args, _ := strings.Cut(what, " ")
			if args == "" {
				args = "{}"
			}
			reply.Calls = append(reply.Calls, scriptedmodel.NewCall(name, json.RawMessage(args)))
		}
	}
	if len(reply.Calls) == 0 {
		reply.Content = "I have nothing to run."
	}
	return reply, nil
}
