package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
)

// traceReceiver receives traces as a collector does, over HTTP.
type traceReceiver struct {
	*testing.T
	server *httptest.Server
	mu     sync.Mutex
	spans  []*otlp.Span
	from   map[string]bool // service.name and service.version
	came   chan struct{}   // closed and replaced when spans come
}

func openTraceReceiver(t *testing.T) *traceReceiver {
	t.Helper()
	r := &traceReceiver{T: t, from: map[string]bool{}, came: make(chan struct{})}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// env returns the environment with which a bot sends its traces to this receiver.
func (r *traceReceiver) env() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + r.server.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-key=of-the-collector", "OTEL_BSP_SCHEDULE_DELAY=20"}
}

func (r *traceReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var batch collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &batch)
	}
	if err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("X-Key") != "of-the-collector" {
		r.Errorf("%s with the key %q: %v", req.URL.Path, req.Header.Get("X-Key"), err)
		http.Error(w, "refused", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range batch.GetResourceSpans() {
		about := of.GetResource().GetAttributes()
		r.from[valueOf(about, "service.name")+" "+valueOf(about, "service.version")] = true
		for _, scope := range of.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
	close(r.came)
	r.came = make(chan struct{})
}

func valueOf(attributes []*common.KeyValue, name string) string {
	for _, a := range attributes {
		if a.GetKey() == name {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// await waits for the first matching span, and returns it.
func (r *traceReceiver) await(what string, fits func(*otlp.Span) bool) *otlp.Span {
	r.Helper()
	late := time.After(patience)
	for {
		r.mu.Lock()
		spans, came := slices.Clone(r.spans), r.came
		r.mu.Unlock()
		if i := slices.IndexFunc(spans, fits); i >= 0 {
			return spans[i]
		}
		var names []string
		for _, s := range spans {
			names = append(names, s.GetName())
		}
		select {
		case <-came:
		case <-late:
			r.Fatalf("%s did not come; these came: %s", what, strings.Join(names, ", "))
		}
	}
}

// The method "named" waits for a span with a name. If beside is not nil, the span must be in the same trace as beside.
func (r *traceReceiver) named(name string, beside *otlp.Span) *otlp.Span {
	r.Helper()
	return r.await("the span "+name, func(s *otlp.Span) bool {
		return s.GetName() == name && (beside == nil || string(s.GetTraceId()) == string(beside.GetTraceId()))
	})
}

// The method "below" checks that a span is below another span, at any depth.
func (r *traceReceiver) below(s, top *otlp.Span) {
	r.Helper()
	for at := s; string(at.GetSpanId()) != string(top.GetSpanId()); {
		parent := at.GetParentSpanId()
		if len(parent) == 0 {
			r.Fatalf("%s is not below %s", s.GetName(), top.GetName())
		}
		at = r.await("the parent of "+at.GetName(), func(o *otlp.Span) bool {
			return string(o.GetSpanId()) == string(parent) && string(o.GetTraceId()) == string(at.GetTraceId())
		})
	}
}

// TestTracesAreSent lets real processes send their traces to a receiver. All bots are killed while a card waits, and
// new bots continue the trace. The test runs with one bot and a store in a file. It also runs with two replicas and a
// database.
func TestTracesAreSent(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		testTracesAreSent(t, openProcessHarness(t), 1)
	})
	t.Run("database", func(t *testing.T) {
		t.Parallel()
		server := pgserver.New(t, "fsync=off")
		p := openProcessHarness(t)
		p.env = append(p.env, "COUNTERSIGN_STORE="+server.URL("postgres"))
		testTracesAreSent(t, p, 2)
	})
}

func testTracesAreSent(t *testing.T, p *processHarness, replicas int) {
	got := openTraceReceiver(t)
	p.env = append(p.env, got.env()...)
	serve := func() (bots []*program) {
		for i := range replicas {
			one := *p
			one.env = append(slices.Clone(p.env), fmt.Sprintf("COUNTERSIGN_CONTROL=%d.sock", i), fmt.Sprintf("COUNTERSIGN_AUDIT_HEADS=heads-%d", i))
			bot, _ := one.serve()
			bots = append(bots, bot)
		}
		return bots
	}
	bots := serve()
	sam, teo := p.watcher("sam"), p.watcher("teo")
	thread := sam.says("#support", "", "@Countersign refund ORD-123, it arrived broken")
	sam.sees("#support", thread, "Waits for Team Lead")
	root := got.named("receive message", nil)
	if len(root.GetParentSpanId()) > 0 {
		t.Error("the main span has a parent")
	}
	got.below(got.named("propose issue_refund", root), root)
	got.named("show card", root)
	for _, bot := range bots {
		bot.cmd.Process.Kill()
		<-bot.gone
	}
	bots = serve()
	teo.clicks("countersign", "", "Approve", "Refund of $49.99 for order ORD-123")
	sam.sees("#support", thread, "I refunded $49.99")
	for _, bot := range bots { // a bot sends its remaining spans when it ends
		if err := bot.end(syscall.SIGTERM); err != nil {
			t.Errorf("asked to stop, the bot ended with %v", err)
		}
	}
	for _, name := range []string{"receive click", "approve issue_refund", "wait for people", "execute_tool issue_refund", "invoke_agent support", "show answer"} {
		got.below(got.named(name, root), root)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	for from := range got.from {
		if !strings.HasPrefix(from, "countersign ") || from == "countersign " {
			t.Errorf("the traces are from %q", from)
		}
	}
}

// In TestTraceOfACaller, another agent with its own trace makes a request. The bot's trace links to the agent's trace,
// but is not a part of the agent's trace. A caller can't choose the trace of the bot's spans, or whether the bot makes
// spans.
func TestTraceOfACaller(t *testing.T) {
	t.Parallel()
	got := openTraceReceiver(t)
	p, bot, _ := openGateway(t)
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, got.env()...)
	bot, _ = p.serve()
	ci := openCaller(t, "http://"+bot.says(`countersign is up.* gateway=(\S+)`), ciToken)
	const theirs, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	ci.wants(ci.do(http.MethodPost, "/v1/requests", refund+`}`, "Idempotency-Key", "call-1", "traceparent", "00-"+theirs+"-"+span+"-00"), http.StatusAccepted, "pending")
	root := got.named("receive call", nil)
	if hex.EncodeToString(root.GetTraceId()) == theirs || len(root.GetParentSpanId()) > 0 {
		t.Errorf("the span is in the trace %x below %x", root.GetTraceId(), root.GetParentSpanId())
	}
	if l := root.GetLinks(); len(l) != 1 || hex.EncodeToString(l[0].GetTraceId()) != theirs || hex.EncodeToString(l[0].GetSpanId()) != span {
		t.Errorf("the span has the links %v", l)
	}
	got.below(got.named("propose issue_refund", root), root)
}
