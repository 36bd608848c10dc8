package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// Think is the handler of store.TimerThink. Think asks the model for the next step of a turn, and records exactly one
// result. The result is a proposal of calls, an answer, a scheduled retry, or a stop with a sentence for people. If
// Think is interrupted, nothing is recorded. The timer then starts Think again.
func (a *Agent) Think(ctx context.Context, t store.Timer) error {
	b, err := a.Turns.Begin(ctx, t.Ref)
	if err == nil {
		err = a.step(ctx, b)
	}
	if errors.Is(err, workflow.ErrNotDue) {
		return nil // the turn's state has changed, so there is nothing to do
	}
	if err != nil {
		return fmt.Errorf("think about turn %s: %w", t.Ref, err)
	}
	return nil
}

// step makes one model call.
func (a *Agent) step(ctx context.Context, b workflow.Brief) error {
	log := a.Log.With("conversation", b.Conversation.ID, "turn", b.Turn.ID, "agent", b.Agent.Name, "step", b.Turn.Step+1)
	last := b.Turn.Step >= a.maxSteps(b.Agent)
	began := a.Now()
	draft := a.Draft(b.Turn.ID, b.Turn.Step)
	defer draft.Close() // Close runs after the step is recorded, so that recording does not wait for calls to Slack
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
	log.InfoContext(ctx, "model answered", "calls", len(r.calls), "text_bytes", len(r.text), "given_tokens", q.tokens, "given_turns_left_out", q.dropped,
		"took", a.Now().Sub(began))
	if len(r.calls) > 0 {
		return a.Turns.Propose(ctx, workflow.Proposal{Turn: b.Turn.ID, Step: b.Turn.Step, Text: r.text, Calls: r.calls, Authors: q.authors, Tokens: r.spent(q), Reasoning: r.reasoning})
	}
	return a.Turns.Answer(ctx, b.Turn.ID, b.Turn.Step, a.finalText(b, r, last), r.reasoning, r.spent(q))
}

func (a *Agent) maxSteps(agent approvers.Agent) int {
	if agent.MaxSteps > 0 {
		return agent.MaxSteps
	}
	return a.MaxSteps
}

// finalText returns the text of the answer. If the answer was cut, or if the turn has no steps left, finalText adds a
// note.
func (a *Agent) finalText(b workflow.Brief, r reply, last bool) string {
	text := r.text
	if r.cut {
		text += "\n\n(The answer was cut off here, at the model's length limit.)"
	}
	if last {
		text += fmt.Sprintf("\n\n(I stopped here after %d steps, the most that I take for one message. Write to me if I should continue.)", a.maxSteps(b.Agent))
	}
	return text
}

// answer calls the model. If the endpoint refuses the history as too long, answer retries with a shorter history.
func (a *Agent) answer(ctx context.Context, b workflow.Brief, last bool, write func(string)) (modelRequest, reply, error) {
	name := or(b.Agent.Model, a.model.Name)
	tools := a.Tools.Offered(b.Agent, b.Policy)
	source := "" // without tools, no endpoint needs reasoning, and some refuse it
	if len(tools) > 0 {
		source = a.model.source(name)
	}
	b.Messages = reasoningOf(source, b.Messages)
	taken := toolsTokens(tools)
	budget := a.budget(name, taken)
	q := compose(b, tools, budget, a.Now(), last)
	for shrunk := false; ; shrunk = true {
		r, err := a.askModel(ctx, b, name, q, request(name, q, tools, last), write)
		var f *failure
		if !errors.As(err, &f) || f.cause != causeLong {
			if err == nil && shrunk {
				a.learn(name, budget+taken)
			}
			return q, r, err
		}
		// Each retry uses six tenths of the refused messages. After five retries, the messages have less than a tenth
		// of the first size.
		budget = min(budget, q.tokens-taken) * 6 / 10
		less := compose(b, tools, budget, a.Now(), last)
		if less.tokens >= q.tokens {
			if taken > q.tokens-taken {
				a.Log.WarnContext(ctx, "the model refuses even the shortest request as too long, and most of it are the definitions of tools: offer the agent fewer tools, or use a model with a larger context",
					"conversation", b.Conversation.ID, "turn", b.Turn.ID, "model", name, "tools", len(tools), "tokens", q.tokens, "tokens_of_tools", taken)
			}
			return q, r, err
		}
		a.Log.WarnContext(ctx, "the conversation is too long for the model; a shorter part is sent", "conversation", b.Conversation.ID, "turn", b.Turn.ID, "model", name, "budget", budget)
		q = less
	}
}

func request(model string, q modelRequest, tools []registered, last bool) chatRequest {
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
	return chatRequest{r, q.added, q.reasons}
}

// budget returns the token budget for the messages of a request to a model. taken is the size of the tools. If the model
// has refused a request as too long, and has answered a shorter request, the budget may be smaller than the configured
// budget.
func (a *Agent) budget(model string, taken int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n, ok := a.budgets[model]; ok {
		return min(a.HistoryTokens, n-taken)
	}
	return a.HistoryTokens
}

// learn stores how many tokens a model accepts, including the tools.
func (a *Agent) learn(model string, tokens int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.budgets[model] = tokens
}

// failed handles a failed model call: it schedules a retry, or ends the turn with a sentence for people.
func (a *Agent) failed(ctx context.Context, b workflow.Brief, f *failure, log *slog.Logger) error {
	if pause, ok := a.Retry.next(b.Turn.ID, b.Turn.Failures, f); ok {
		log.WarnContext(ctx, "model call failed; it is tried again", "tries", b.Turn.Failures+1, "pause", pause, "error", f.detail)
		return a.Turns.Postpone(ctx, b.Turn.ID, b.Turn.Step, a.Now().Add(pause))
	}
	level := slog.LevelError
	if f.cause.ofConversation() {
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "model call failed; the turn stops", "tries", b.Turn.Failures+1, "error", f.detail)
	problem := sentences[f.cause]
	if f.cause == causeSteps {
		problem = fmt.Sprintf(problem, a.maxSteps(b.Agent))
	}
	if f.after > a.Retry.Longest {
		problem += fmt.Sprintf(" It asks not to be called for %s.", f.after.Round(time.Second))
	}
	return a.Turns.Stop(ctx, b.Turn.ID, b.Turn.Step, problem, f.cause != causeLong && f.cause != causeSteps)
}
