// Package bot is the Slack edge: what people say and click comes in, and what Slack must show goes out. It is the only
// importer of slack-go.
//
// It promises:
//
//   - A delivery is durable in the inbox before Slack is told that it was received. Only then is it acknowledged;
//     a delivery that could not be stored is not, and Slack sends it again.
//   - Every delivery ends: handled, or set aside with a note and a line in the log. None is tried for ever.
//   - Who clicked is asked of Slack after the click. Where Slack cannot say, the click is refused. A button's value and a
//     modal's metadata only name what was shown; what was shown is read from the stored rendering and compared
//     with the button that was clicked.
//   - Every surface is drawn by one pure function from one snapshot of the state, and is drawn again until Slack shows it.
//     Its message bears the surface's id, so that a post whose answer was lost is found again instead of doubled.
//   - What a person, a model or a tool wrote reaches Slack only through untrusted.go: as literal text, with
//     everything that can't be seen made visible. Nothing is cut without saying so.
//
// The files: socket.go and http.go bring deliveries, edge.go takes them in; handle.go, hear.go, click.go and submit.go work on them; people.go and groups.go
// say who somebody is; show.go and post.go bring surfaces to Slack; render_*.go draw messages and modal_*.go draw modals;
// form.go makes fields from a JSON Schema, and edit.go splices their answers into the stored bytes.
package bot
