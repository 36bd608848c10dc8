package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// Think is the handler of store.TimerThink: it asks the model what to do next in a turn, and writes down what came of it. It ends in
// exactly one of: calls proposed, an answer, another try later, a stop with a sentence for people. If it is interrupted nothing
// was written and the timer's row has the model asked again.
func (a *Agent) Think(ctx context.Context, t store.Timer) error {
	b, err := a.Desk.Begin(ctx, t.Ref)
	if err == nil {
		err = a.step(ctx, b)
	}
	if errors.Is(err, desk.ErrNotDue) {
		return nil // the turn went another way meanwhile
	}
	if err != nil {
		return fmt.Errorf("think about turn %s: %w", t.Ref, err)
	}
	return nil
}

// step makes one model call.
func (a *Agent) step(ctx context.Context, b desk.Brief) error {
	log := a.Log.With("conversation", b.Conversation.ID, "turn", b.Turn.ID, "agent", b.Agent.Name, "step", b.Turn.Step+1)
	last := b.Turn.Step >= a.maxSteps(b.Agent)
	began := a.Now()
	draft := a.Draft(b.Turn.ID, b.Turn.Step)
	defer draft.Close() // after what came of the step is written down: people need not wait for what Slack is being asked
	q, r, err := a.answer(ctx, b, last, draft.Write)
	var f *failure
	switch {
	case errors.As(err, &f):
		return a.failed(ctx, b, f, log)
	case err != nil:
		return err
	case len(r.calls) > 0 && last:
		return a.failed(ctx, b, never(causeSteps, "the model asks for tools although it has made all its steps"), log)
	}
	log.Info("model answered", "calls", len(r.calls), "text_bytes", len(r.text), "given_tokens", q.tokens, "given_turns_left_out", q.dropped,
		"took", a.Now().Sub(began))
	if len(r.calls) > 0 {
		return a.Desk.Propose(ctx, desk.Proposal{Turn: b.Turn.ID, Step: b.Turn.Step, Text: r.text, Calls: r.calls, Authors: q.authors, Tokens: r.spent(q)})
	}
	return a.Desk.Answer(ctx, b.Turn.ID, b.Turn.Step, a.finalText(b, r, last), r.spent(q))
}

func (a *Agent) maxSteps(agent approvers.Agent) int {
	if agent.MaxSteps > 0 {
		return agent.MaxSteps
	}
	return a.MaxSteps
}

// finalText is the answer with what a person has to know about how it came to its end.
func (a *Agent) finalText(b desk.Brief, r reply, last bool) string {
	text := r.text
	if r.cut {
		text += "\n\n(The answer was cut off here, at the model's length limit.)"
	}
	if last {
		text += fmt.Sprintf("\n\n(I stopped here after %d steps, the most that I take for one message. Write to me if I should go on.)", a.maxSteps(b.Agent))
	}
	return text
}

// answer asks the model, with less and less of the history as long as the model says that it is too long.
func (a *Agent) answer(ctx context.Context, b desk.Brief, last bool, write func(string)) (question, reply, error) {
	name := or(b.Agent.Model, a.model.Name)
	tools := a.offered(b)
	budget := a.budget(name)
	q := compose(b, tools, budget, a.Now(), last)
	for shrunk := false; ; shrunk = true {
		r, err := a.model.ask(ctx, request(name, q, tools, last), a.Tools.named, write)
		var f *failure
		if !errors.As(err, &f) || f.cause != causeLong {
			if err == nil && shrunk {
				a.learn(name, budget)
			}
			return q, r, err
		}
		// Below what was just refused; six tenths reaches a tenth in five tries.
		budget = min(budget, q.tokens) * 6 / 10
		less := compose(b, tools, budget, a.Now(), last)
		if less.tokens >= q.tokens {
			return q, r, err
		}
		a.Log.Warn("the conversation is too long for the model; less of it is given", "conversation", b.Conversation.ID, "model", name, "budget", budget)
		q = less
	}
}

// offered are the tools that the model may ask for now.
func (a *Agent) offered(b desk.Brief) []registered {
	var out []registered
	for _, t := range a.Tools.sorted() {
		if b.Agent.Offers(t.Name) && t.pinned.Callable(b.Policy) {
			out = append(out, t)
		}
	}
	return out
}

func request(model string, q question, tools []registered, last bool) openai.ChatCompletionRequest {
	r := openai.ChatCompletionRequest{Model: model, Messages: q.messages, Stream: true}
	for _, t := range tools {
		r.Tools = append(r.Tools, openai.Tool{
			Type:     openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: t.wire, Description: t.Description, Parameters: t.params},
		})
	}
	if last && len(tools) > 0 {
		r.ToolChoice = "none"
	}
	return r
}

// budget is how many tokens a model is given: as configured, or less where it said that this is too many.
func (a *Agent) budget(model string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n, ok := a.budgets[model]; ok {
		return n
	}
	return a.HistoryTokens
}

func (a *Agent) learn(model string, budget int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.budgets[model] = budget
}

// failed has the model asked again later, or ends the turn with a sentence for people.
func (a *Agent) failed(ctx context.Context, b desk.Brief, f *failure, log *slog.Logger) error {
	if pause, ok := a.Retry.next(b.Turn.ID, b.Turn.Failures, f); ok {
		log.Warn("model call failed; it is tried again", "tries", b.Turn.Failures+1, "pause", pause, "error", f.detail)
		return a.Desk.Postpone(ctx, b.Turn.ID, b.Turn.Step, a.Now().Add(pause))
	}
	log.Error("model call failed; the turn stops", "tries", b.Turn.Failures+1, "error", f.detail)
	problem := sentences[f.cause]
	if f.cause == causeSteps {
		problem = fmt.Sprintf(problem, a.maxSteps(b.Agent))
	}
	if f.after > a.Retry.Longest {
		problem += fmt.Sprintf(" It asks not to be called for %s.", f.after.Round(time.Second))
	}
	return a.Desk.Stop(ctx, b.Turn.ID, b.Turn.Step, problem, f.cause != causeLong && f.cause != causeSteps)
}
