// Package tracing makes the spans of OpenTelemetry. It is the only package that imports OpenTelemetry.
//
// One trace shows one turn, from the person's message to the answer. The ids of the trace and of its main spans are
// hashes of the ids of the turn and of its requests. So every process finds the same trace for a turn, also after a
// restart and in another replica. The store has no data about traces. See docs/adr/0021-traces.md.
//
// A process begins [Work] when it takes up a timer or a request. The work belongs to a turn when the turn is known
// ([Belongs]). Work without a turn makes no span. All code below finds the work in its context, so no other package
// needs a tracer. Without a tracer, all functions do nothing.
package tracing
