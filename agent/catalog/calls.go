package catalog

import (
	"context"
	"errors"
	"maps"
	"sync"

	"countersign/agent"
)

// Outcome is how a call of a server's tool ended.
type Outcome string

// The outcomes. The metric uses these values as a label.
const (
	Answered Outcome = "answered"
	Failed   Outcome = "failed"  // nothing was done
	Unknown  Outcome = "unknown" // unknown whether anything was done
)

// Calls identifies a server and an outcome, as the key of a counter.
type Calls struct {
	Server  string
	Outcome Outcome
}

// callCounter counts the calls of servers' tools since the start.
type callCounter struct {
	mu sync.Mutex
	n  map[Calls]int
}

// count wraps a tool to count its calls.
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

// Calls returns how many calls of servers' tools have ended since the start.
func (c *Catalog) Calls() map[Calls]int {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	return maps.Clone(c.calls.n)
}
