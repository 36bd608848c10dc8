package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
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
	"countersign/internal/testkit"
	"countersign/internal/tracing"
	"countersign/internal/tracing/tracingtest"
	"countersign/store"
)

// tracedBot is a harness whose bots are traced.
type tracedBot struct {
	*synctestHarness
	sent *tracingtest.Recorder
	opts tracing.Options
	mu   sync.Mutex
	gave []string // traceparent of each request to the model
}

// newTracer gives the next process a tracer that has no data of earlier tracers.
func (b *tracedBot) newTracer() {
	t, err := tracing.New(b.ctx, sdk.NewSimpleSpanProcessor(b.sent), b.opts)
	b.ok(err)
	b.setup.tracer = t
}

func inTracedTime(t *testing.T, several bool, o tracing.Options, fn func(*tracedBot)) {
	b := &tracedBot{sent: tracetest.NewInMemoryExporter(), opts: o}
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
			return a.Value.String()
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

// TestTraceOfAJourney follows one call from the message to the answer. Twenty minutes pass between the card and the
// click. In these twenty minutes, a new process replaces the bot. In the second case, several replicas share the work,
// and a new process replaces one of them. All spans belong to one trace, which is a tree. No span has a text, an
// argument, or the name or id of a person.
func TestTraceOfAJourney(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for _, several := range []bool{false, true} {
		t.Run(strings.TrimSpace("journey"+amongReplicas(several)), func(t *testing.T) {
			inTracedTime(t, several, tracing.Options{}, func(b *tracedBot) {
				b.says("patient zebra")
				r := b.asked("zebra")
				b.within(time.Minute, "the card", b.idle)
				root := b.span(tracing.SpanMessage)
				if root.Parent.IsValid() || root.SpanKind != trace.SpanKindConsumer {
					t.Errorf("the main span is under %s, of the kind %s", root.Parent.SpanID(), root.SpanKind)
				}
				b.newTracer()
				b.restart()
				b.pass(20 * time.Minute)
				b.ok(b.approve("teo", "zebra", b.card("zebra")))
				b.within(time.Minute, "the run", func() bool { return b.ran("zebra") == 1 && b.idle() })

				b.oneTree(r.Turn)
				propose, wait, click := b.span("propose patient"), b.span(tracing.SpanWait), b.span(tracing.SpanClick)
				if think := b.named("think"); len(think) != 2 || !under(think[0], root) || !under(propose, think[0]) {
					t.Errorf("the proposal is not below the first of two model calls")
				}
				if took := wait.EndTime.Sub(wait.StartTime); took < 20*time.Minute || !under(wait, propose) || !linksTo(wait, click) {
					t.Errorf("the wait took %s, is below %s, and has the links %v", took, wait.Parent.SpanID(), wait.Links)
				}
				if !under(click, propose) || !under(b.span("approve patient"), click) || !click.StartTime.After(propose.StartTime.Add(20*time.Minute)) {
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
				if !under(agent, root) || attr(agent, tracing.State) != string(approvers.TurnAnswered) || agent.EndTime.Sub(agent.StartTime) < 20*time.Minute {
					t.Errorf("the turn is %v", agent.Attributes)
				}
				if len(b.named("show answer")) == 0 || len(b.named("slack chat.postMessage")) == 0 || len(b.named("slack users.info")) == 0 {
					t.Error("the answer, or calls to Slack, are missing")
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

// TestTextsInTraces checks that the bot sends the texts of a conversation if the operator has enabled texts in traces.
// The bot never sends arguments, because some arguments are masked.
func TestTextsInTraces(t *testing.T) {
	t.Parallel()
	inTracedTime(t, false, tracing.Options{Texts: true}, func(b *tracedBot) {
		b.says("plain zebra")
		b.asked("zebra")
		b.within(time.Minute, "the card", b.idle)
		b.ok(b.approve("teo", "zebra", b.card("zebra")))
		b.within(time.Minute, "the answer", func() bool { return len(b.named("show answer")) > 0 && b.idle() })
		chats := b.chats()
		if len(chats) != 2 {
			b.Fatalf("%d model calls", len(chats))
		}
		for i, want := range []string{
			`[{"role":"assistant","parts":[{"type":"tool_call",`, `[{"role":"assistant","parts":[{"type":"text","content":"That is settled: `,
		} {
			if in := attr(chats[i], tracing.InputMessages); !strings.Contains(in, "plain zebra") || !strings.Contains(in, `"role":"system"`) {
				b.Errorf("the input is %s", in)
			}
			if out := attr(chats[i], tracing.OutputMessages); !strings.HasPrefix(out, want) {
				b.Errorf("the output is %s", out)
			}
		}
		if in := attr(chats[1], tracing.InputMessages); !strings.Contains(in, `"type":"tool_call_response"`) || !strings.Contains(in, "counted") {
			b.Errorf("the input lacks the result: %s", in)
		}
		b.isAnonymous(`\"n\"`, `{\\\"n\\\"`)
	})
}

// If a message waits for the end of a turn, the message begins the next turn. The trace of this turn says how long the
// message waited.
func TestTraceOfAQueuedMessage(t *testing.T) {
	t.Parallel()
	inTracedTime(t, false, tracing.Options{}, func(b *tracedBot) {
		thread := b.says("plain one")
		r := b.asked("one")
		b.pass(time.Minute)
		_, err := b.as("sam").Say(b.ctx, "#support", thread, "@Countersign say two")
		b.ok(err)
		b.pass(10 * time.Minute)
		b.ok(b.approve("teo", "one", b.card("one")))
		b.within(time.Minute, "both answers", func() bool { return len(b.named("show answer")) == 2 && b.idle() })
		root := b.span(tracing.SpanQueued)
		if took := root.EndTime.Sub(root.StartTime); root.Parent.IsValid() || took < 10*time.Minute || took > 12*time.Minute {
			t.Errorf("the second turn waited %s", took)
		}
		first := b.setup.tracer.ID(r.Turn)
		if root.SpanContext.TraceID().String() == first || len(root.Links) != 1 || root.Links[0].SpanContext.TraceID().String() != first {
			t.Errorf("the second turn links to %v", root.Links)
		}
	})
}

// A person clicks without authority, a request is not decided, and a call to the model fails. The spans record these
// events without the texts of people.
func TestTraceOfFailures(t *testing.T) {
	t.Parallel()
	inTracedTime(t, false, tracing.Options{}, func(b *tracedBot) {
		b.says("plain zebra")
		b.asked("zebra")
		b.within(time.Minute, "the card", b.idle)
		b.ok(b.approve("ingrid", "zebra", b.card("zebra")))
		b.within(time.Minute, "the refused click", func() bool { return len(b.named(tracing.SpanClick)) == 1 && b.idle() })
		if len(b.named("approve plain")) > 0 || len(b.named("execute_tool plain")) > 0 {
			t.Error("a click without authority decided")
		}
		b.pass(40 * time.Minute)
		b.within(time.Minute, "the end", b.idle)
		wait, expire := b.span(tracing.SpanWait), b.span("expire")
		if attr(wait, tracing.State) != string(approvers.Expired) || !linksTo(wait, expire) || !under(expire, b.span("propose plain")) {
			t.Errorf("the wait is %v", wait.Attributes)
		}
		b.model.SetState(testkit.NetworkRefuses)
		b.says("say more")
		b.pass(time.Minute)
		failed := slices.ContainsFunc(b.chats(), func(s tracetest.SpanStub) bool {
			return s.Status.Code == codes.Error && attr(s, tracing.ErrorType) == "unavailable" && s.Status.Description == ""
		})
		if !failed {
			t.Errorf("no model call has failed:\n%s", b.tree())
		}
		b.isAnonymous("zebra", "U0001", "Sam", "refused", "more")
		b.model.SetState(testkit.NetworkWorks)
		b.within(10*time.Minute, "the answer", b.idle)
	})
}

// The method "chats" returns the spans of model calls.
func (b *tracedBot) chats() []tracetest.SpanStub {
	return slices.DeleteFunc(b.sent.GetSpans(), func(s tracetest.SpanStub) bool { return !strings.HasPrefix(s.Name, tracing.SpanChat+" ") })
}

func (b *tracedBot) ran(n string) int {
	b.synctestHarness.mu.Lock()
	defer b.synctestHarness.mu.Unlock()
	return b.runs[n]
}

// oneTree checks that all spans belong to a turn's trace, and that they are one tree: one span has no parent, and the
// parent of each other span was sent. oneTree also checks that no span has failed.
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

// modelWasTold checks the spans of model calls, and the header that the model received with each call.
func (b *tracedBot) modelWasTold(tool tracetest.SpanStub) {
	b.Helper()
	chats := b.chats()
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

// randomID matches the random part of an id. This part may contain the letters of any short word.
var randomID = regexp.MustCompile(`[0-9A-Z]{26}`)

// isAnonymous checks that the sent data do not contain the words. A match within a random id does not count.
func (b *tracedBot) isAnonymous(words ...string) {
	b.Helper()
	for _, s := range b.sent.GetSpans() {
		raw, err := json.Marshal(struct{ Name, Attributes, Events, Status any }{s.Name, s.Attributes, s.Events, s.Status.Description})
		b.ok(err)
		raw = randomID.ReplaceAll(raw, nil)
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
		bot.metrics.Handler().ServeHTTP(answer, ask)
		found = found || strings.Contains(answer.Body.String(), `# {trace_id="`+id+`"}`)
	}
	if !found {
		b.Error("no metric has the trace as an exemplar")
	}
}
