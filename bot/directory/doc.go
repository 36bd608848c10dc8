// Package directory looks up users, user groups, channels and do-not-disturb times in Slack.
//
// Slack's answers are cached for a short time (a minute for people and groups). A caller can ask for a fresh answer,
// and an event from Slack can invalidate a cached answer. If the risk is high or critical, Users.Clicker does not use
// cached answers.
//
// The package fails closed. The identity of a user without an account in Slack has no ID, and a group that does not
// exist has no members. If Slack answers with the record of another person, the look-up fails. The package makes no
// decisions. The workflow checks authority.
package directory
