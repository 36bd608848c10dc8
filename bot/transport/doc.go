// Package transport receives Slack's deliveries (events, interactions and slash commands) and acknowledges them. There
// are two transports: SocketMode keeps two WebSockets to Slack open, HTTP serves Slack's signed requests. Both give raw
// deliveries to one Handler.
//
// It promises:
//
//   - A delivery is acknowledged only after Handler.Receive has returned without an error, which means that the
//     delivery is durable. If Receive fails, the delivery is not acknowledged, and Slack sends events again.
//   - Each delivery has a time of receipt of its own, in the order of arrival, on whichever connection it came.
//   - Socket Mode calls Receive for the deliveries of one lane one after another, and for others in parallel. Requests
//     over HTTP have no order among themselves; their times of receipt show which came first.
//   - A socket that Slack wants replaced is read until Slack closes it. What was read from a socket is acknowledged
//     through the same socket.
//   - A request over HTTP is limited in time and size, and its signature is verified before anything in it is parsed. A
//     request that acts once, such as a click, is accepted once for as long as its signature is valid.
//   - When the context of Run ends, what was received is still handed over and acknowledged before Run returns.
//
// It never reads more of a payload than it needs to tell the kinds of requests apart, never stores or repeats a
// delivery, and never decides what a delivery means. The handler recognises copies of a delivery: Slack delivers again
// if it got no acknowledgement. Of this module's packages, this one imports only store, and uses only its names for the
// kinds of deliveries (store.InboxKind).
//
// Read transport.go first. socket_mode.go uses connection.go, connections.go and lanes.go; http.go uses request.go,
// replays.go, senders.go and gate.go.
package transport
