// Package mcpserver is the gateway's entry point for clients of the Model Context Protocol. A client lists the tools
// that the policy allows, and calls them. A call is a request of the gateway in the mode execute, so it is decided, run
// and recorded by the workflow like any other.
//
// A client that declares support for tasks gets a task as the answer. Any other call is held. The answer comes with the
// result, or shortly before the client would stop waiting. No request is lost if the connection breaks. If a request's
// result was not delivered, an identical call continues that request. A result counts as delivered only after it was
// written to an open connection.
//
// Between HTTP requests, the package keeps only one kind of state: which calls are held.
package mcpserver
