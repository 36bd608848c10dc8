// Package catalog keeps the tools of a policy current. The package connects the policy's sources, compares the
// offered tools with the pins, and combines the result with the policy.
//
// The package owns the connections to MCP servers, the tools of the policy's http and openapi sections, and the pins
// in force. The package also owns the policy in force, because the policy in force depends on the state of the tools.
//
// Guarantees:
//
//   - If a policy or its pins can't be used, the previous policy and pins stay in force.
//   - If the next policy does not change a source, the source keeps its connection.
//   - A tool of an external source is blocked as soon as the source offers a definition that differs from the tool's
//     pin. With the setting unpinned_tools: unknown, the tool is not blocked, but the policy of unknown tools also
//     applies to it. If a caller reads a tool and then calls [Catalog.Policy], the returned policy takes the tool's
//     definition into account.
//   - The pinned tools of a source are known even while the source is unreachable. An unreachable source delays the
//     start only for a short time.
//
// The callers decide when to read files, and which policy to put into force. Only [Report.Write], which a command
// calls, writes the lock file. Package agent runs the tools. Errors in the policy are [yamldoc.Problems], and errors
// in the lock file are a [LockError].
//
// Files, in reading order: catalog.go (connections), calls.go (counters), content.go (the files of a policy),
// offline.go (tools that are known without a connection), lock.go, policy.go, drift.go (log and /readyz), report.go
// (the state of all tools, for commands).
package catalog
