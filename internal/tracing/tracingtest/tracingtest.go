// Package tracingtest records spans for tests.
package tracingtest

import (
	"context"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"countersign/internal/tracing"
)

// Recorder has the spans that have ended.
type Recorder = tracetest.InMemoryExporter

// New returns a tracer, and the recorder of its spans.
func New(t testing.TB, o tracing.Options) (*tracing.Tracer, *Recorder) {
	t.Helper()
	r := tracetest.NewInMemoryExporter()
	tracer, err := tracing.New(context.WithoutCancel(t.Context()), sdk.NewSimpleSpanProcessor(r), o)
	if err != nil {
		t.Fatal(err)
	}
	return tracer, r
}

// Within begins work of a turn. Within returns the context of the work, the traceparent of this context, and the
// recorder of the spans.
func Within(t testing.TB, o tracing.Options) (ctx context.Context, traceparent string, r *Recorder) {
	t.Helper()
	tracer, r := New(t, o)
	ctx, work := tracer.Begin(t.Context(), "work", time.Now())
	t.Cleanup(func() { work.End("") })
	tracing.Belongs(ctx, tracing.Subject{Turn: "turn_1"})
	carrier := tracing.Map{}
	tracing.Inject(ctx, carrier)
	return ctx, carrier["traceparent"], r
}
