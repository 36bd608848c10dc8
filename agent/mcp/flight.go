package mcp

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"countersign/agent"
)

// flight is one call in progress, with its request and its answer.
type flight struct {
	token    string          // identifies the call in the server's progress messages
	args     json.RawMessage // the approved bytes
	progress func(agent.Progress)
	ask      func(context.Context, agent.Form) (agent.Reply, error)

	sent   atomic.Bool // the request may have reached the server
	status atomic.Int64
	answer atomic.Pointer[answer]
}

// answer is a server's response to a call: a result, or an error.
type answer struct {
	result  json.RawMessage
	code    int64
	message string
	data    json.RawMessage
	refused string // why the answer to the call was rejected
}
