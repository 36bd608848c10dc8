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
// Each log call passes the ids of its subject. If a context is in scope, the call also passes the context, which
// supplies the trace's id (logs_test.go).
//
// A package that is not in layers belongs to the layer of its nearest listed parent (rules_test.go). Outside of
// internal, a package without such a parent fails the test.
package archtest
