// Package check finds what can't work in a policy that can be read ([Run]), and lists who approves what ([NewReport]).
//
// Run tries the calls of each tool under each combination of its rules with [approvers.Policy.Plan], the same function
// that decides at run time, so its findings can't differ from the decisions. It finds calls that nobody can approve,
// leads who may not decide, names of tools and approvers that don't exist, settings without effect, and conditions that
// don't fit the schema of their tool.
//
// Problems that follow from another one are left out. The package makes no calls: the caller passes the tools, and the
// members of user groups are not known.
package check
