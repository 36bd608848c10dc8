// Package view reads the stored state for people, the model and the commands. Each method of a Reader reads one
// snapshot of the store and returns plain values. The package never changes the state. Package workflow also uses this
// package in its transactions. For this purpose, some functions have a store.Reader parameter.
//
// A Model has all data from which one outbox message is rendered. When people read a request or a call, the Reader also
// masks arguments that the policy in force masks, but an earlier policy did not. A Reader does not mask an execution,
// because an execution must have the exact arguments that run.
package view
