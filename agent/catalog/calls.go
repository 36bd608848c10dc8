package catalog

import (
	"context"
	"errors"
	"maps"
	"sync"

	"countersign/agent"
)

// Outcome is the outcome of a call to a server's tool.
type Outcome string

// The outcomes of a call. They are also values of the label outcome of the metric countersign_server_calls_total.
const (
	Answered Outcome = "answered"
	Failed   Outcome = "failed"  // the tool did nothing
	Unknown  Outcome = "unknown" // nobody knows whether the tool did anything
)

// Calls identifies a server and an outcome, as the key of a counter.
type Calls struct {
	Server  string
	Outcome Outcome
}

// callCounter counts the calls to servers' tools since the start.
type callCounter struct {
	mu sync.Mutex
	n  map[Calls]int
}

// count wraps the Run function of a tool so that its calls are counted.
func (c *callCounter) count(server string, t *agent.Tool) {
	run := t.Run
	t.Run = func(ctx context.Context, in agent.Invocation) (string, error) {
		result, err := run(ctx, in)
		outcome := Answered
		switch {
		case errors.Is(err, agent.ErrOutcomeUnknown):
			outcome = Unknown
		case err != nil:
			outcome = Failed
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.n == nil {
			c.n = map[Calls]int{}
		}
		c.n[Calls{server, outcome}]++
		return result, err
	}
}

// Calls returns the number of finished calls to servers' tools since the start, by server and outcome.
func (c *Catalog) Calls() map[Calls]int {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	return maps.Clone(c.calls.n)
}
