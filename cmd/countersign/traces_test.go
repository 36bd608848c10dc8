package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"countersign/approvers"
	"countersign/internal/tracing"
	"countersign/store"
)

// tracedBot is a harness whose bots are traced.
type tracedBot struct {
	*synctestHarness
	sent *tracetest.InMemoryExporter
	mu   sync.Mutex
	gave []string // traceparent of each request to the model
}

// newTracer gives the next process a tracer that knows nothing of the earlier ones.
func (b *tracedBot) newTracer() {
	t, err := tracing.New(b.ctx, sdk.NewSimpleSpanProcessor(b.sent), tracing.Options{Service: tracing.Service{Version: "1.2.3", Instance: "here"}})
	b.ok(err)
	b.setup.tracer = t
}

func inTracedTime(t *testing.T, several bool, fn func(*tracedBot)) {
	b := &tracedBot{sent: tracetest.NewInMemoryExporter()}
	inFakedTime(t, func(h *synctestHarness) {
		b.synctestHarness = h
		h.board = boardIf(several)
		h.instead = func(model http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					b.mu.Lock()
					b.gave = append(b.gave, r.Header.Get("traceparent"))
					b.mu.Unlock()
				}
				model.ServeHTTP(w, r)
			})
		}
		b.newTracer()
	}, func(*synctestHarness) { fn(b) })
}

// span finds the only span with a name.
func (b *tracedBot) span(name string) tracetest.SpanStub {
	b.Helper()
	all := b.named(name)
	if len(all) != 1 {
		b.Fatalf("there are %d spans %q:\n%s", len(all), name, b.tree())
	}
	return all[0]
}

func (b *tracedBot) named(name string) []tracetest.SpanStub {
	return slices.DeleteFunc(b.sent.GetSpans(), func(s tracetest.SpanStub) bool { return s.Name != name })
}

// tree lists the spans with their parents.
func (b *tracedBot) tree() string {
	var out strings.Builder
	for _, s := range b.sent.GetSpans() {
		fmt.Fprintf(&out, "%s %s ← %s: %s %v %s\n", s.SpanContext.TraceID(), s.SpanContext.SpanID(), s.Parent.SpanID(), s.Name, s.Attributes, s.Status.Code)
	}
	return out.String()
}

func attr(s tracetest.SpanStub, name string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == name {
			return a.Value.Emit()
		}
	}
	return ""
}

func under(child, parent tracetest.SpanStub) bool {
	return child.Parent.SpanID() == parent.SpanContext.SpanID() && child.Parent.TraceID() == parent.SpanContext.TraceID()
}

func linksTo(s, other tracetest.SpanStub) bool {
	return slices.ContainsFunc(s.Links, func(l sdk.Link) bool {
		return l.SpanContext.SpanID() == other.SpanContext.SpanID() && l.SpanContext.TraceID() == other.SpanContext.TraceID()
	})
}

// TestTraceOfAJourney follows one call from the message to the answer. An hour passes between the card and the click, and
// meanwhile a new process takes over, or several replicas share the work and one of them is replaced. All spans belong
// to one trace, which is a tree, and none has a text, an argument or a person.
func TestTraceOfAJourney(t *testing.T) {
	t.Parallel()
	for _, several := range []bool{false, true} {
		t.Run(strings.TrimSpace("journey"+amongReplicas(several)), func(t *testing.T) {
			inTracedTime(t, several, func(b *tracedBot) {
				b.says("patient zebra")
				r := b.asked("zebra")
				b.within(time.Minute, "the card", b.idle)
				root := b.span(tracing.SpanMessage)
				if root.Parent.IsValid() || root.SpanKind != trace.SpanKindConsumer {
					t.Errorf("the main span is under %s, of the kind %s", root.Parent.SpanID(), root.SpanKind)
				}
				b.newTracer()
				b.restart()
				b.pass(3 * time.Hour)
				b.ok(b.approve("teo", "zebra", b.card("zebra")))
				b.within(time.Minute, "the run", func() bool { return b.ran("zebra") == 1 && b.idle() })

				b.oneTree(r.Turn)
				propose, wait, click := b.span("propose patient"), b.span(tracing.SpanWait), b.span(tracing.SpanClick)
				if think := b.named("think"); len(think) != 2 || !under(think[0], root) || !under(propose, think[0]) {
					t.Errorf("the proposal is not below the first of two model calls")
				}
				if took := wait.EndTime.Sub(wait.StartTime); took < time.Hour || !under(wait, propose) || !linksTo(wait, click) {
					t.Errorf("the wait took %s, is below %s, and has the links %v", took, wait.Parent.SpanID(), wait.Links)
				}
				if !under(click, propose) || !under(b.span("approve patient"), click) || !click.StartTime.After(propose.StartTime.Add(time.Hour)) {
					t.Error("the click is not below the proposal, or the decision not below the click")
				}
				tool := b.span("execute_tool patient")
				if run := b.span("run"); !under(run, propose) || !under(tool, run) || !linksTo(tool, propose) {
					t.Error("the run is not below the proposal")
				}
				if card := b.named("show card"); len(card) == 0 || !under(card[0], propose) || card[0].EndTime.After(click.StartTime) {
					t.Error("the card is not below the proposal")
				}
				agent := b.span("invoke_agent support")
				if !under(agent, root) || attr(agent, tracing.State) != string(approvers.TurnAnswered) || agent.EndTime.Sub(agent.StartTime) < time.Hour {
					t.Errorf("the turn is %v", agent.Attributes)
				}
				if len(b.named("show answer")) == 0 || len(b.named("slack chat.postMessage")) == 0 || len(b.named("slack users.info")) == 0 {
					t.Error("the answer, or calls of Slack, are missing")
				}
				b.modelWasTold(tool)
				b.isAnonymous("zebra", "patient zebra", "Counts.", "counted", "U0001", "U0002", "Sam", "Teo", "C0", "settled")
				b.isNamed(r)
				if t.Failed() {
					t.Log(b.tree())
				}
			})
		})
	}
}

// ran returns how often the tool ran for an argument.
func (b *tracedBot) ran(n string) int {
	b.synctestHarness.mu.Lock()
	defer b.synctestHarness.mu.Unlock()
	return b.runs[n]
}

// oneTree checks that all spans belong to a turn's trace, and that each has a parent that was sent.
func (b *tracedBot) oneTree(turn string) {
	b.Helper()
	ids := map[trace.SpanID]bool{}
	for _, s := range b.sent.GetSpans() {
		if ids[s.SpanContext.SpanID()] {
			b.Errorf("two spans have the id of %s", s.Name)
		}
		ids[s.SpanContext.SpanID()] = true
	}
	roots := 0
	for _, s := range b.sent.GetSpans() {
		if got := s.SpanContext.TraceID().String(); got != b.setup.tracer.ID(turn) {
			b.Errorf("%s is in the trace %s", s.Name, got)
		}
		if !s.Parent.IsValid() {
			roots++
		} else if !ids[s.Parent.SpanID()] {
			b.Errorf("the parent of %s was not sent", s.Name)
		}
		if s.Status.Code == codes.Error {
			b.Errorf("%s has failed: %v", s.Name, s.Attributes)
		}
		if s.EndTime.Before(s.StartTime) {
			b.Errorf("%s ends before it begins", s.Name)
		}
	}
	if roots != 1 {
		b.Errorf("there are %d spans without a parent", roots)
	}
}

// modelWasTold checks the spans of model calls, and the header that the model received with each.
func (b *tracedBot) modelWasTold(tool tracetest.SpanStub) {
	b.Helper()
	chats := slices.DeleteFunc(b.sent.GetSpans(), func(s tracetest.SpanStub) bool { return !strings.HasPrefix(s.Name, tracing.SpanChat+" ") })
	if len(chats) != 2 || len(b.gave) != 2 {
		b.Fatalf("%d model calls have a span, and %d a header", len(chats), len(b.gave))
	}
	for i, s := range chats {
		want := fmt.Sprintf("00-%s-%s-01", s.SpanContext.TraceID(), s.SpanContext.SpanID())
		if b.gave[i] != want {
			b.Errorf("the model was told %q, and its span is %q", b.gave[i], want)
		}
		for _, name := range []string{tracing.RequestModel, tracing.ResponseModel, tracing.InputTokens, tracing.OutputTokens, tracing.AgentName, tracing.Conversation, tracing.ServerAddress} {
			if v := attr(s, name); v == "" || v == "0" {
				b.Errorf("a model call has the %s %q", name, v)
			}
		}
	}
	if chats[0].EndTime.After(tool.StartTime) || chats[1].StartTime.Before(tool.EndTime) {
		b.Error("the tool did not run between the model calls")
	}
}

// isAnonymous checks that words are nowhere in what was sent.
func (b *tracedBot) isAnonymous(words ...string) {
	b.Helper()
	for _, s := range b.sent.GetSpans() {
		raw, err := json.Marshal(struct{ Name, Attributes, Events, Status any }{s.Name, s.Attributes, s.Events, s.Status.Description})
		b.ok(err)
		for _, w := range words {
			if strings.Contains(string(raw), w) {
				b.Errorf("%q was sent: %s", w, raw)
			}
		}
	}
}

// isNamed checks that the log, the audit and the metrics name the trace.
func (b *tracedBot) isNamed(r approvers.Request) {
	b.Helper()
	id := b.setup.tracer.ID(r.Turn)
	for _, line := range []string{"a request waits for people", "a request was decided", "model answered", "tool ran"} {
		if !slices.ContainsFunc(b.log.all(), func(l string) bool { return strings.Contains(l, line) && strings.Contains(l, "trace_id="+id) }) {
			b.Errorf("the log does not name the trace with %q", line)
		}
	}
	b.view(func(s store.Reader) error {
		chain, err := s.Audit(r.ID)
		if err == nil && chain[0].Facts["trace"] != id {
			b.Errorf("the record of the proposal has the facts %v", chain[0].Facts)
		}
		return err
	})
	found := false
	for _, bot := range b.bots() {
		ask := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		ask.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		answer := httptest.NewRecorder()
		bot.metrics.handler().ServeHTTP(answer, ask)
		found = found || strings.Contains(answer.Body.String(), `# {trace_id="`+id+`"}`)
	}
	if !found {
		b.Error("no metric has the trace as an exemplar")
	}
}
