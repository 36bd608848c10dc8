package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/internal/demo/scriptedmodel"
	"countersign/store"
)

// tripper is an http.RoundTripper without a network.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answers returns an endpoint that answers every request with the same response.
func answers(status int, header http.Header, body io.Reader) tripper {
	return func(r *http.Request) (*http.Response, error) {
		if header == nil {
			header = http.Header{"Content-Type": {"text/event-stream"}}
		}
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header, Body: io.NopCloser(body), Request: r}, nil
	}
}

// brokenOff is a body that ends with an error instead of io.EOF.
type brokenOff struct{ err error }

func (b brokenOff) Read([]byte) (int, error) { return 0, b.err }

// stream writes events as a server does. Each event is the content of a data line, usually JSON.
func stream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// delta returns one chunk with a delta. If finish is not empty, the chunk has this finish reason.
func delta(d, finish string) string {
	reason := "null"
	if finish != "" {
		reason = string(must(json.Marshal(finish)))
	}
	return `{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + d + `,"finish_reason":` + reason + `}]}`
}

// says returns a delta with text.
func says(text string) string { return `{"content":` + string(must(json.Marshal(text))) + `}` }

// calls returns a delta with the given pieces of calls.
func calls(pieces ...string) string { return `{"tool_calls":[` + strings.Join(pieces, ",") + `]}` }

// piece returns a piece of a call. A negative index, an empty id and an empty name are omitted.
func piece(index int, id, name, args string) string {
	p := map[string]any{"type": "function"}
	f := map[string]any{"arguments": args}
	if index >= 0 {
		p["index"] = index
	}
	if id != "" {
		p["id"] = id
	}
	if name != "" {
		f["name"] = name
	}
	p["function"] = f
	return string(must(json.Marshal(p)))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// testTools returns a registry with three tools: one for each effect.
func testTools(run func(context.Context, Invocation) (string, error)) *Registry {
	r := &Registry{}
	one := refund()
	one.Run = run
	for _, tool := range []Tool{one, {
		Name: "shop.look_up", Description: "Looks something up.", Schema: json.RawMessage(`{"type":"object"}`),
		Effect: approvers.ReadOnly, Run: run,
	}, {
		Name: "set_price", Description: "Sets a price.", Schema: json.RawMessage(`{"type":"object","properties":{"price":{"type":"number"}}}`),
		Effect: approvers.Idempotent, Run: run,
	}} {
		if err := r.Register(tool); err != nil {
			panic(err)
		}
	}
	return r
}

// registry has the test tools, with functions that do nothing.
var registry = testTools(nothing)

func strictConfig(s *scriptedmodel.Server) Model {
	return Model{BaseURL: "http://model.invalid/v1", Name: "m", HTTP: &http.Client{Transport: s.Transport()}}
}

// fakeWorkflow records the agent's calls. If a function field is set, the method of the same name calls this
// function.
type fakeWorkflow struct {
	brief     workflow.Brief
	proposals []workflow.Proposal
	answers   []string
	reasoning []*store.Reasoning // of the answers
	tokens    []int
	postponed []time.Time
	stops     []stop

	execution approvers.Execution
	claimed   func() // called at the end of Claim, unless it is nil
	results   []finished
	elicit    func(ctx context.Context, execution string, ask workflow.Elicitation, why func() string) (approvers.Elicitation, error)
	whole     map[string]string // what WholeResult returns, by conversation and run
	finishErr []error           // the errors that the next calls of the recording methods return
	putBack   int

	previewing   workflow.PreviewCall
	previews     []approvers.PreviewAnswer
	previewsBack int
}

type stop struct {
	problem  string
	canRetry bool
}

func (d *fakeWorkflow) Begin(context.Context, string) (workflow.Brief, error) { return d.brief, nil }

func (d *fakeWorkflow) Propose(_ context.Context, p workflow.Proposal) error {
	d.proposals = append(d.proposals, p)
	return nil
}

func (d *fakeWorkflow) Answer(_ context.Context, _ string, _ int, text string, reasoning *store.Reasoning, tokens int) error {
	d.answers, d.reasoning, d.tokens = append(d.answers, text), append(d.reasoning, reasoning), append(d.tokens, tokens)
	return nil
}

func (d *fakeWorkflow) Postpone(_ context.Context, _ string, _ int, until time.Time) error {
	d.postponed = append(d.postponed, until)
	d.brief.Turn.Failures++
	return nil
}

func (d *fakeWorkflow) Stop(_ context.Context, _ string, _ int, problem string, canRetry bool) error {
	d.stops = append(d.stops, stop{problem, canRetry})
	return nil
}

// Claim has the rules of the workflow. An execution of a repeatable tool is claimed up to five times, and any other
// execution once.
func (d *fakeWorkflow) Claim(context.Context, string) (approvers.Execution, bool, error) {
	e, err := d.execution.Start("proc", time.Now())
	if d.execution.State == approvers.ExecutionExecuting && d.execution.Tries < 5 {
		e, err = d.execution.Retry("proc", time.Now())
	}
	if errors.Is(err, approvers.ErrNotStartable) {
		return e, false, nil
	}
	if err != nil {
		return e, false, err
	}
	d.execution = e
	if d.claimed != nil {
		d.claimed()
	}
	return e, true, nil
}

func (d *fakeWorkflow) Elicit(ctx context.Context, execution string, ask workflow.Elicitation, why func() string) (approvers.Elicitation, error) {
	return d.elicit(ctx, execution, ask, why)
}

func (d *fakeWorkflow) WholeResult(_ context.Context, conversation, run string) (string, error) {
	if whole, ok := d.whole[conversation+" "+run]; ok {
		return whole, nil
	}
	return "", view.ErrNoResult
}

func (d *fakeWorkflow) Finish(ctx context.Context, _ string, ok bool, result string, files ...workflow.File) error {
	if err := d.finish(ctx); err != nil {
		return err
	}
	var err error
	d.execution, err = d.execution.Finish(ok, result, time.Now())
	d.results = append(d.results, finished{ok: ok, result: result, files: files})
	return err
}

func (d *fakeWorkflow) Unrun(ctx context.Context, _, why string) error {
	if err := d.finish(ctx); err != nil {
		return err
	}
	var err error
	d.execution, err = d.execution.Refuse(why, time.Now())
	d.results = append(d.results, finished{unrun: true, result: why})
	return err
}

func (d *fakeWorkflow) MarkUnknown(ctx context.Context, _ string) error {
	if err := d.finish(ctx); err != nil {
		return err
	}
	var err error
	d.execution, err = d.execution.Lose(approvers.LossUnclear, time.Now())
	d.results = append(d.results, finished{lost: true})
	return err
}

func (d *fakeWorkflow) PutBack(ctx context.Context, _ string) error {
	d.putBack++
	return ctx.Err()
}

func (d *fakeWorkflow) BeginPreview(context.Context, string) (workflow.PreviewCall, bool, error) {
	return d.previewing, d.previewing.Tool != "", nil
}

func (d *fakeWorkflow) EndPreview(ctx context.Context, _ workflow.PreviewCall, a approvers.PreviewAnswer) error {
	d.previews = append(d.previews, a)
	return ctx.Err()
}

func (d *fakeWorkflow) PutBackPreview(ctx context.Context, _ workflow.PreviewCall) error {
	d.previewsBack++
	return ctx.Err()
}

func (d *fakeWorkflow) finish(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(d.finishErr) > 0 {
		err := d.finishErr[0]
		d.finishErr = slices.Delete(d.finishErr, 0, 1)
		return err
	}
	return nil
}

// asked returns the brief of a conversation in which one person wrote something.
func asked(text string) workflow.Brief {
	return workflow.Brief{
		Turn:         approvers.Turn{ID: "turn_1", State: approvers.TurnThinking},
		Conversation: store.Conversation{ID: "conv_1", Name: "support"},
		Agent:        approvers.Agent{Name: "support", Prompt: "You help.", Tools: []string{"*"}},
		Messages: []store.Message{{
			Conversation: "conv_1", Seq: 1, Turn: "turn_1", Role: store.RoleUser, State: store.MessageTaken,
			Author: "T1/U1", AuthorName: "Ana", Text: text,
		}},
		Calls: map[string][]store.Call{},
	}
}

var quiet = slog.New(slog.DiscardHandler)

// newAgent returns an agent with an endpoint and a fake workflow.
func newAgent(d interface {
	Turns
	Runs
	Questions
	Results
}, endpoint http.RoundTripper, change ...func(*Config)) *Agent {
	c := Config{
		Turns: d, Runs: d, Questions: d, Results: d, Tools: registry, Log: quiet,
		Model: Model{BaseURL: "http://model.invalid/v1", Name: "m", HTTP: &http.Client{Transport: endpoint}},
	}
	for _, f := range change {
		f(&c)
	}
	return New(c)
}

var errReset = errors.New("connection reset by peer")

// noWords ignores the streamed text of the model.
func noWords(string) {}
