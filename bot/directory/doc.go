// Package directory looks up people and places in Slack: users, user groups, channels, and who must not be disturbed.
//
// Slack's answers are cached for a short time (a minute for people and groups). A caller can ask for a fresh answer,
// and an event from Slack can invalidate a cached answer. If the risk is high or critical, Users.Clicker always asks
// Slack again.
//
// The package fails closed: a user whom Slack does not know has no ID, a group that does not exist has no members, and
// an answer about another person is an error. The package makes no decisions. The workflow checks authority.
package directory
