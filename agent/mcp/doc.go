// Package mcp offers the tools of MCP servers: programs that are started and spoken with over pipes, and addresses that speak streamable HTTP.
//
// What holds, whatever a server does:
//
//   - A server's misbehaviour harms its own calls. Every message is bounded while it is read, every wait has an end, and each server has its own
//     connection, which is made anew with growing pauses.
//   - The definition of a tool is the bytes that the server sent in its list, with unknown members, their order and their spaces. Nothing is
//     canonicalised: any byte that changes is another definition. A call is made only if the server's list, read no longer than a few seconds ago on this very
//     connection, has the definition that was registered.
//   - The arguments on the wire are the bytes that were allowed. The one exception: over pipes a message is a line, so a line break between two
//     values (never one within a text) goes out as a space.
//   - An error of a call says that nothing was done, that the tool itself says so, or wraps agent.ErrOutcomeUnknown.
//   - A started server finds a path, a home, a language, a temporary folder and what the policy names in its environment, and nothing else.
//   - Values of the environment that the policy names are in no log, error or result that this package writes.
//
// Sampling, roots, prompts and resources are not offered to or read from servers. A server's instructions are given to nobody.
package mcp
