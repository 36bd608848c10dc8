// Package policycmd has the commands about a policy: "countersign check" (check.go, replay.go), "explain" (explain.go)
// and "tools" (tools.go, tools_pin.go).
//
// The package owns the plans and lists that these commands print. A command reads a policy file as the bot does at its
// start, so each printed plan is the plan that the bot would make.
//
// The package opens no store: main passes a function that writes the calls of the history. [StoredFixtures] reads these
// calls from an open store. Only "tools" connects to the policy's servers. It never calls a tool. Only "tools pin"
// writes a file. It writes the lock file after the operator has confirmed the definitions.
package policycmd
