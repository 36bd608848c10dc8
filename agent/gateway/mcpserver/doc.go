// Package mcpserver lets clients of the Model Context Protocol use the gateway. A client lists the tools that the
// policy allows, and calls these tools. Each call is a request of the gateway in the mode execute, in which
// Countersign runs the call itself. So the workflow decides, runs and records the call like any other request.
//
// A client that declares support for tasks gets a task as the answer. For any other client, a call is held. The server
// sends the answer when the result is known. If the result takes too long, the server sends another answer shortly
// before the client would stop waiting. If the connection breaks, the request stays stored. An identical call continues
// a request whose result was not delivered. A result counts as delivered after it was written to an open connection.
//
// The package keeps no state between HTTP requests, except the calls that are held, and the answers that are being sent
// or were sent within the last minute.
package mcpserver
