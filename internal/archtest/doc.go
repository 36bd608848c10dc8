// Package archtest holds the import rules of the project; it consists of tests only.
//
// The layers, from the bottom up: approvers; store and config; approvers/workflow; bot and agent; agent/catalog; cmd. A
// package imports only lower layers, so bot and agent do not import each other. Only cmd selects a backend of the
// store. Types of a foreign module stay in the one package that wraps it. The demo packages under internal do not
// import the product, and only cmd and tests import them. Package approvers is pure: no clock, no I/O, no goroutines,
// no randomness.
//
// No type has more methods than a reader can keep in mind (methods_test.go).
//
// A new package needs an entry in layers (rules_test.go), or the test fails.
package archtest
