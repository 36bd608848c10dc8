// Package render turns stored state into what Slack shows: messages, Home tabs and forms, as Block Kit and as text.
//
// The package is pure. A caller fills in a View, and Draw returns the messages: for the same view, the same bytes. Draw
// makes no calls, and reads neither a clock nor the store. Forms are made from a ClickTarget (what was clicked, as it
// was shown). EditArgs, ParseAllowance and ElicitationValues parse the answers in a submitted form.
//
// Guarantees:
//
//   - What a person, a model or a tool wrote reaches Slack only through untrusted.go: as literal text, with
//     invisible characters made visible. Nothing is cut without a note.
//   - Messages and views stay within Slack's limits for any input (limits.go).
//   - Secret arguments are masked (masked_values.go), except in the form that reveals them to one person.
//   - A button's value and a form's metadata only identify what was shown, and grant nothing (click.go, modal.go).
//
// Where to look: render.go lists the kinds of outbox messages, with the function that draws each. Most files are named
// after their subject (card, bundle, step, answer, grant, home, …), and have the subject's messages, buttons and forms.
// details.go, form_modify.go and form_people.go have the forms of an approval card, and form_fields.go turns a JSON
// schema into fields. blocks.go and rich_text.go are the drawing tools, and package markdown reads what a model wrote.
// denied.go has the text of each refusal.
package render
