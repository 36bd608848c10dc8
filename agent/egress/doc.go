// Package egress is the way out: every connection that a tool makes over HTTP goes through a [Guard].
//
// It promises:
//
//   - The address that is checked is the address that is connected to. The check stands in the dialer, after the name was resolved and before the socket connects,
//     so a name that resolves differently the second time gains nothing.
//   - What is not on the public internet is refused, unless an entry of allow names it: this machine, private networks, the cloud's metadata, and whatever leads to them
//     by another notation.
//   - A redirect is a new connection and is checked like the first. Secrets don't go along to another host, and nothing that writes is sent to one.
//   - No proxy, no setting of the environment and no file changes where a request goes.
//   - An answer's header and body are bounded, and nothing is unpacked.
//
// docs/http.md has the table of what is refused and the limits.
package egress
