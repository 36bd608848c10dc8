// Package config reads the operator's configuration into plain values: the environment ([ReadEnv]), the policy file
// ([ReadPolicy]) and files of fixtures ([ReadFixtures]).
//
// The package guarantees:
//
//   - The package reports all problems together, and not only the first one. Each problem names the variable or the
//     place in the file, and says what is wrong and what to write instead.
//   - The policy file is read strictly. An unknown key, a key given twice, a value of the wrong type and an expression
//     that does not compile are errors. A key that is left out gets a safe default.
//   - Secrets are never printed. This rule holds for problems, for String and for slog.
//
// The package does not check whether the tool, server, channel or user that a value names exists. A file without
// problems may contain a policy that can't work. For example, one of its tools may have no possible approver. Package
// check finds such faults.
//
// Subpackages do parts of the work: yamldoc reads YAML with positions, condition compiles the rules' expressions, and
// preview compiles the templates. docs/policy.md documents every key. A test checks each example in docs/policy.md.
package config
