// Package mcp offers the tools of MCP servers. A server is a program that the package starts and uses over pipes, or an
// address with streamable HTTP.
//
// The package gives these guarantees, even for a hostile server:
//
//   - A faulty server affects only its own calls. Every message has a size limit, every wait has a time limit, and each
//     server has its own connection, which is re-established after increasing delays.
//   - The definition of a tool consists of the exact bytes in the server's list, including unknown members, order and
//     spaces. Nothing is canonicalized: any changed byte makes another definition. A call is sent only if the server's
//     list has the registered definition. The list must have been read on the same connection, at most a few seconds
//     earlier.
//   - The arguments are sent as the approved bytes, with one exception: over pipes a message is one line, so a line
//     break between two values (never within a text) is sent as a space.
//   - An error of a call means that nothing was done or that the tool itself reports an error, unless it wraps
//     agent.ErrOutcomeUnknown.
//   - The environment of a started server consists of PATH, HOME, LANG, TMPDIR and the variables that the policy names.
//   - Logs, errors and results of this package never contain the values of environment variables that the policy names.
//
// Sampling, roots, prompts and resources are not supported. A server's instructions are ignored.
package mcp
