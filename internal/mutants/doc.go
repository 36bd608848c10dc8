// Package mutants breaks the product on purpose, in ways that would lose something, or do it twice, and makes sure that
// the campaigns notice; it consists of tests only.
//
// Each mutant is a change of source files that is made beside them: go test -overlay builds the product with it. The
// text that it replaces has to be there exactly once. If the code has changed, this fails, and the mutant has to be
// rewritten.
//
//	COUNTERSIGN_MUTANTS=first go test ./internal/mutants -v  # the five that matter most, which CI tries
//	COUNTERSIGN_MUTANTS=all go test ./internal/mutants -v -timeout 60m
package mutants
