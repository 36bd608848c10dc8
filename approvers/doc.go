// Package approvers is the domain of Countersign. It defines the risk of a tool call and the people who must allow
// the call. It also defines the effect of a decision, an edit, a withdrawal or a missing answer.
//
// The package is pure. The functions of the package take values and a time, and return values and events (see Event for
// the kinds). The package reads no clock, does no I/O and starts no goroutine. So a table of cases can test every rule.
//
// The package guarantees:
//
//   - When a person clicks, the person's role is checked. The person must be a member of the role, and the role's tool
//     list must have the tool. At the last stage, the role's ceiling must also be sufficient. Guests, people of other
//     organisations, bots and deactivated accounts can't decide. Requesters can decide only if the policy allows
//     self-approval.
//   - One person counts once over all stages of a request.
//   - If several simultaneous decisions would end a pending request, only one takes effect. If nobody decides, the
//     request is never approved.
//   - A digest binds every decision to the exact bytes that run.
package approvers
