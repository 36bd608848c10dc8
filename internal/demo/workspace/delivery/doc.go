// Package delivery sends events and interactions to the app as Slack does. The deliveries use Socket Mode, requests
// over HTTP, or an implementation of App.
//
//   - Every delivery is an envelope with its own id. The app must acknowledge the envelope within the ack timeout.
//   - If an event is not acknowledged, it is repeated in a new envelope after each of the retry delays. While no app is
//     connected, events wait in a queue for as long as Slack would retry them.
//   - An interaction is sent once. The person waits for the acknowledgement, which may have a payload.
//   - Faults, which are switched on by name, apply to the first attempt of a delivery. Mishaps apply to every attempt.
//
// Hub has its own lock. While the lock is held, Hub calls only three functions of the workspace: Faults, Mishaps and
// Pick. The tests of package workspace (delivery_test.go, connections_test.go) test this package with slack-go as the
// app.
package delivery
