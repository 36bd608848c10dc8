package mcp

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"countersign/agent"
)

// flight is one call that is under way: what goes out for it, and what comes back.
type flight struct {
	token    string          // names it on the wire, for progress
	args     json.RawMessage // the exact bytes
	progress func(agent.Progress)
	ask      func(context.Context, agent.Form) (agent.Reply, error)

	sent   atomic.Bool // its request may have reached the server
	status atomic.Int64
	answer atomic.Pointer[answer]
}

// answer is what a server said of a call: a result, or an error.
type answer struct {
	result  json.RawMessage
	code    int64
	message string
	data    json.RawMessage
	refused string // why its result was not taken; the call was answered all the same
}
