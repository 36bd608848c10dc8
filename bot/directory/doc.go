// Package directory looks up in Slack who somebody is now and where something is posted: users, user groups, channels,
// and who must not be disturbed.
//
// Slack's answers are cached for a short time (a minute for people and groups), unless the caller asks for a fresh
// answer or an event from Slack invalidates the cached one. If the risk is high or critical, Users.Clicker always asks
// Slack again.
//
// It fails closed: a user whom Slack does not know has no ID, a group that does not exist has no members, and an answer
// about somebody else is an error. The package makes no decisions: the workflow checks authority.
package directory
