// Package mutants consists of tests only. The tests change the product's code on purpose, so that the product loses
// data or does an action twice. The tests then check that the test campaigns (docs/campaigns.md) notice the fault.
//
// A mutant is one such change. It replaces texts in source files. The tests write the changed files to a temporary
// directory, and build the product with the changed files (go test -overlay). Each replaced text must be in its file
// exactly once. If a change of the code breaks this rule, the test fails, and the mutant must be rewritten.
//
//	COUNTERSIGN_MUTANTS=first go test ./internal/mutants -v  # the five that matter most, which CI tries
//	COUNTERSIGN_MUTANTS=all go test ./internal/mutants -v -timeout 60m
package mutants
