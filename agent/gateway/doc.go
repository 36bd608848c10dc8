// Package gateway serves other agents ("callers"), which request approvals of their tool calls over HTTP.
// openapi.json describes the API. A caller is authenticated by the token of a client in the policy in force. A caller
// sees only its own requests.
//
// The package makes no decisions and keeps no state. The workflow stores, decides, claims and ends requests. Each
// answer is made from the stored state. A waiting connection reads the state after each change. If a connection
// breaks, no state is lost.
package gateway
