// Package directory answers who somebody is now and where something is posted: users, user groups, channels, and who
// must not be disturbed.
//
// Answers of Slack are used again for a short time (a minute for people and groups), unless the caller asks for a fresh
// one or an event of Slack invalidates them. From high risk on, Users.Clicker always asks Slack again.
//
// It fails closed: a user whom Slack does not know has no ID, a group that does not exist has no members, and an answer
// about somebody else is an error. The package decides nothing; authority is checked by the workflow.
package directory
