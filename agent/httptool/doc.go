// Package httptool makes tools from the HTTP endpoints in the policy file, and from the operations of OpenAPI 3 files.
//
// Guarantees:
//
//   - An argument stays in its place. The argument is encoded for the segment, parameter, header or body that the
//     declaration assigns to it. An argument can't change the scheme or host, or start another segment, parameter or
//     header. A value with such an effect is refused before the request is sent.
//   - The approved bytes are sent. A body consists of the stored bytes of the arguments, so numbers keep their digits.
//   - The outcome of a run is correct. If nothing was sent, or if the server refused the request, nothing was done.
//     If a request that writes was sent and there is no clear response, the outcome is unknown
//     ([agent.ErrOutcomeUnknown]).
//   - Values of environment variables are sent only to the server. If the server's response contains these values, they
//     are removed from results and errors.
//   - Every connection goes through package egress.
//
// docs/http.md has the details, with tables of outcomes and limits.
package httptool
