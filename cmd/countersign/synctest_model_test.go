package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/internal/demo/scriptedmodel"
)

// The method "tools" returns the tools that the model can call.
func (b *synctestHarness) tools() *agent.Registry {
	r := &agent.Registry{}
	for _, name := range []string{"plain", "grave", "patient", "alarm", "vote"} {
		b.ok(r.Register(agent.Tool{
			Name: name, Description: "Counts.", Effect: approvers.Unprotected,
			Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}`),
			Run: func(_ context.Context, in agent.Invocation) (string, error) {
				var args struct{ N string }
				if err := json.Unmarshal(in.Args, &args); err != nil {
					return "", err
				}
				b.mu.Lock()
				defer b.mu.Unlock()
				b.runs[args.N]++
				return `{"counted":true}`, nil
			},
		}))
	}
	return r
}

// think is the model. The message tells the model what to do: "plain 7" causes a call, "say 7" causes an answer, and
// "tell 7" causes a very long answer. "after 5s" before one of these words delays the answer.
func (b *synctestHarness) think(ctx context.Context, r scriptedmodel.Request) (scriptedmodel.Reply, error) {
	last := r.Last()
	if last.Role != "user" {
		return scriptedmodel.Reply{Content: "That is settled: " + last.Content}, nil
	}
	words := strings.Fields(last.Content)
	for i := 0; i+1 < len(words); i++ {
		switch words[i] {
		case "after":
			d, err := time.ParseDuration(words[i+1])
			if err != nil {
				return scriptedmodel.Reply{}, err
			}
			select {
			case <-time.After(d):
			case <-ctx.Done():
				return scriptedmodel.Reply{}, ctx.Err()
			}
		case "say":
			return scriptedmodel.Reply{Content: "You said " + words[i+1]}, nil
		case "tell":
			return scriptedmodel.Reply{Content: strings.Repeat("A long story about "+words[i+1]+". ", 1000)}, nil
		case "plain", "grave", "patient", "alarm", "vote":
			return scriptedmodel.Reply{Calls: []scriptedmodel.Call{scriptedmodel.NewCall(words[i], map[string]string{"n": words[i+1]})}}, nil
		}
	}
	return scriptedmodel.Reply{}, fmt.Errorf("the test's model does not understand %q", last.Content)
}
