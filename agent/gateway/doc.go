// Package gateway is the door through which other agents ("callers") ask about their tool calls, over HTTP.
// openapi.json describes it. A caller is authenticated by the token of a client that the policy in force names; it sees
// only its own requests.
//
// The package decides nothing and keeps nothing: a request is stored, decided, claimed and ended by the workflow, and
// each answer is made from the stored state. A connection that waits for a decision is only a reader that is woken when
// the state changes. If it breaks, nothing is lost.
package gateway
