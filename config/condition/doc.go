// Package condition compiles and evaluates the conditions of a policy's rules. A condition is a CEL expression over the
// arguments of a call, its requester, its agent, its conversation, its caller and the time.
//
// [Read] compiles a condition, and reports each error at its position in the policy file. Read returns an
// [approvers.Condition], which evaluates the condition. Read also returns a [Compiled], which can be checked against
// the tool's JSON Schema. [Compiled.TypeProblems] finds parts of a condition that fail, or have the same value, for all
// valid arguments. [Compiled.CostProblems] warns about conditions that would exceed the cost limit with large
// arguments.
//
// The package guarantees:
//
//   - Counts limit the work and the memory of an evaluation. There is no limit in time, so the same call always gets
//     the same plan. The size of a function's result is counted before the result is made.
//   - An evaluation that fails returns an error, never false. The caller treats the condition as matched.
//   - A type error is reported only if the error is certain. If the schema leaves a type open, no error is reported.
//
// No exported declaration of this package uses types of cel-go.
package condition
