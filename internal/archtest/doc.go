// Package archtest has the import rules of the project. The package consists of tests only.
//
// The layers, from the bottom up, are approvers; store and config; approvers/workflow; bot and agent; agent/catalog;
// cmd. A package imports only packages of lower layers, so bot and agent do not import each other. Only cmd and tests
// select a backend of the store. The types of each third-party module stay in one package, which wraps the module. The
// demo packages under internal do not import the product. Only cmd and tests import the demo packages. Package
// approvers is pure: it uses no clock, no I/O, no goroutines and no randomness.
//
// The number of methods of a type is limited, so that a reader can remember them (methods_test.go).
//
// Each log line has the ids of its subject, and gets the context, from which it has the trace's id (logs_test.go).
//
// A new package needs an entry in layers (rules_test.go), or the test fails.
package archtest
