// Package httptool makes tools from the HTTP endpoints in the policy file, and from the operations of OpenAPI 3 files.
//
// Guarantees:
//
//   - An argument stays in its place. It is percent-encoded for the segment, parameter, header or body that the
//     declaration assigns to it. It never changes the scheme or host, and never starts another segment, parameter or
//     header. A value that would do so is refused before the request is sent.
//   - The approved bytes are sent: a body consists of the stored bytes of the arguments, so numbers keep their digits.
//   - A run reports its outcome. If nothing was sent, or the server refused, nothing was done. If a request that writes
//     was sent and there is no clear response, the outcome is unknown ([agent.ErrOutcomeUnknown]).
//   - Values of the environment are sent only to the server. If the server repeats them, they are removed from results
//     and errors.
//   - Every connection goes through package egress.
//
// docs/http.md has the details, with tables of outcomes and limits.
package httptool
