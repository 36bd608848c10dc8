// Package transport receives Slack's deliveries (events, interactions and slash commands) and acknowledges them. There
// are two transports. SocketMode keeps two WebSockets to Slack open. HTTP serves Slack's signed requests. Both
// transports give raw deliveries to one Handler.
//
// Guarantees:
//
//   - A delivery is acknowledged only after Handler.Receive has returned without an error. The delivery is then
//     durable. If Receive fails, the delivery is not acknowledged. If such a delivery is an event, Slack sends it
//     again.
//   - Each delivery has a different time of receipt. These times are in the order of arrival over all connections,
//     unless the system clock is set back.
//   - Handler.Lane names the lane of a delivery. Socket Mode calls Receive in order for the deliveries of one lane, and
//     usually in parallel for different lanes. Requests over HTTP have no order. The times of receipt show which
//     request came first.
//   - If Slack wants a socket to be replaced, the old socket is read until Slack closes it. A delivery is acknowledged
//     through the socket from which it was read.
//   - The time and the size of an HTTP request are limited. The signature of a request is verified before its content
//     is parsed. A request with an effect, such as a click, is accepted only once while its signature is valid.
//   - When the context of Run ends, received deliveries are passed to the handler and acknowledged before Run returns.
//
// The package reads only the parts of a payload that distinguish the kinds of requests. The package never stores,
// repeats or interprets a delivery. If Slack gets no acknowledgement for an event, it sends the event again. The
// handler recognises such copies. This package imports only one other package of the module: store, for the names of
// the kinds of deliveries (store.InboxKind).
//
// Read transport.go first. socket_mode.go uses connection.go, connections.go and lanes.go; http.go uses request.go,
// replays.go, senders.go and gate.go.
package transport
