// Package workspace is a local Slack workspace. For one bot, it has Slack's Web API, with Socket Mode or Slack's
// requests over HTTP. For people, it has an HTTP API and a web page. A bot that works with this workspace also works
// with Slack. A bot that works with Slack also works with this workspace.
//
//   - A Slack client needs no changes: errors are Slack's codes in answers with HTTP status 200, limits count
//     characters, and the workspace refuses the calls that Slack refuses.
//   - Deliveries and their deadlines are as in Slack. An unacknowledged event is sent again. An unacknowledged
//     interaction fails for the person. A trigger works once, within three seconds. A response URL works five times,
//     within thirty minutes.
//   - People see only what they may see, and nobody can act as a deactivated account or a bot.
//   - Timestamps of messages are unique in the workspace and never go backwards, even after a restart with the same
//     data file.
//   - Faults are switched on by name and counted: rate limits, lost answers, duplicate and late deliveries, dropped
//     sockets (see Fault).
//
// The workspace does not authenticate people: anyone who can reach the workspace can act as any person. Serve the
// workspace on loopback.
//
// Each file is named after its subject. messages.go has the stored messages, chat.go has Slack's methods for messages,
// and say.go has people's actions on messages. blockkit has the rules of blocks and views, delivery brings events and
// interactions to the app, page is the web page, and wire has JSON and ids. docs/workspace.md describes the HTTP API.
package workspace
