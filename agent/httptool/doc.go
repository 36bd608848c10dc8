// Package httptool makes tools of HTTP endpoints that the policy file declares, and of the operations of OpenAPI 3 files.
//
// It promises:
//
//   - An argument stays in its place. It is percent-encoded for the segment, the parameter, the header or the body that the declaration gives it, never reaches
//     scheme or host, and can't open another segment, parameter or header. What would, is refused before anything is sent.
//   - What was allowed is what is sent: a body is put together from the stored bytes of the arguments, so a number keeps its digits.
//   - A run says what became of it. Where nothing was sent, or the server refused, nothing was done; where a request that writes went out and no clear answer
//     came back, the outcome is unknown ([agent.ErrOutcomeUnknown]).
//   - Values of the environment go to the server alone. What the server repeats of them is taken out of results and errors.
//   - Every connection goes through package egress.
//
// docs/http.md describes all of it, with the tables of outcomes and limits.
package httptool
