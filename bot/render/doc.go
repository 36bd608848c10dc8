// Package render turns stored state into the content that Slack shows: messages, Home tabs and forms, as Block Kit and
// as text.
//
// The package and the packages below it are pure. A caller fills in a View (package wording), and Draw returns the
// messages. The same view always gives the same bytes. Draw uses no network, no clock and no store. DrawHome draws a
// Home tab. Forms are in package form.
//
// render.go selects the function that draws a kind of outbox message. Each kind of message belongs to one package:
//
//   - card: the approval card, the bundle, the card queue, and runs with an unknown outcome.
//   - thread: steps, answers, questions and files in a conversation.
//   - notice: notices to people, channels and operators.
//   - home: Home tabs, and the lines of the lists on them.
//   - form: the forms that buttons open, and the words of refused actions.
//
// These packages do not import each other. They share the packages wording (the state of requests and calls in words,
// and common parts), argument (the arguments of a call), block (the drawing tools), control (the names of buttons and
// inputs, and the tokens) and markdown (the text of a model).
//
// Guarantees:
//
//   - Text of a person, a model or a tool reaches Slack only as literal text (block/untrusted.go). Invisible characters
//     are made visible, and a note marks each cut of a text.
//   - Messages and views stay within Slack's limits for any input. The tests of this package draw each state again with
//     texts of maximum size, and testdata has each state as it should look.
//   - Secret arguments are masked (argument/masked_values.go), except in the form that reveals them to one person.
//   - A button's value and a form's metadata only identify a rendering, and grant nothing (package control).
package render
