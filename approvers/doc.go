// Package approvers is the domain of Countersign: what risk a tool call bears, who must allow it,
// and what follows when somebody decides, edits, withdraws, or stays silent.
//
// The package is pure. Values and a time go in; values and what follows from them come out. It reads
// no clock, does no I/O and starts no goroutine, so every rule in it can be tested by listing cases.
//
// It promises:
//
//   - Nobody decides without authority at the moment of the click: membership, tool list, ceiling (at the
//     last stage), not a requester, not a guest, stranger, bot or deactivated account.
//   - One person counts once over all stages of a request.
//   - A request leaves the pending state once. Silence never approves.
//   - What was decided is bound by a digest to the exact bytes that run.
package approvers
