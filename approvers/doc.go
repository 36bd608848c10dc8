// Package approvers is the domain of Countersign: the risk of a tool call, the people who must allow it, and the effect
// of a decision, an edit, a withdrawal or silence.
//
// The package is pure. Values and a time go in; values and events come out (Event lists the kinds). It reads no clock,
// does no I/O and starts no goroutine, so every rule can be tested by listing cases.
//
// It guarantees:
//
//   - Whether a person may decide is checked at the click: membership, tool list, ceiling at the last stage. Guests,
//     people of other organisations, bots and deactivated accounts can't decide. Requesters can't, unless the policy
//     allows self-approval.
//   - One person counts once over all stages of a request.
//   - Of several decisions that would end a pending request, one wins. Silence never approves.
//   - A digest binds every decision to the exact bytes that run.
package approvers
