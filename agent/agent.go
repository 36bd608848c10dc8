package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// Desk is where the agent reads what to think about, and where everything that it brings about is written down. *desk.Desk is one.
type Desk interface {
	Begin(ctx context.Context, turn string) (desk.Brief, error)
	Propose(ctx context.Context, p desk.Proposal) error
	Answer(ctx context.Context, turn string, step int, text string, tokens int) error
	Postpone(ctx context.Context, turn string, step int, until time.Time) error
	Stop(ctx context.Context, turn string, step int, problem string, canRetry bool) error
	Claim(ctx context.Context, execution string) (e approvers.Execution, run bool, err error)
	Finish(ctx context.Context, execution string, ok bool, result string, files ...desk.File) error
	Unrun(ctx context.Context, execution, why string) error
	WholeResult(ctx context.Context, conversation, execution string) (string, error)
	Elicit(ctx context.Context, execution string, ask desk.Elicitation, why func() string) (approvers.Elicitation, error)
	Lose(ctx context.Context, execution string) error
	PutBack(ctx context.Context, execution string) error
	BeginPreview(ctx context.Context, request string) (p desk.Previewing, ok bool, err error)
	EndPreview(ctx context.Context, p desk.Previewing, text, fault string) error
	PutBackPreview(ctx context.Context, p desk.Previewing) error
}

var _ Desk = (*desk.Desk)(nil)

// Config is what an agent works with. Desk, Tools and Log are required; zero values of the rest mean the defaults.
type Config struct {
	Desk  Desk
	Tools *Registry
	Model Model
	Log   *slog.Logger
	Now   func() time.Time // nil: time.Now
	// About tells what Slack knows of a person, as JSON. Nil: nothing is known of anybody.
	About func(ctx context.Context, who approvers.PersonID) (string, error)

	// Draft has people see what the model writes in a step while it writes it. Nil: they see the whole answer.
	Draft func(turn string, step int) Draft
	// Progress has people see how far a run is while it runs. Nil: they see that it runs.
	Progress func(e approvers.Execution) Gauge

	Retry         Retry
	HistoryTokens int           // budget for what the model is given, by estimate; zero is 48,000
	MaxSteps      int           // model calls with tools in a turn, for agents that say nothing; zero is 10
	MaxResult     int           // bytes of a tool's result that are kept; zero is 1 MiB
	ResultPart    int           // bytes of a result that the model is given at once; zero is 24 KiB
	Grace         time.Duration // how long a running tool may go on once the process is to stop; zero is 15 seconds
	PingEvery     time.Duration // how long Ping's last finding holds; zero is 30 seconds
}

// Draft shows what a model is writing. None of it counts before the answer is whole.
type Draft interface {
	Write(text string) // all that it has written so far; it must not wait
	Close()            // the model call is over
}

// Gauge shows how far a run is. None of it is kept.
type Gauge interface {
	Show(done, total float64, text string) // total zero: it is not known; it must not wait
	Close()                                // the run is over
}

// noGauge shows nothing.
type noGauge struct{}

func (noGauge) Show(float64, float64, string) {}
func (noGauge) Close()                        {}

// noDraft shows nothing.
type noDraft struct{}

func (noDraft) Write(string) {}
func (noDraft) Close()       {}

// Agent thinks and runs. It is safe for use by many goroutines.
type Agent struct {
	Config
	model *client

	mu         sync.Mutex
	budgets    map[string]int      // by model: what was learned of its context
	unrecorded map[string]finished // runs that ended and could not be written down yet, by execution
	ping       pinged

	running sync.WaitGroup // tools that did not return in time
}

// New makes an agent.
func New(c Config) *Agent {
	if c.Now == nil {
		c.Now = time.Now
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
	if c.Grace <= 0 {
		c.Grace = 15 * time.Second
	}
	if c.PingEvery <= 0 {
		c.PingEvery = 30 * time.Second
	}
	if c.About == nil {
		c.About = func(context.Context, approvers.PersonID) (string, error) {
			return "", errors.New("nothing is known here of the person who asked")
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

// Wait waits for tools that went on although their time was up. It is for the end of the process: what they
// answer is not used any more. It returns ctx's error when they don't return in time.
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
