package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Attr is an attribute of a span.
type Attr = attribute.KeyValue

// The types of attributes. The names of attributes are in names.go.
var (
	String  = attribute.String
	Strings = attribute.StringSlice
	Int     = attribute.Int
	Bool    = attribute.Bool
	Seconds = attribute.Float64
)

// Work is the work of a process for one timer, or for one request that the process received. The span of a Work begins
// when the work begins, but the span is only created when the turn is known.
type Work struct {
	tracer *Tracer
	began  time.Time
	name   string
	attrs  []Attr
	from   trace.SpanContext // the sender's span

	mu   sync.Mutex
	span trace.Span // nil: the turn is not known yet
	late []Past     // spans that ended before the turn was known
}

type workKey struct{}

// Begin begins work. The caller must call Work.End.
func (t *Tracer) Begin(ctx context.Context, name string, began time.Time, attrs ...Attr) (context.Context, *Work) {
	if t == nil {
		return ctx, nil
	}
	w := &Work{tracer: t, began: began, name: name, attrs: attrs}
	return context.WithValue(ctx, workKey{}, w), w
}

// Sent stores the sender's traceparent. The work's span links to the sender's span. The sender can't choose our trace,
// and can't decide whether we trace.
func (w *Work) Sent(header propagation.TextMapCarrier) {
	if w != nil {
		w.from = trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), header))
	}
}

// End ends the work. problem is the class of its failure, or "".
func (w *Work) End(problem string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.span != nil {
		end(w.span, problem, w.tracer.now())
	}
}

func end(s trace.Span, problem string, at time.Time) {
	if problem != "" {
		s.SetAttributes(String(ErrorType, problem))
		s.SetStatus(codes.Error, "")
	}
	s.End(trace.WithTimestamp(at))
}

func workOf(ctx context.Context) *Work {
	w, _ := ctx.Value(workKey{}).(*Work)
	return w
}

// Subject is the turn or the request that work belongs to.
type Subject struct {
	Turn    string
	Request string // empty: the whole turn
	Name    string // the new name of the work's span; empty: the name does not change
	Starts  bool   // the work starts the turn, so its span is the turn's main span
}

// Belongs sets the turn to which the current work belongs. Only the first call has an effect. Later calls, and calls
// without current work, return false.
func Belongs(ctx context.Context, to Subject) bool {
	w := workOf(ctx)
	if w == nil || to.Turn == "" {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.span != nil {
		return false
	}
	if to.Name != "" {
		w.name = to.Name
	}
	kind := trace.SpanKindInternal
	if received[w.name] {
		kind = trace.SpanKindConsumer
	}
	o := []trace.SpanStartOption{trace.WithTimestamp(w.began), trace.WithAttributes(w.attrs...), trace.WithSpanKind(kind)}
	if w.from.IsValid() {
		o = append(o, trace.WithLinks(trace.Link{SpanContext: w.from}))
	}
	under := context.Background()
	if to.Starts {
		under = withIDs(under, traceOf(to.Turn), spanOf(to.Turn))
	} else {
		under = trace.ContextWithRemoteSpanContext(under, w.tracer.contextOf(to.Turn, mainOf(to)))
	}
	_, w.span = w.tracer.tracer.Start(under, w.name, o...)
	for _, p := range w.late {
		w.tracer.past(trace.ContextWithSpan(context.Background(), w.span), p)
	}
	w.late = nil
	return true
}

func mainOf(to Subject) string {
	if to.Request != "" {
		return to.Request
	}
	return to.Turn
}

// current returns a context with the innermost span of the current work, or nil if the work has no span yet.
func (w *Work) current(ctx context.Context) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.span == nil {
		return nil
	}
	if s := trace.SpanContextFromContext(ctx); s.IsValid() && s.TraceID() == w.span.SpanContext().TraceID() {
		return ctx
	}
	return trace.ContextWithSpan(ctx, w.span)
}

// Span is a part of the current work. A nil Span has no effect.
type Span struct {
	work *Work
	span trace.Span
}

// Start starts a span within the current work, if the work's turn is known.
func Start(ctx context.Context, name string, kind Kind, attrs ...Attr) (context.Context, *Span) {
	w := workOf(ctx)
	if w == nil {
		return ctx, nil
	}
	within := w.current(ctx)
	if within == nil {
		return ctx, nil
	}
	ctx, span := w.tracer.tracer.Start(within, name, trace.WithTimestamp(w.tracer.now()), trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	return ctx, &Span{w, span}
}

// Set adds attributes.
func (s *Span) Set(attrs ...Attr) {
	if s != nil {
		s.span.SetAttributes(attrs...)
	}
}

// Texts reports whether the operator allows texts of conversations in the span.
func (s *Span) Texts() bool { return s != nil && s.work.tracer.texts && s.span.IsRecording() }

// LinkTo adds a link from the span s to the main span of a request.
func (s *Span) LinkTo(turn, request string) {
	if s != nil && request != "" {
		s.span.AddLink(trace.Link{SpanContext: s.work.tracer.contextOf(turn, request)})
	}
}

// End ends the span. problem is the class of a failure, or "".
func (s *Span) End(problem string) {
	if s != nil {
		end(s.span, problem, s.work.tracer.now())
	}
}

// Past is a span that has already ended.
type Past struct {
	Name    string
	Kind    Kind
	Began   time.Time
	Ended   time.Time // zero: now
	Attrs   []Attr
	Problem string // class of the failure; empty: no failure

	Main   string  // the turn or request whose main span this is; empty: this is not a main span
	Of     Subject // for Tracer.Past: a turn or request; its main span is the parent of the past span
	Linked bool    // for Tracer.Past: the span links to the current span
}

// Record creates a span that has already ended, within the current work. If the work's turn is not known yet, the span
// is made when the turn is known.
func Record(ctx context.Context, p Past) {
	w := workOf(ctx)
	if w == nil {
		return
	}
	if within := w.current(ctx); within != nil {
		w.tracer.past(within, p)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.late) < mostLate {
		w.late = append(w.late, p)
	}
}

// mostLate limits the number of spans that wait until the turn is known.
const mostLate = 64

// Past creates a span that has already ended, under the main span of a turn or a request.
func (t *Tracer) Past(ctx context.Context, p Past) {
	if t == nil {
		return
	}
	within := trace.ContextWithRemoteSpanContext(context.Background(), t.contextOf(p.Of.Turn, mainOf(p.Of)))
	if p.Main == p.Of.Turn {
		within = withIDs(context.Background(), traceOf(p.Of.Turn), spanOf(p.Of.Turn))
	}
	var link trace.SpanContext
	if w := workOf(ctx); w != nil && p.Linked {
		if current := w.current(ctx); current != nil {
			link = trace.SpanContextFromContext(current)
		}
	}
	t.past(within, p, link)
}

func (t *Tracer) past(within context.Context, p Past, links ...trace.SpanContext) {
	o := []trace.SpanStartOption{trace.WithTimestamp(p.Began), trace.WithSpanKind(p.Kind), trace.WithAttributes(p.Attrs...)}
	for _, l := range links {
		if l.IsValid() {
			o = append(o, trace.WithLinks(trace.Link{SpanContext: l}))
		}
	}
	if in := trace.SpanContextFromContext(within); p.Main != "" && in.IsValid() {
		within = withIDs(within, in.TraceID(), spanOf(p.Main))
	}
	_, s := t.tracer.Start(within, p.Name, o...)
	if p.Ended.IsZero() {
		p.Ended = t.now()
	}
	end(s, p.Problem, p.Ended)
}

// Inject adds the header traceparent for the current span to an outgoing request.
func Inject(ctx context.Context, to propagation.TextMapCarrier) {
	if w := workOf(ctx); w != nil {
		if within := w.current(ctx); within != nil {
			propagation.TraceContext{}.Inject(within, to)
		}
	}
}

// Kind is the kind of a span.
type Kind = trace.SpanKind

// The kinds of spans.
const (
	Internal = trace.SpanKindInternal
	Client   = trace.SpanKindClient
)

// Carriers of the header traceparent, for Inject and Sent.
type (
	// Header carries traceparent in HTTP headers.
	Header = propagation.HeaderCarrier
	// Map carries traceparent in a map of strings.
	Map = propagation.MapCarrier
)
