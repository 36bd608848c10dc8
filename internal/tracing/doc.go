// Package tracing makes the spans of OpenTelemetry. It is the only package that imports OpenTelemetry.
//
// One trace tells one turn, from the person's message to the answer. The ids of the trace and of its main spans are
// hashes of the ids of the turn and of its requests. Every process therefore finds the same trace for a turn, after a
// restart and in another replica, and nothing about traces is stored. See docs/adr/0021-traces.md.
//
// A process begins [Work] when it takes up a timer or a request. The work belongs to a turn as soon as the turn is known
// ([Belongs]); work that belongs to no turn makes no span. Everything below finds the work in its context, so no other
// package needs a tracer. Without a tracer, all functions do nothing.
package tracing
