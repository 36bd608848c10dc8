// Package workspace is a Slack workspace on this machine: Slack's Web API for one
// bot, with Socket Mode or Slack's requests over HTTP, and an HTTP API and a page for the people in it. A bot
// that runs against it runs against Slack, and the other way round.
//
// What it promises:
//
//   - A Slack client needs no change: errors are Slack's codes in HTTP 200 answers,
//     limits count characters, and what Slack refuses is refused here.
//   - Time decides as it does in Slack: an event that isn't acknowledged within the
//     ack timeout comes again, an interaction then fails for the person who clicked,
//     a trigger works once and for three seconds, a response URL five times and for
//     thirty minutes.
//   - People see what they may see, and nothing acts in the name of a deactivated
//     account or of a bot.
//   - Timestamps of messages never go backwards, not even over a restart on the same
//     data file, and are unique in the workspace.
//   - Faults are switched on by name and counted: rate limits, lost answers,
//     duplicate and late deliveries, dropped sockets (see Fault).
//
// It is for one machine: it has no notion of who is at the keyboard, so whoever
// reaches it can act as any of its people. Serve it on loopback.
//
// The HTTP surface is described in docs/workspace.md.
package workspace
