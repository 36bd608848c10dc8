// Package gateway is the entry point for other agents ("callers"). Over HTTP, they ask about their tool calls.
// openapi.json describes the gateway. A caller is authenticated by the token of a client in the policy in force. A
// caller sees only its own requests.
//
// The package makes no decisions and keeps no state. The workflow stores, decides, claims and ends requests, and each
// answer is made from the stored state. A waiting connection is only a reader. A change of the state wakes it. If the
// connection breaks, nothing is lost.
package gateway
