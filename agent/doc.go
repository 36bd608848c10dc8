// Package agent is the model's edge: the tools that can be called, the loop that asks the model, and the executor that runs
// what was allowed. It is the only importer of the model client.
//
// It promises:
//
//   - Whatever a model answers, nothing of it is repaired. What can't be taken becomes an error result that tells
//     the model why; it never becomes a run.
//   - An answer counts when it is whole. One that broke off is thrown away and asked for again.
//   - The model is given whole turns, oldest dropped first; a call and its result are never parted, and the turn under way is
//     always there. Every author whose words were given is named in the proposal.
//   - A tool runs the stored bytes, under the execution's id as its key, and what it answered is recorded even when the process
//     is being stopped. What was not answered is never called a failure: it is unknown.
//   - Nothing waits in memory. Each handler may be stopped at any instruction; the timer's row brings it back.
package agent
