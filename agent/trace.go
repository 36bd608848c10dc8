package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/tracing"
)

// told has the values that the endpoint reported about an answer. The values are used for traces.
type told struct {
	id, model, finish string
	in, out           int // tokens; zero: not reported
}

// causeNames are the values of error.type for failed model calls.
var causeNames = map[cause]string{
	causeDown: "unavailable", causeBusy: "rate_limited", causeQuota: "no_credit", causeCut: "truncated", causeEmpty: "empty", causeKey: "key_refused",
	causeModel: "no_such_model", causeRequest: "refused", causeEndpoint: "no_endpoint", causeFilter: "content_filter", causeRoom: "length",
	causeLong: "context_length", causeSteps: "steps",
}

// These are the outcomes of model calls that did not fail.
const (
	ModelAnswered    = "answered"
	modelInterrupted = "interrupted"
)

// ModelOutcomes returns the outcomes that a ModelCall can have.
func ModelOutcomes() []string {
	outcomes := []string{ModelAnswered, modelInterrupted}
	for c, name := range causeNames {
		if c != causeSteps { // a turn with too many steps is not the outcome of one call
			outcomes = append(outcomes, name)
		}
	}
	return outcomes
}

// askModel makes one model call within a span, and counts the call.
func (a *Agent) askModel(ctx context.Context, b workflow.Brief, name string, q modelRequest, r chatRequest, write func(string)) (reply, error) {
	ctx, span := tracing.Start(ctx, tracing.SpanChat+" "+name, tracing.Client, a.model.endpoint...)
	span.Set(
		tracing.String(tracing.Operation, "chat"), tracing.String(tracing.Provider, "openai"), tracing.String(tracing.RequestModel, name),
		tracing.String(tracing.AgentName, b.Agent.Name), tracing.String(tracing.Conversation, b.Conversation.ID),
	)
	if span.Texts() {
		span.Set(tracing.Text(tracing.InputMessages, tracedMessages(r.Messages)))
	}
	began := time.Now()
	out, err := a.model.ask(ctx, r, a.Tools.named, write)
	call := ModelCall{Agent: b.Agent.Name, Outcome: ModelAnswered, Took: time.Since(began)}
	defer func() { a.Count(call) }()
	var f *failure
	if errors.As(err, &f) {
		call.Outcome = causeNames[f.cause]
	} else if err != nil {
		call.Outcome = modelInterrupted
	}
	if err != nil {
		span.End(call.Outcome)
		return out, err
	}
	said := out.told
	if call.In, call.Out = said.in, said.out; said.in == 0 { // an estimate
		call.In, call.Out = q.tokens, out.spent(q)-q.tokens
		span.Set(tracing.Bool(tracing.Estimated, true))
	}
	span.Set(tracing.Int(tracing.InputTokens, call.In), tracing.Int(tracing.OutputTokens, call.Out))
	span.Set(tracing.String(tracing.ResponseModel, said.model), tracing.String(tracing.ResponseID, said.id), tracing.Strings(tracing.FinishReasons, []string{said.finish}))
	if span.Texts() {
		span.Set(tracing.Text(tracing.OutputMessages, encoded([]tracedMessage{answered(out)})))
	}
	span.End("")
	return out, nil
}

// endpointOf returns the attributes that name a model's endpoint.
func endpointOf(address string) []tracing.Attr {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		if port = 443; u.Scheme == "http" {
			port = 80
		}
	}
	return []tracing.Attr{tracing.String(tracing.ServerAddress, u.Hostname()), tracing.Int(tracing.ServerPort, port)}
}

// tracedMessage is one message in the form of OpenTelemetry's conventions. A message in a span omits the arguments of
// tool calls, because some arguments are secret for everybody except the approvers.
type tracedMessage struct {
	Role   string       `json:"role"`
	Parts  []tracedPart `json:"parts"`
	Finish string       `json:"finish_reason,omitempty"`
}

type tracedPart struct {
	Type    string `json:"type"`
	Content string `json:"content,omitempty"`
	ID      string `json:"id,omitempty"`
	Name    string `json:"name,omitempty"`
	Result  string `json:"response,omitempty"`
}

func tracedMessages(messages []openai.ChatCompletionMessage) string {
	var out []tracedMessage
	for _, m := range messages {
		s := tracedMessage{Role: m.Role}
		switch {
		case m.Role == openai.ChatMessageRoleTool:
			s.Parts = append(s.Parts, tracedPart{Type: "tool_call_response", ID: m.ToolCallID, Result: m.Content})
		case m.Content != "":
			s.Parts = append(s.Parts, tracedPart{Type: "text", Content: m.Content})
		}
		for _, c := range m.ToolCalls {
			s.Parts = append(s.Parts, tracedPart{Type: "tool_call", ID: c.ID, Name: c.Function.Name})
		}
		out = append(out, s)
	}
	return encoded(out)
}

func answered(r reply) tracedMessage {
	s := tracedMessage{Role: openai.ChatMessageRoleAssistant, Finish: r.told.finish}
	if r.text != "" {
		s.Parts = append(s.Parts, tracedPart{Type: "text", Content: r.text})
	}
	for _, c := range r.calls {
		s.Parts = append(s.Parts, tracedPart{Type: "tool_call", ID: c.ID, Name: c.Tool})
	}
	return s
}

func encoded(messages []tracedMessage) string {
	b, _ := json.Marshal(messages) // encoding strings can't fail
	return string(b)
}

// startTool starts the span of a tool's run or preview.
func startTool(ctx context.Context, name string, e approvers.Execution) (context.Context, *tracing.Span) {
	ctx, span := tracing.Start(ctx, name+" "+e.Tool, tracing.Internal,
		tracing.String(tracing.Operation, name), tracing.String(tracing.ToolName, e.Tool), tracing.String(tracing.ToolType, "function"))
	if e.Call != "" { // not a preview
		span.Set(tracing.String(tracing.ToolCall, e.Call), tracing.String(tracing.Execution, e.ID), tracing.Int(tracing.Try, e.Tries))
		span.LinkTo(e.Turn, e.Request)
	}
	return ctx, span
}

// toolProblem returns the value of error.type for the error of a tool.
func toolProblem(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errTimeUp):
		return "timeout"
	case errors.Is(err, errPanic):
		return "panic"
	case errors.Is(err, workflow.ErrPaused), errors.Is(err, workflow.ErrStopped), errors.Is(err, errStopping):
		return "interrupted"
	case errors.Is(err, ErrNotRun):
		return "not_run"
	case errors.Is(err, ErrOutcomeUnknown):
		return "outcome_unknown"
	}
	return "failed"
}
