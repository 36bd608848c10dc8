// Package render turns stored state into what Slack shows: messages, Home tabs and forms, as Block Kit and as text.
//
// It is pure. A caller fills in a View, and Draw returns the messages, byte for byte the same for the same view; it
// makes no call, reads no clock and no store, and knows nothing of the bot. Forms are made from a ClickTarget (what was
// clicked, as it was shown). EditArgs, ParseAllowance and ElicitationValues parse the answers in a submitted form.
//
// It promises:
//
//   - What a person, a model or a tool wrote reaches Slack only through untrusted.go: as literal text, with
//     invisible characters made visible. Nothing is cut without a note.
//   - Messages and views stay within Slack's limits for any input (limits.go).
//   - Secret arguments are masked (masked_values.go), except in the form that reveals them to one person.
//   - A button's value and a form's metadata name what was shown and grant nothing (click.go, modal.go).
//
// Where to look: render.go has the list of outbox messages and the function for each. A file is named after its subject
// (card, bundle, step, answer, grant, home, …), and has its messages, its buttons and its forms; details.go,
// form_modify.go and form_people.go have the forms of an approval card, and form_fields.go turns a JSON schema into
// fields. blocks.go and rich_text.go are the drawing tools, and package markdown reads what a model wrote. denied.go
// has the text of each refusal.
package render
