// Package block has the drawing tools for messages and forms: Builder for blocks, RichText for a text, and Message.
//
// Each message has two forms: blocks, and a text for notifications and screen readers. Builder and RichText make both
// forms together.
//
// Guarantees:
//
//   - Text of a person, a model or a tool reaches Slack only through untrusted.go. Such text becomes literal text, with
//     invisible characters made visible. A note marks each cut of a text.
//   - A button's label and a message's text stay within Slack's limits (limits.go has the limits of the bot).
//   - Simplify shows a message in simpler blocks for a workspace that refuses some kinds of blocks. It drops no text.
//
// The package does not know requests, calls or policies.
package block
