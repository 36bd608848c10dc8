// Package doctor looks for faults in a set-up: in the environment, the policy, Slack, the model, the store, the
// gateway, and the hooks of coding agents.
//
// A [Doctor] makes its checks in this order. For each check, the doctor records at least one finding, and for most
// faults also advice on what to do. The doctor does not change the set-up, and its findings contain no token. The
// command passes functions for work that the package can't do itself: opening the store, asking the running bot, and
// listing a policy's tools.
package doctor
