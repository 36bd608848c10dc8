// Package doctor looks for what is missing in a set-up: in the environment, the policy, Slack, the model and the store.
//
// A [Doctor] goes through them in that order, and notes a finding for each thing that it looks at, with what to do
// about it. It only reads, and its findings contain no token. What it needs of the command (opening the store, asking
// the running bot, the tools of a policy) are functions that the command sets.
package doctor
