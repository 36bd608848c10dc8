// Package config turns what the operator wrote into plain values: the environment ([ReadEnv]), the policy file
// ([ReadPolicy]) and files of fixtures ([ReadFixtures]).
//
// It promises:
//
//   - It reports all problems together, not only the first. Each problem names the variable, or the file with line and
//     column, and says what is wrong and what to write instead.
//   - The policy file is read strictly. An unknown key, a key given twice, a value of the wrong type and an expression
//     that does not compile are errors. A key that is left out has the careful default.
//   - Secrets are never printed: not in problems, not by String, not by slog.
//
// It never reads what a value points at: no tool, server, channel or user is looked up. A file without problems may
// still contain a policy that can't work, such as a tool that nobody can approve; package check finds that.
//
// The parts have packages of their own: yamldoc reads YAML with positions, condition compiles the rules' expressions,
// preview the templates. docs/policy.md documents every key; a test checks each example in it.
package config
