// Package archtest holds the import rules of the project; it consists of tests only.
//
// The floors, from the ground up: approvers; store and config; approvers/desk; bot and agent; cmd. Imports go down only, so bot
// and agent never know each other. The backends of the store are chosen by cmd. Types of a foreign module stay in the one package that
// speaks with what it stands for. The demo's parts under internal know nothing of the product, and only cmd and tests know them.
// Package approvers is pure: no clock, no I/O, no goroutine, no chance.
//
// A new package needs a place in floors (rules_test.go), or the test fails.
package archtest
