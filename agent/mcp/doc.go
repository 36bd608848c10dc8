// Package mcp provides the tools of MCP servers. A server is a program that the package starts and uses over pipes,
// or an HTTP address that the package uses with streamable HTTP.
//
// The package gives these guarantees, even for a hostile server:
//
//   - A faulty server affects only its own calls. Every message has a size limit, and every wait has a time limit.
//     Each server has its own connection, which is re-established after increasing delays.
//   - The definition of a tool consists of the exact bytes in the server's list. This package compares definitions byte
//     for byte. The pins of package pins ignore only the spaces between tokens. A call is sent only if the server's
//     list has the registered definition. The list must have been read on the same connection, at most a few seconds
//     earlier.
//   - The arguments are sent as the approved bytes, with one exception. Over pipes, a message is one line, so a line
//     break between two JSON tokens is sent as a space.
//   - If the outcome of a call is unknown, the error wraps agent.ErrOutcomeUnknown. Any other error means that nothing
//     was done, that the tool itself reports an error, or that the tool ran and its result was withheld.
//   - The environment of a started server consists of PATH, HOME, LANG, TMPDIR and the variables that the policy names.
//   - Logs, errors and results of this package never contain the values of environment variables that the policy names.
//
// Sampling, roots, prompts and resources are not supported. A server's instructions are ignored.
package mcp
