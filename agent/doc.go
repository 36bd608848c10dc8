// Package agent calls the language model and runs tools. The package contains the tool registry, the model loop, and
// the executor that runs allowed calls. Outside of tests, only this package imports the client library go-openai.
//
// Guarantees:
//
//   - The model's output is never repaired. An invalid call never runs. The model receives an error result with the
//     reason.
//   - An answer that breaks off is discarded and requested again. If an answer ends at its length limit, its calls are
//     refused, and its text is shown with a note.
//   - The model receives whole turns. A turn consists of messages of people and the model's steps up to the answer.
//     If all turns together are too long, the oldest turns are dropped first. A call and its result stay together,
//     and the current turn is always included. A proposal of calls names every author whose text the model received,
//     because no author may approve a call of high or critical risk.
//   - A tool runs with the stored bytes as its arguments, and with the execution's id as its idempotency key. The
//     result of a run is recorded even during shutdown. A run without a result is retried, counts as failed, or has
//     an unknown outcome: see [Agent.Run].
//   - All pending work is stored. Each handler may be interrupted at any point. A timer row in the store then starts
//     the handler again.
package agent
