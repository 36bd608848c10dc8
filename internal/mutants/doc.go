// Package mutants consists of tests only. They break the product on purpose, so that it loses something or does
// something twice, and make sure that the test campaigns notice.
//
// Each mutant replaces texts in source files. The changed files are written to a temporary directory, and go test
// -overlay builds the product with them. Each replaced text must be in its file exactly once. If a change of the code
// breaks this rule, the test fails, and the mutant must be rewritten.
//
//	COUNTERSIGN_MUTANTS=first go test ./internal/mutants -v  # the five that matter most, which CI tries
//	COUNTERSIGN_MUTANTS=all go test ./internal/mutants -v -timeout 60m
package mutants
