// Package config turns what the operator wrote into plain values: the environment ([ReadEnv]) and the policy file ([ReadPolicy]).
//
// It promises:
//
//   - All problems at once, not the first. Each names the variable, or the file with line and column, says what is wrong
//     and what to write instead.
//   - The policy file is strict. An unknown key, a key given twice, a value of the wrong type or an expression that does not compile is
//     an error. What was not said gets the careful default.
//   - Secrets are never printed: not in problems, not by String, not by slog.
//   - A condition's work is bounded by a count of steps and not by a clock, so the same call always gets the same plan.
//
// A file that can be read may still make no sense: a tool that nobody can approve, a lead who can't. [File.Check] finds that,
// with the same [approvers.Policy.Plan] that decides at run time, so the two can't differ; and it holds
// what conditions read against the tools' schemas, where a finding is never a guess: what a schema leaves open is left alone. [File.Report] lists who approves what.
//
// docs/policy.md documents every key; a test checks each example in it.
package config
