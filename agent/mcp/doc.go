// Package mcp offers the tools of MCP servers: programs that it starts and talks to over pipes, and addresses that
// speak streamable HTTP.
//
// Guarantees, whatever a server does:
//
//   - A faulty server affects only its own calls. Every message has a size limit, every wait has a time limit, and each
//     server has its own connection, which is re-established with growing pauses.
//   - The definition of a tool consists of the exact bytes in the server's list, including unknown members, order and
//     spaces. Nothing is canonicalized: any changed byte makes another definition. A call is sent only if the
//     registered definition is in the server's list, read at most a few seconds earlier on the same connection.
//   - The arguments on the wire are the approved bytes, with one exception: over pipes a message is one line, so a line
//     break between two values (never one within a text) is sent as a space.
//   - An error of a call either means that nothing was done, or that the tool itself reports an error, or it wraps
//     agent.ErrOutcomeUnknown.
//   - The environment of a started server has PATH, HOME, LANG, TMPDIR, the variables that the policy names, and
//     nothing else.
//   - Logs, errors and results of this package never contain values of the environment that the policy names.
//
// Sampling, roots, prompts and resources are not supported. A server's instructions are ignored.
package mcp
