package main

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/slackapi"
	"countersign/internal/tracing"
	"countersign/store"
	"countersign/store/jobs"
)

// traces makes spans from the events that the workflow, the bot and the agent report. Without a tracer, traces makes no
// spans.
type traces struct {
	tracer *tracing.Tracer
	now    func() time.Time
}

// tracedTimers names the spans of timers whose work belongs to one turn. Work of other timers belongs to several turns
// or to no turn.
var tracedTimers = map[store.TimerKind]string{
	store.TimerInbox: "receive", store.TimerThink: "think", store.TimerRun: "run", store.TimerPreview: "preview", store.TimerExpire: "expire",
	store.TimerEscalate: "escalate", store.TimerAvailability: "resolve availability", store.TimerModelQuestion: "end question",
	store.TimerElicit: "end question", store.TimerLeave: "leave unknown", store.TimerOutcome: "await outcome",
	store.TimerShowFirst: "show", store.TimerShow: "show", store.TimerShowAnswer: "show", store.TimerShowLast: "show",
}

// The method "traced" wraps the handlers of tracedTimers in spans. The given workers are those of the bot and the
// agent. The method adds the workers of the workflow. Without a tracer, the result is the given workers, unchanged.
func (p parts) traced(more map[store.TimerKind]jobs.Worker) map[store.TimerKind]jobs.Worker {
	t := p.traces
	if t.tracer == nil {
		return more
	}
	all := p.workflow.Workers()
	maps.Copy(all, more)
	for kind, name := range tracedTimers {
		w, ok := all[kind]
		if !ok {
			continue
		}
		handle := w.Handle
		w.Handle = func(ctx context.Context, timer store.Timer) error {
			began := t.now()
			queued := max(0, began.Sub(timer.Due))
			if kind == store.TimerInbox && timer.Tries == 0 {
				began = timer.Due // the time at which the message was received
			}
			ctx, work := t.tracer.Begin(ctx, name, began, tracing.Int(tracing.Try, timer.Tries+1), tracing.Seconds(tracing.Queued, queued.Seconds()))
			if kind == store.TimerThink {
				tracing.Belongs(ctx, tracing.Subject{Turn: timer.Ref})
			}
			err := handle(ctx, timer)
			work.End(timerProblem(err))
			return err
		}
		all[kind] = w
	}
	return all
}

// timerProblem returns the value of the span attribute error.type for an error of a timer's handler.
func timerProblem(err error) string {
	var later interface{ After() time.Duration }
	switch {
	case err == nil, errors.Is(err, workflow.ErrNotDue), errors.Is(err, workflow.ErrHandled):
		return ""
	case errors.Is(err, workflow.ErrPaused):
		return "paused"
	case errors.Is(err, context.Canceled), errors.Is(err, jobs.ErrKeep):
		return "interrupted"
	case errors.As(err, &later):
		return "put_off"
	case store.Refused(err), errors.Is(err, store.ErrFenced):
		return "store"
	}
	return "failed"
}

// The method "happened" makes the spans of an event of the workflow.
func (t traces) happened(ctx context.Context, e workflow.Event) {
	if t.tracer == nil || e.Turn == "" {
		return
	}
	if e.Began != nil {
		t.began(ctx, e)
		return
	}
	of := tracing.Subject{Turn: e.Turn}
	if e.Request != nil && !e.Asked {
		of.Request = e.Request.ID
	}
	tracing.Belongs(ctx, of)
	r := e.Request
	switch {
	case e.Asked:
		tracing.Record(ctx, tracing.Past{Name: tracing.SpanPropose + " " + r.Tool, Began: e.At, Main: r.ID, Attrs: aboutRequest(*r)})
	case e.Decision != nil:
		tracing.Record(ctx, tracing.Past{Name: string(e.Decision.Kind) + " " + r.Tool, Began: e.At, Attrs: append(aboutRequest(*r),
			tracing.String(tracing.Decision, string(e.Decision.Kind)), tracing.String(tracing.Role, e.Decision.Role))})
	case e.Approved, e.Ended != "" && e.Ended != approvers.Consumed && r.RunBy.IsZero():
		t.tracer.Past(ctx, tracing.Past{Name: tracing.SpanWait, Began: r.CreatedAt, Ended: e.At, Of: of, Linked: true, Attrs: aboutRequest(*r)})
	case e.Over != nil:
		t.tracer.Past(ctx, tracing.Past{Name: tracing.SpanAgent + " " + e.Over.Agent, Began: e.Over.CreatedAt, Ended: e.At, Of: of, Linked: true, Attrs: []tracing.Attr{
			tracing.String(tracing.Operation, tracing.SpanAgent), tracing.String(tracing.AgentName, e.Over.Agent), tracing.String(tracing.Turn, e.Turn),
			tracing.String(tracing.Conversation, e.Over.Conversation), tracing.String(tracing.State, string(e.Over.State)),
		}})
	}
}

// The method "began" makes the main span of a turn. Usually, the main span is the span of the work that received the
// message. If the message waited for the previous turn, the method makes a separate span.
func (t traces) began(ctx context.Context, e workflow.Event) {
	name := tracing.SpanMessage
	if e.Began.Caller {
		name = tracing.SpanCaller
	}
	of := tracing.Subject{Turn: e.Turn, Name: name, Starts: true}
	if !tracing.Belongs(ctx, of) {
		t.tracer.Past(ctx, tracing.Past{Name: tracing.SpanQueued, Began: e.Began.Since, Ended: e.At, Of: of, Main: e.Turn, Linked: true})
	}
}

func aboutRequest(r approvers.Request) []tracing.Attr {
	return []tracing.Attr{
		tracing.String(tracing.Request, r.ID), tracing.String(tracing.ToolName, r.Tool), tracing.String(tracing.Risk, r.Plan.Risk.String()),
		tracing.Int(tracing.Stages, len(r.Plan.Stages)), tracing.String(tracing.State, string(r.State)),
	}
}

// The method "called" makes the span of a call to Slack's Web API.
func (t traces) called(ctx context.Context, c slackapi.Call) {
	if t.tracer == nil {
		return
	}
	problem := ""
	if c.Outcome != slackapi.CallAnswered {
		problem = string(c.Outcome)
	}
	tracing.Record(ctx, tracing.Past{Name: tracing.SpanSlack + " " + c.Method, Kind: tracing.Client, Began: c.Began, Problem: problem, Attrs: []tracing.Attr{
		tracing.String(tracing.Method, c.Method), tracing.String(tracing.Outcome, string(c.Outcome)),
	}})
}

// The method "receiving" wraps the gateway, so that the bot traces its work for each request of another agent. The
// trace links to the agent's span.
func (t traces) receiving(next http.Handler) http.Handler {
	if t.tracer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, work := t.tracer.Begin(r.Context(), tracing.SpanCaller, t.now())
		work.Sent(tracing.Header(r.Header))
		defer work.End("")
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// exemplar returns the labels of an exemplar for an event of a turn, or nil if the turn is not traced.
func (t traces) exemplar(turn string) prometheus.Labels {
	if id := t.tracer.ID(turn); id != "" {
		return prometheus.Labels{tracing.LogTraceID: id}
	}
	return nil
}
