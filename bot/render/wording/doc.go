// Package wording says the state of requests and calls in words, and has the parts of messages that several kinds of
// messages need.
//
// A View has everything that is needed to draw an outbox message, and returns the parts:
//
//   - Titles: the names of roles and stages.
//   - RequestWords and CallWords: the state of a request and of a call.
//   - DecisionParts: for whom a request waits, and the decision buttons.
//   - Origin: who asked, and where.
//   - Version: the version of the message, with the tokens of its buttons.
//
// Functions return further words: the effect and the risk of a call (effect.go), warnings (warnings.go), pauses, tool
// previews and grants. The package never draws a whole message.
package wording
