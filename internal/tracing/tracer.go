package tracing

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracer creates spans. A nil Tracer creates no spans. A Tracer is safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	texts    bool
	now      func() time.Time
}

// Options configures a Tracer.
type Options struct {
	Service Service
	Texts   bool             // spans have the texts of messages, arguments and results
	Now     func() time.Time // nil: time.Now
}

// Service describes this process in each trace. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES replace this
// description.
type Service struct {
	Version  string
	Instance string
}

// New returns a tracer that passes its spans to a processor. The standard OTEL_* variables of the SDK apply.
func New(ctx context.Context, processor sdk.SpanProcessor, o Options) (*Tracer, error) {
	about, err := resource.New(ctx,
		resource.WithAttributes(
			attribute.String("service.name", "countersign"), attribute.String("service.version", o.Service.Version),
			attribute.String("service.instance.id", o.Service.Instance),
		),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	t := &Tracer{texts: o.Texts, now: o.Now}
	t.provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(processor), sdk.WithResource(about), sdk.WithIDGenerator(ids{}))
	t.tracer = t.provider.Tracer("countersign", trace.WithInstrumentationVersion(o.Service.Version))
	return t, nil
}

// SetClock replaces the clock. The caller calls SetClock before the first span begins.
func (t *Tracer) SetClock(now func() time.Time) {
	if t != nil {
		t.now = now
	}
}

// Close sends the remaining spans. Close stops when ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// domain separates the hashes for traces from all other hashes.
const domain = "countersign/trace/v1"

// traceOf returns the trace of a turn.
func traceOf(turn string) trace.TraceID {
	sum := sha256.Sum256([]byte(domain + "\x00" + turn))
	return trace.TraceID(sum[:16])
}

// spanOf returns the id of the main span of a turn or a request.
func spanOf(ref string) trace.SpanID {
	sum := sha256.Sum256([]byte(domain + "\x00" + ref))
	return trace.SpanID(sum[16:24])
}

// contextOf returns the context of the main span of a turn, or of a request of the turn. The sampler decides whether
// the span is sent. The sampler uses only the trace's id, so every process makes the same decision.
func (t *Tracer) contextOf(turn, ref string) trace.SpanContext {
	id := traceOf(turn)
	_, probe := t.tracer.Start(withIDs(context.Background(), id, spanOf(ref)), "probe")
	return probe.SpanContext().WithRemote(true)
}

// ID returns the id of a turn's trace in hex. If the turn is not traced, ID returns "".
func (t *Tracer) ID(turn string) string {
	if t == nil || turn == "" {
		return ""
	}
	if c := t.contextOf(turn, turn); c.IsSampled() {
		return c.TraceID().String()
	}
	return ""
}

// ids generates the ids of spans. If the context contains fixed ids, ids returns the fixed ids.
type ids struct{}

type idsKey struct{}

type fixedIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

func withIDs(ctx context.Context, t trace.TraceID, s trace.SpanID) context.Context {
	return context.WithValue(ctx, idsKey{}, fixedIDs{t, s})
}

// NewIDs implements sdk.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	f, _ := ctx.Value(idsKey{}).(fixedIDs)
	return f.trace, f.span
}

// NewSpanID implements sdk.IDGenerator.
func (ids) NewSpanID(ctx context.Context, of trace.TraceID) (s trace.SpanID) {
	if f, ok := ctx.Value(idsKey{}).(fixedIDs); ok && f.trace == of {
		return f.span
	}
	for !s.IsValid() {
		n := rand.Uint64()
		for i := range s {
			s[i] = byte(n >> (8 * i))
		}
	}
	return s
}
