package tracing

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// LogTraceID is the name of the trace's id in log lines, in audit records and in exemplars.
const (
	LogTraceID = "trace_id"
	logSpanID  = "span_id"
)

// The function "sampled" returns the context of the current span. If the span is not sent, the second result is false.
func sampled(ctx context.Context) (trace.SpanContext, bool) {
	w := workOf(ctx)
	if w == nil {
		return trace.SpanContext{}, false
	}
	within := w.current(ctx)
	if within == nil {
		return trace.SpanContext{}, false
	}
	c := trace.SpanContextFromContext(within)
	return c, c.IsSampled()
}

// Handler returns a handler that adds ids to log lines. A line gets the ids of the trace and the span in its context.
func (t *Tracer) Handler(next slog.Handler) slog.Handler {
	if t == nil {
		return next
	}
	return handler{next}
}

type handler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if c, ok := sampled(ctx); ok {
		r = r.Clone()
		r.AddAttrs(slog.String(LogTraceID, c.TraceID().String()), slog.String(logSpanID, c.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
