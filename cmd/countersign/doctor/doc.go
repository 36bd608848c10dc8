// Package doctor looks for what is missing in a set-up: in the environment, the policy, Slack, the model and the store.
//
// A [Doctor] checks them in that order. For each check it records a finding, with advice on what to do. It only reads,
// and its findings contain no token. The command passes functions for what the package can't do itself: opening the
// store, asking the running bot, and listing the tools of a policy.
package doctor
