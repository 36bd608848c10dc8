// Package condition compiles and evaluates the conditions of a policy's rules. A condition is a CEL expression over the
// arguments of a call, its requester, its agent, its conversation and the time.
//
// [Read] compiles a condition and reports what is wrong with it at its place in the policy file. The result is an
// [approvers.Condition], which evaluates it, and a [Compiled], which can be checked against the tool's JSON Schema:
// [Compiled.TypeProblems] finds comparisons that no valid arguments can make true, and [Compiled.CostProblems] warns of
// conditions that large arguments take over the limit.
//
// It promises:
//
//   - Work and memory of an evaluation are bounded by counts, not by a clock, so the same call always gets the same plan.
//     What a function is about to make is counted before it is made.
//   - An evaluation that fails is an error, never false. Its caller counts it as matched.
//   - A type error is never a guess. What the schema leaves open is not reported.
//
// The types of cel-go don't leave this package.
package condition
