package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"countersign/internal/redact"
	"countersign/internal/tracing"
	"countersign/internal/tracing/tracingtest"
)

// clear removes the OTEL_* variables that these tests depend on.
func clear(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_SERVICE_NAME",
	} {
		t.Setenv(name, "")
	}
}

// TestFromEnv checks which environments switch traces on, and which environments are refused.
func TestFromEnv(t *testing.T) {
	clear(t)
	log := slog.New(slog.DiscardHandler)
	for _, tt := range []struct {
		env    map[string]string
		on     bool
		refuse string
	}{
		{env: map[string]string{}},
		{env: map[string]string{"OTEL_SERVICE_NAME": "bot"}},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, on: true},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}, on: true},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, on: true},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, on: true},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}},
		{env: map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, refuse: "OTEL_TRACES_EXPORTER"},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, refuse: "OTEL_EXPORTER_OTLP_PROTOCOL"},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, refuse: "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, on: true},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, refuse: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_HEADERS": "x-key"}, refuse: "OTEL_EXPORTER_OTLP_HEADERS"},
	} {
		tracer, err := tracing.FromEnv(t.Context(), func(name string) string { return tt.env[name] }, tt.env["OTEL_EXPORTER_OTLP_HEADERS"], tracing.Service{}, nil, log)
		switch {
		case tt.refuse != "":
			if !errors.Is(err, tracing.ErrVariable) || !strings.Contains(err.Error(), tt.refuse) {
				t.Errorf("%v: %v", tt.env, err)
			}
		case err != nil || (tracer != nil) != tt.on:
			t.Errorf("%v: %v, on is %t", tt.env, err, tracer != nil)
		}
		if err := tracer.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// grpcReceiver receives traces over gRPC.
type grpcReceiver struct {
	collector.UnimplementedTraceServiceServer
	got  chan *collector.ExportTraceServiceRequest
	keys chan []string
}

func (r *grpcReceiver) Export(ctx context.Context, in *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	sent, _ := metadata.FromIncomingContext(ctx)
	r.got <- in
	r.keys <- sent.Get("x-key")
	return &collector.ExportTraceServiceResponse{}, nil
}

// TestOverGRPC sends a span over gRPC with a header. Afterwards, the header's value is masked in all texts.
func TestOverGRPC(t *testing.T) {
	clear(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &grpcReceiver{got: make(chan *collector.ExportTraceServiceRequest, 1), keys: make(chan []string, 1)}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) }) // Serve returns an error when the server is stopped
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + l.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
	for name, value := range env {
		t.Setenv(name, value)
	}
	tracer, err := tracing.FromEnv(t.Context(), func(name string) string { return env[name] }, "x-team=bots, x-key=of%2Dthe-collector", tracing.Service{Version: "1.2.3"}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, work := tracer.Begin(t.Context(), "work", time.Now())
	tracing.Belongs(ctx, tracing.Subject{Turn: "turn_1"})
	work.End("")
	if err := tracer.Close(t.Context()); err != nil { // sends the span
		t.Fatal(err)
	}
	in := <-r.got
	if key := <-r.keys; len(key) != 1 || key[0] != "of-the-collector" {
		t.Errorf("the header is %q", key)
	}
	if n := len(in.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()); n != 1 {
		t.Errorf("%d spans came", n)
	}
	if text := redact.Text("the key is of-the-collector"); strings.Contains(text, "collector") {
		t.Error(text)
	}
}

// TestProbe tries receivers over both protocols. A receiver gets a message without spans, and the headers.
func TestProbe(t *testing.T) {
	clear(t)
	got := make(chan string, 2)
	var status atomic.Int32
	status.Store(http.StatusOK)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Method + " " + r.URL.Path + " " + r.Header.Get("x-key")
		w.WriteHeader(int(status.Load()))
	}))
	defer web.Close()
	probe := func(endpoint, protocol string) (string, error) {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
		return tracing.Probe(t.Context(), os.Getenv, "x-key=sesame")
	}
	if address, err := probe("", ""); address != "" || err != nil {
		t.Errorf("without a receiver: %q, %v", address, err)
	}
	if address, err := probe(web.URL, ""); address != web.URL || err != nil {
		t.Fatalf("%q, %v", address, err)
	}
	if in := <-got; in != "POST /v1/traces sesame" {
		t.Errorf("the receiver got %q", in)
	}
	status.Store(http.StatusUnauthorized)
	if _, err := probe(web.URL, ""); err == nil || errors.Is(err, tracing.ErrVariable) || !strings.Contains(err.Error(), "401") {
		t.Errorf("a refused key: %v", err)
	}
	if _, err := probe("http://127.0.0.1:1", "grpc"); err == nil || errors.Is(err, tracing.ErrVariable) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := probe(web.URL, "http/json"); !errors.Is(err, tracing.ErrVariable) {
		t.Errorf("a wrong protocol: %v", err)
	}
}

// TestSampling checks that two processes make the same decision about a turn. Either all spans of a turn are sent, or
// none of them.
func TestSampling(t *testing.T) {
	clear(t)
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.3")
	one, sent := tracingtest.New(t, tracing.Options{})
	other, _ := tracingtest.New(t, tracing.Options{})
	const turns = 400
	traced := 0
	for i := range turns {
		turn := fmt.Sprint("turn_", i)
		if one.ID(turn) != other.ID(turn) {
			t.Fatalf("%s: %q and %q", turn, one.ID(turn), other.ID(turn))
		}
		want := 0
		if one.ID(turn) != "" {
			traced++
			want = 4
		}
		sent.Reset()
		ctx, work := one.Begin(t.Context(), "root", time.Now())
		tracing.Record(ctx, tracing.Past{Name: "before", Began: time.Now()})
		tracing.Belongs(ctx, tracing.Subject{Turn: turn, Starts: true})
		_, part := tracing.Start(ctx, "part", tracing.Client)
		part.End("")
		work.End("")
		_, later := one.Begin(t.Context(), "later", time.Now())
		tracing.Belongs(ctx, tracing.Subject{Turn: turn})
		later.End("")
		one.Past(t.Context(), tracing.Past{Name: "past", Began: time.Now(), Of: tracing.Subject{Turn: turn, Request: "req_1"}})
		if got := sent.GetSpans(); len(got) != want {
			t.Fatalf("%d spans were sent, want %d: %v", len(got), want, got)
		}
	}
	if traced < turns/5 || traced > turns/2 {
		t.Errorf("%d of %d turns are traced", traced, turns)
	}
}

// Work without a turn makes no span. Work that is nested inside work without a turn also makes no span.
func TestWorkWithoutATurn(t *testing.T) {
	clear(t)
	tracer, sent := tracingtest.New(t, tracing.Options{})
	ctx, work := tracer.Begin(t.Context(), "work", time.Now())
	for range 1000 {
		tracing.Record(ctx, tracing.Past{Name: "part", Began: time.Now()})
	}
	inner, span := tracing.Start(ctx, "part", tracing.Internal)
	header := tracing.Map{}
	tracing.Inject(inner, header)
	span.Set(tracing.Int("n", 1))
	span.End("")
	work.End("failed")
	if got := sent.GetSpans(); len(got) > 0 || len(header) > 0 || span.Texts() {
		t.Errorf("%v %v", got, header)
	}
	ctx, work = tracer.Begin(t.Context(), "work", time.Now())
	for range 1000 {
		tracing.Record(ctx, tracing.Past{Name: "part", Began: time.Now()})
	}
	tracing.Belongs(ctx, tracing.Subject{Turn: "turn_1"})
	work.End("")
	if n := len(sent.GetSpans()); n > 100 {
		t.Errorf("%d spans waited in memory", n)
	}
}

// Without a tracer, all functions do nothing, and log lines do not change.
func TestOff(t *testing.T) {
	var off *tracing.Tracer
	ctx, work := off.Begin(t.Context(), "work", time.Now())
	work.Sent(tracing.Map{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	tracing.Belongs(ctx, tracing.Subject{Turn: "turn_1", Starts: true})
	inner, span := tracing.Start(ctx, "part", tracing.Client)
	span.LinkTo("turn_1", "req_1")
	header := tracing.Map{}
	tracing.Inject(inner, header)
	off.Past(inner, tracing.Past{Of: tracing.Subject{Turn: "turn_1"}})
	tracing.Record(inner, tracing.Past{})
	span.End("")
	work.End("")
	if len(header) > 0 || off.ID("turn_1") != "" || inner != ctx || off.Close(ctx) != nil {
		t.Errorf("%v %q", header, off.ID("turn_1"))
	}
	var out bytes.Buffer
	log := slog.New(off.Handler(slog.NewTextHandler(&out, nil)))
	log.InfoContext(inner, "done")
	if strings.Contains(out.String(), tracing.LogTraceID) {
		t.Error(out.String())
	}
}

// TestIDs checks that the ids of traces stay the same, because other processes and other versions add spans to the same
// trace.
func TestIDs(t *testing.T) {
	clear(t)
	tracer, sent := tracingtest.New(t, tracing.Options{})
	tracer.Past(t.Context(), tracing.Past{Name: "root", Began: time.Now(), Of: tracing.Subject{Turn: "turn_1"}, Main: "turn_1"})
	tracer.Past(t.Context(), tracing.Past{Name: "part", Began: time.Now(), Of: tracing.Subject{Turn: "turn_1", Request: "req_1"}})
	spans := sent.GetSpans()
	const id, root, request = "dd3d2f62b1dcb541ef17a7b3829fa2ba", "97d57393c7641866", "02e7dc0e9039ae7c"
	if got := spans[0].SpanContext; got.TraceID().String() != id || got.SpanID().String() != root || tracer.ID("turn_1") != id {
		t.Errorf("the main span is %s %s", got.TraceID(), got.SpanID())
	}
	if got := spans[1].Parent; got.TraceID().String() != id || got.SpanID().String() != request || spans[1].SpanKind != trace.SpanKindInternal {
		t.Errorf("the part is below %s %s, of the kind %s", got.TraceID(), got.SpanID(), spans[1].SpanKind)
	}
}

// The function "off" makes the same calls as the traced code of the program.
func off(ctx context.Context, t *tracing.Tracer, header tracing.Map) {
	ctx, work := t.Begin(ctx, "work", time.Time{})
	tracing.Belongs(ctx, tracing.Subject{Turn: "turn_1"})
	ctx, span := tracing.Start(ctx, "part", tracing.Client)
	tracing.Inject(ctx, header)
	span.End("")
	work.End("")
}

// TestOffCostsNothing checks that no memory is allocated when traces are off.
func TestOffCostsNothing(t *testing.T) {
	header := tracing.Map{}
	if n := testing.AllocsPerRun(100, func() { off(t.Context(), nil, header) }); n > 0 {
		t.Errorf("%.0f allocations", n)
	}
}

func BenchmarkOff(b *testing.B) {
	header := tracing.Map{}
	for b.Loop() {
		off(b.Context(), nil, header)
	}
}
