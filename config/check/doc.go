// Package check finds the parts of a readable policy that can't work ([Run]), and lists who approves which calls
// ([NewReport]).
//
// For each tool and each combination of its rules, Run plans a call with [approvers.Policy.Plan]. If a tool has many
// rules, Run tries only some combinations. The same function decides at run time, so Run's findings can't differ from
// the decisions. Run finds calls that nobody can approve, and leads who may not decide. Run also finds names of tools
// and approvers that don't exist, settings without effect, and conditions that don't fit the schema of their tool.
//
// Problems that follow from another problem are left out. The package makes no calls to servers or Slack. The caller
// passes the registered tools. The package treats the members of user groups as unknown.
package check
