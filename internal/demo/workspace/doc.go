// Package workspace is a local Slack workspace for one bot. The bot uses Slack's Web API, with Socket Mode or with
// Slack's requests over HTTP. People use an HTTP API and a web page. The same bot must work with this workspace and
// with Slack. docs/workspace.md lists the differences from Slack.
//
//   - A Slack client needs no changes. The workspace answers errors with HTTP status 200 and Slack's codes, measures
//     limits in characters, and refuses the calls that Slack refuses.
//   - Deliveries and their deadlines are as in Slack. An unacknowledged event is repeated. An unacknowledged
//     interaction fails for the person. A trigger works once, within three seconds. A response URL works five times,
//     within thirty minutes.
//   - People see only what they may see, and nobody can act as a deactivated account or a bot.
//   - Timestamps of messages are unique in the workspace and never go backwards, even after a restart with the same
//     data file.
//   - Faults can be switched on by name, each for a number of times: rate limits, lost answers, duplicate and late
//     deliveries (see Fault). Sockets can be broken, too.
//
// The workspace does not authenticate people: anyone who can reach the workspace can act as any person. Serve the
// workspace only on loopback.
//
// Each file is named after its subject. messages.go has the stored messages, chat.go has Slack's methods for messages,
// and say.go has people's actions on messages. Package blockkit has the rules of blocks and views. Package delivery
// sends events and interactions to the app. Package page is the web page. Package wire has JSON and ids.
// docs/workspace.md describes the HTTP API.
//
// Server consists of parts, one for each concern. A part is a type with the state that belongs to this concern, and
// with the parts that it uses. All parts share core, which has the lock of the whole state.
//
//   - accounts holds the people and bots, and channels holds the channels. scopes checks which methods the app may
//     call. events selects the events that the app gets. messages, contentReader and notation have the rules of
//     messages.
//   - Other parts answer Slack's methods and people's requests about one subject, such as conversations, chat, files,
//     reactions, views and forms. A part may answer both: reactions has the emoji of the app and of people.
//   - actionHandler, commands and forms send people's actions to the app with interactions, and give the app triggers
//     and responseURLs.
//   - webAPI receives Slack's methods, peopleAPI receives people's requests, and Controls causes faults and changes.
//
// assemble in server.go creates each part after the parts that it uses.
package workspace
