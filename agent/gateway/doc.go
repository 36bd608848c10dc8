// Package gateway is the door through which other agents ("callers") ask about their tool calls, over HTTP.
// openapi.json describes the gateway. A caller is authenticated by the token of a client in the policy in force. A
// caller sees only its own requests.
//
// The package makes no decisions and keeps no state. The workflow stores, decides, claims and ends requests, and each
// answer is made from the stored state. A connection that waits for a decision is only a reader that is woken when the
// state changes. If the connection breaks, nothing is lost.
package gateway
