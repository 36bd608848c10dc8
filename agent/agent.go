package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// Turns supplies the input of each model call and records the result of the call. *workflow.Turns implements Turns.
type Turns interface {
	Begin(ctx context.Context, turn string) (workflow.Brief, error)
	Propose(ctx context.Context, p workflow.Proposal) error
	Answer(ctx context.Context, turn string, step int, text string, reasoning *store.Reasoning, tokens int) error
	Postpone(ctx context.Context, turn string, step int, until time.Time) error
	Stop(ctx context.Context, turn string, step int, problem string, canRetry bool) error
}

// Runs claims tool calls for execution and records the results of the runs. *workflow.Runs implements Runs.
type Runs interface {
	Claim(ctx context.Context, execution string) (e approvers.Execution, run bool, err error)
	Finish(ctx context.Context, execution string, ok bool, result string, files ...workflow.File) error
	Unrun(ctx context.Context, execution, why string) error
	MarkUnknown(ctx context.Context, execution string) error
	PutBack(ctx context.Context, execution string) error
	BeginPreview(ctx context.Context, request string) (p workflow.PreviewCall, ok bool, err error)
	EndPreview(ctx context.Context, p workflow.PreviewCall, a approvers.PreviewAnswer) error
	PutBackPreview(ctx context.Context, p workflow.PreviewCall) error
}

// Questions passes the questions of a running tool to people. *workflow.Questions implements Questions.
type Questions interface {
	Elicit(ctx context.Context, execution string, ask workflow.Elicitation, why func() string) (approvers.Elicitation, error)
}

// Results reads the stored results of tool runs. *view.Reader implements Results.
type Results interface {
	WholeResult(ctx context.Context, conversation, execution string) (string, error)
}

var (
	_ Turns     = (*workflow.Turns)(nil)
	_ Runs      = (*workflow.Runs)(nil)
	_ Questions = (*workflow.Questions)(nil)
	_ Results   = (*view.Reader)(nil)
)

// Config configures an Agent. Turns, Runs, Questions, Results, Tools and Log are required. Zero values of all other
// fields select the defaults.
type Config struct {
	Turns     Turns
	Runs      Runs
	Questions Questions
	Results   Results
	Tools     *Registry
	Model     Model
	Log       *slog.Logger
	Now       func() time.Time // nil: time.Now
	Count     func(ModelCall)  // called after each model call; nil: calls are not counted
	// About returns Slack's profile of a person as JSON. If About is nil, no profiles are available.
	About func(ctx context.Context, who approvers.PersonID) (string, error)

	// Draft shows people the output of a model step while the model writes it. If Draft is nil, people see only the
	// complete answer.
	Draft func(turn string, step int) Draft
	// Progress shows people the progress of a run. If Progress is nil, people see only that the run is in progress.
	Progress func(e approvers.Execution) Gauge

	Retry         Retry
	HistoryTokens int           // estimated token budget for the messages of the model's input; default 48,000
	MaxSteps      int           // model calls with tools in one turn, for agents without a limit of their own; default 10
	MaxResult     int           // bytes of a tool's result that are kept; default 1 MiB
	ResultPart    int           // bytes of a result that the model receives in one part; default 24 KiB
	Grace         time.Duration // how long a shutdown waits for a running tool; default 15 seconds; negative: a shutdown does not wait
	PingEvery     time.Duration // how long a result of Ping is cached; default 30 seconds
}

// ModelCall is the report on one finished model call.
type ModelCall struct {
	Agent   string
	Outcome string // one of ModelOutcomes
	Took    time.Duration
	In, Out int // input and output tokens, as the endpoint counted them, or an estimate; 0 if there was no answer
}

// Draft shows a model's output while it is generated. Until the answer is complete, the shown output may still be
// discarded.
type Draft interface {
	Write(text string) // shows the whole text so far; must not block
	Close()            // called when the model call has ended
}

// Gauge shows the progress of a run. The progress is not stored.
type Gauge interface {
	Show(done, total float64, text string) // total zero: the total is unknown; must not block
	Close()                                // called when the run has ended
}

// noGauge shows nothing.
type noGauge struct{}

func (noGauge) Show(float64, float64, string) {}
func (noGauge) Close()                        {}

// noDraft shows nothing.
type noDraft struct{}

func (noDraft) Write(string) {}
func (noDraft) Close()       {}

// Agent calls the model and runs tools. Agent is safe for concurrent use.
type Agent struct {
	Config
	model *client

	mu         sync.Mutex
	budgets    map[string]int      // by model: how many tokens a model accepts, if it has refused a longer request
	unrecorded map[string]finished // by execution: the outcomes of finished runs that are not recorded yet
	ping       pinged

	running sync.WaitGroup // tool functions that have been called and have not returned
}

// New returns an agent with the defaults filled in.
func New(c Config) *Agent {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Count == nil {
		c.Count = func(ModelCall) {}
	}
	if c.HistoryTokens <= 0 {
		c.HistoryTokens = 48_000
	}
	if c.MaxSteps <= 0 {
		c.MaxSteps = 10
	}
	if c.MaxResult <= 0 {
		c.MaxResult = 1 << 20
	}
	if c.ResultPart <= 0 {
		c.ResultPart = 24 << 10
	}
	if c.Grace == 0 {
		c.Grace = 15 * time.Second
	}
	if c.PingEvery <= 0 {
		c.PingEvery = 30 * time.Second
	}
	if c.About == nil {
		c.About = func(context.Context, approvers.PersonID) (string, error) {
			return "", errors.New("nothing is known about the person who asked")
		}
	}
	if c.Draft == nil {
		c.Draft = func(string, int) Draft { return noDraft{} }
	}
	if c.Progress == nil {
		c.Progress = func(approvers.Execution) Gauge { return noGauge{} }
	}
	c.Retry = c.Retry.withDefaults()
	return &Agent{
		Config: c, model: newClient(c.Model, c.Now, c.Log),
		budgets: map[string]int{}, unrecorded: map[string]finished{},
	}
}

// Wait is called at shutdown. Wait waits until all tool functions have returned. Wait does not record their results.
// If a function has not returned when ctx ends, Wait returns ctx's error.
func (a *Agent) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		a.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
