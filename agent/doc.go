// Package agent connects the program to the model and to tools. The package has the tools that can be called, the loop
// that calls the model, and the executor that runs allowed calls. No other package imports the model client.
//
// Guarantees:
//
//   - The model's output is never repaired. An invalid call never runs. The call becomes an error result that tells the
//     model the reason.
//   - Only complete answers count. A truncated answer is discarded and requested again.
//   - The model receives whole turns. If the turns are too long together, the oldest turns are dropped first. A call
//     and its result stay together, and the current turn is always included. A proposal of calls names every author
//     whose text the model received.
//   - A tool runs the stored bytes, with the execution's id as its idempotency key. The result of a run is recorded
//     even during shutdown. If a run has no result, its outcome is recorded as unknown, never as a failure.
//   - No work waits in memory only. Each handler may be interrupted at any point. Its timer row then starts it again.
package agent
