// Package render turns stored state into the content that Slack shows: messages, Home tabs and forms, as Block Kit and
// as text.
//
// The package is pure. A caller fills in a View, and Draw returns the messages. The same view always gives the same
// bytes. Draw uses no network, no clock and no store. Forms are made from a ClickTarget, which is the subject of a
// click as it was shown. EditArgs, ParseAllowance and ElicitationValues parse the answers in a submitted form.
//
// Guarantees:
//
//   - Text of a person, a model or a tool reaches Slack only through untrusted.go. Such text becomes literal text, with
//     invisible characters made visible. A note marks each cut of a text.
//   - Messages and views stay within Slack's limits for any input (limits.go).
//   - Secret arguments are masked (masked_values.go), except in the form that reveals them to one person.
//   - A button's value and a form's metadata only identify a rendering, and grant nothing (click.go, modal.go).
//
// render.go lists the kinds of outbox messages, and what draws each kind. Most files are named after their subject
// (card, bundle, step, answer, grant, home, …), and have the subject's messages, buttons and forms. The messages share
// these parts: titles (names of roles and stages), requestWords and callWords (the state of a request and of a call),
// runWords (what happened after the decision), decisionParts (for whom a request waits, and the decision buttons),
// origin (who asked, and where), and version (the tokens of the buttons).
//
// details.go, form_modify.go and form_people.go have the forms of an approval card, and form_fields.go turns a JSON
// schema into fields. blocks.go and rich_text.go have the drawing tools, and package markdown parses the text of a
// model. denied.go has the text of each refusal.
package render
