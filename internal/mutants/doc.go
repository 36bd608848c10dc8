// Package mutants consists of tests only. The tests break the product on purpose, so that the product loses something
// or does something twice. Then the tests check that the test campaigns notice the fault.
//
// Each mutant replaces texts in source files. The changed files are written to a temporary directory, and go test
// -overlay builds the product with them. Each replaced text must be in its file exactly once. If a change of the code
// breaks this rule, the test fails. The mutant must then be rewritten.
//
//	COUNTERSIGN_MUTANTS=first go test ./internal/mutants -v  # the five that matter most, which CI tries
//	COUNTERSIGN_MUTANTS=all go test ./internal/mutants -v -timeout 60m
package mutants
