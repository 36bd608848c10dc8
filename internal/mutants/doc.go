// Package mutants breaks the product on purpose, in ways that would lose something, or do something twice, and makes
// sure that the campaigns notice; it consists of tests only.
//
// Each mutant replaces texts in source files. The changed files are written to a temporary directory, and go test
// -overlay builds the product with them. Each replaced text must be in its file exactly once. If a change of the code
// breaks this rule, the test fails, and the mutant must be rewritten.
//
//	COUNTERSIGN_MUTANTS=first go test ./internal/mutants -v  # the five that matter most, which CI tries
//	COUNTERSIGN_MUTANTS=all go test ./internal/mutants -v -timeout 60m
package mutants
