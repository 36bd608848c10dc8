// Package tracing makes the spans of OpenTelemetry. No other package imports OpenTelemetry.
//
// One trace shows one turn, from the person's message to the answer. The ids of the trace and of its main spans are
// hashes of the ids of the turn and of its requests. So every process computes the same trace for a turn, also after a
// restart and in another replica. The store has no data about traces. See docs/adr/0021-traces.md.
//
// A process begins a [Work] when it starts to handle a timer or a request. The work belongs to a turn when [Belongs]
// has named the turn. Work without a turn makes no span. Called functions find the work in their context, so no other
// package needs a tracer. Without a tracer, all functions do nothing.
package tracing
