// Package view reads the stored state for people, the model and the commands. A Reader answers each question from one
// snapshot of the store and returns plain values; it changes nothing. Package workflow, which changes the state, uses
// some of the same functions inside of its transactions.
//
// A Model is everything that one outbox message is rendered from. Arguments that the policy masks are masked in what a
// Reader returns, except in an execution, which has the exact bytes that run.
package view
