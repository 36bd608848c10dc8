// Package egress guards outgoing connections: every HTTP connection of a tool goes through a [Guard].
//
// Guarantees:
//
//   - The checked address is the connected address. The check is in the dialer, after the name was resolved and before
//     the socket connects, so a name that resolves differently the second time gains nothing.
//   - Addresses outside the public internet are refused unless an entry of allow names them: this machine, private
//     networks, the cloud's metadata, and other notations of such addresses.
//   - A redirect is a new connection and is checked like the first. Secrets are not sent to another host, and requests
//     that write are not redirected to one.
//   - No proxy, environment variable or file changes the destination of a request.
//   - A response's header and body are limited in size, and nothing is decompressed.
//
// docs/http.md lists the refused addresses and the limits.
package egress
