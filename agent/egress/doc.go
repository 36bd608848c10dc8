// Package egress restricts outgoing connections. Every HTTP connection of a tool goes through a [Guard].
//
// Guarantees:
//
//   - The guard checks exactly the address to which the connection is made. The dialer makes the check after it has
//     resolved the name, and before the socket connects. A name that later resolves differently can't evade the check.
//   - An address outside the public internet is permitted only if an allow entry names it. Examples are this machine,
//     private networks, the cloud's metadata service, and other notations of these addresses.
//   - A redirect is a new connection, and is checked like the first connection. Secrets are not sent to another host,
//     and requests that write are not redirected to another host.
//   - No proxy is used. Environment variables such as HTTPS_PROXY have no effect.
//   - A response's header and body are limited in size, and nothing is decompressed.
//
// docs/http.md lists the refused addresses and the limits.
package egress
