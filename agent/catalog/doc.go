// Package catalog keeps the tools of a policy current: it connects the policy's sources, compares what they offer with
// the pins, and combines the result with the policy.
//
// It owns the connections to MCP servers, the tools of the policy's http and openapi sections, the pins in force, and
// the policy in force, which depends on the state of the tools.
//
// Guarantees:
//
//   - If a policy or its pins can't be used, the previous ones stay in force.
//   - A source that is unchanged in the next policy keeps its connection.
//   - A tool of an external source is blocked as soon as the source offers a definition that differs from the tool's
//     pin. The policy may instead let such a tool count as unknown. A caller that reads a tool and then
//     [Catalog.Policy] gets a policy that is at least as new as that version of the tool.
//   - The pinned tools of a source are known even while the source is unreachable. An unreachable source delays the
//     start only for a short time.
//
// The package does not decide when to read files, or which policy comes into force. It writes the lock file only in
// [Report.Write], which a command calls. Package agent runs the tools. Errors carry no exit codes: [yamldoc.Problems]
// are faults of the policy, and a [LockError] is a fault of the lock file.
//
// Files, in reading order: catalog.go (connections), calls.go (counters), content.go (the files of a policy),
// offline.go (what is known without contacting a server), lock.go, policy.go, drift.go (log and /readyz), report.go
// (the state of all tools, for commands).
package catalog
