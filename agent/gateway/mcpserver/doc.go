// Package mcpserver is the gateway's door for clients of the Model Context Protocol: a client lists the tools that the
// policy lets it see, and calls them. A call is a request of the gateway in the mode execute, so it is decided, run and
// recorded by the workflow like any other.
//
// A request that declares tasks gets a task. Any other call is held: it is answered when it has a result, or after the
// time that its client is known to wait. Nothing depends on the connection. The identical call continues a request whose
// result was not delivered, and a result counts as delivered only after it was written to an open connection.
//
// The package keeps no state between HTTP requests, except which calls are held.
package mcpserver
