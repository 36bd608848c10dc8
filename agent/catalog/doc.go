// Package catalog keeps the tools of a policy current: it connects the policy's sources, compares what they offer with
// the pins, and combines the result with the policy.
//
// It owns the connections to MCP servers, the tools of the policy's http and openapi sections, the pins in force, and
// the policy in force, which depends on the state of the tools.
//
// Guarantees:
//
//   - A policy or pins that can't be used change nothing. The previous ones stay in force.
//   - A source that is named unchanged by the next policy keeps its connection.
//   - A tool of an external source is blocked while its definition differs from its pin, from the moment in which the
//     source offers the new definition. The policy may instead let such a tool count as unknown. [Catalog.Policy] never
//     lags behind a tool that was read before.
//   - The pinned tools of a source are known while the source is unreachable. An unreachable source delays the start
//     only for a short time.
//
// It does not decide when to read files, or which policy comes into force, and it never writes the lock file by itself:
// only [Report.Write] does, which a command calls. It does not run tools; package agent does. Errors carry no exit
// codes: [yamldoc.Problems] are faults of the policy, [LockError] of the lock file.
//
// Files, in reading order: catalog.go (connections), calls.go (counters), content.go (the files of a policy),
// offline.go (what is known without contacting a server), lock.go, policy.go, drift.go (log and /readyz), report.go
// (the state of all tools, for commands).
package catalog
