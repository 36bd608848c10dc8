// Package delivery brings events and interactions to the app as Slack does: through Socket Mode, as requests over HTTP,
// or to an App.
//
//   - Every delivery is an envelope with its own id. The app must acknowledge the envelope within the ack timeout.
//   - An unacknowledged event is sent again, in a new envelope, after each of the retry delays. While no app is
//     connected, events wait in a queue for as long as these attempts would take.
//   - An interaction is sent once. The person waits for the acknowledgement, which may have a payload.
//   - Faults (switched on by name) apply to the first attempt of a delivery, Mishaps to every attempt.
//
// Hub has its own lock. While Hub holds its lock, it calls no functions of the workspace except Faults, Mishaps and
// Pick. The tests of package workspace (delivery_test.go, connections_test.go) test this package with slack-go as the
// app.
package delivery
