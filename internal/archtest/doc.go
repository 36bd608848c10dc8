// Package archtest has the import rules of the project. The package consists of tests only.
//
// These are the layers, from the bottom up: approvers; store and config; approvers/workflow; bot and agent;
// agent/catalog; cmd. A package imports only lower layers, so bot and agent do not import each other. Only cmd selects
// a backend of the store. The types of each third-party module stay in one package, which wraps the module. The demo
// packages under internal do not import the product. Only cmd and tests import the demo packages. Package approvers is
// pure: it uses no clock, no I/O, no goroutines and no randomness.
//
// No type has more methods than a reader can remember (methods_test.go).
//
// A new package needs an entry in layers (rules_test.go), or the test fails.
package archtest
