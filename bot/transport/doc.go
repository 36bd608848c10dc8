// Package transport receives Slack's deliveries (events, interactions and slash commands) and acknowledges them. There
// are two transports: SocketMode keeps two WebSockets to Slack open, HTTP serves Slack's signed requests. Both give raw
// deliveries to one Handler.
//
// Guarantees:
//
//   - A delivery is acknowledged only after Handler.Receive has returned without an error, which means that the
//     delivery is durable. If Receive fails, the delivery is not acknowledged; if it is an event, Slack sends it again.
//   - Each delivery has a different time of receipt. Over all connections, these times are in the order of arrival.
//   - Socket Mode calls Receive for the deliveries of one lane one after another, and for others in parallel. Requests
//     over HTTP have no order among themselves; their times of receipt show which came first.
//   - A socket that Slack wants replaced is read until Slack closes it. What was read from a socket is acknowledged
//     through the same socket.
//   - A request over HTTP is limited in time and size, and its signature is verified before anything in it is parsed. A
//     request with an effect, such as a click, is accepted only once while its signature is valid.
//   - When the context of Run ends, deliveries that were received are still passed to the handler and acknowledged
//     before Run returns.
//
// The package reads only as much of a payload as it needs to tell the kinds of requests apart. It never stores or
// repeats a delivery, and never decides what a delivery means. Slack delivers again if it got no acknowledgement; the
// handler recognises such copies. Of this module's other packages, this one imports only store, for the names of the
// kinds of deliveries (store.InboxKind).
//
// Read transport.go first. socket_mode.go uses connection.go, connections.go and lanes.go; http.go uses request.go,
// replays.go, senders.go and gate.go.
package transport
