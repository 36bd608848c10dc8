package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"countersign/agent"
)

const simulationSchema = `{"type":"object","additionalProperties":false,"required":["n","amount"],"properties":{
"n":{"type":"string","description":"which one"},"amount":{"type":"number"},"text":{"type":"string"}}}`

// These are the faults of a tool.
const (
	faultFails  = "fails"  // the tool returns an error, and has done nothing
	faultTells  = "blind"  // the tool acted, but can't report this
	faultIdle   = "idle"   // the tool did not act, but can't report this
	faultPanics = "panics" // the tool acts, and then panics
	faultStuck  = "stuck"  // the tool acts, but does not answer as long as anybody waits
	faultDeaf   = "deaf"   // the tool ignores its timeout, and acts when nobody waits any more
)

// The method "tools" returns the tools of one process.
func (s *simulation) tools(p *life) *agent.Registry {
	r := &agent.Registry{}
	for _, t := range agent.BuiltIns() {
		if err := r.Register(t); err != nil {
			s.Fatal(err)
		}
	}
	for name, effect := range simulationEffects {
		err := r.Register(agent.Tool{
			Name: name, Description: "Does what its name says.", Schema: json.RawMessage(simulationSchema), Effect: effect,
			Run: func(ctx context.Context, in agent.Invocation) (string, error) { return s.runTool(ctx, p, name, in) },
		})
		if err != nil {
			s.Fatal(err)
		}
	}
	return r
}

// runTool is the behaviour of all tools. A tool waits, acts, waits again, and answers.
func (s *simulation) runTool(ctx context.Context, p *life, name string, in agent.Invocation) (string, error) {
	v, err := p.wait(ctx, atTool, name)
	deaf := v.fault == faultDeaf
	if deaf {
		v, err = p.wait(context.WithoutCancel(ctx), atTool, name+" deaf")
	}
	if err != nil {
		return "", err // nothing was done
	}
	// A process that does not know the outcome of a commit is about to end, and may not have seen the pause.
	if s.operator.paused.Load() && !deaf && !p.doubts.Load() {
		s.violate("%s runs while everything is paused", name)
	}
	switch v.fault {
	case faultFails:
		return "", errors.New("it is not possible today")
	case faultIdle:
		return "", fmt.Errorf("no answer: %w", agent.ErrOutcomeUnknown)
	}
	s.acted(p, name, in)
	switch v.fault {
	case faultTells:
		return "", fmt.Errorf("no answer: %w", agent.ErrOutcomeUnknown)
	case faultPanics:
		panic("the tool panics")
	case faultStuck:
		<-ctx.Done()
		return "", ctx.Err()
	}
	if v.hold {
		if _, err := p.wait(context.WithoutCancel(ctx), atBack, name); err != nil {
			return "", err
		}
	}
	return toolResult(in), nil
}

// toolResult returns a tool's answer.
func toolResult(in agent.Invocation) string {
	a, _ := readArgs(in.Args)
	return `{"done":"` + a.N + `"}`
}

// callArgs has the arguments of the simulation's tools. N differs in each call.
type callArgs struct {
	N      string      `json:"n"`
	Amount json.Number `json:"amount"`
}

func readArgs(raw []byte) (a callArgs, err error) {
	err = json.Unmarshal(raw, &a)
	return a, err
}
