package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// Trial is the result of one small model call.
type Trial struct {
	Took   time.Duration
	Called bool // the model called the tool that Try offered
	Tokens int  // input and output tokens; zero: not reported
}

// tryTool is the only tool of a trial.
const tryTool = "answer"

// Try sends one small question to a model. The expected answer is a tool call, as in a step of an agent. An error of
// Try wraps ErrModelKey, ErrNoModel, ErrModelRefuses or ErrModelUnreachable, or is ctx's error.
func Try(ctx context.Context, m Model) (Trial, error) {
	m.Timeout, m.Idle = tryTime, tryTime
	c := newClient(m, time.Now, slog.New(slog.DiscardHandler))
	began := time.Now()
	r, err := c.ask(ctx, chatRequest{ChatCompletionRequest: openai.ChatCompletionRequest{
		Model: m.Name,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: "This is a test of the connection. Call the tool " + tryTool + " with ok set to true, and say nothing."},
			{Role: openai.ChatMessageRoleUser, Content: "Are you there?"},
		},
		Tools: []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: tryTool, Description: "Answers the test.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`),
		}}},
	}}, func(name string) string { return name }, noDraft{}.Write)
	t := Trial{Took: time.Since(began), Called: len(r.calls) > 0 && r.calls[0].Tool == tryTool, Tokens: r.tokens}
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	return t, tried(err)
}

// tryTime limits the time for the small question, because a person waits at the terminal.
const tryTime = 45 * time.Second

// tried explains a failed trial to the person who sets up the model. An empty answer is not a failure, because the
// endpoint has answered. The same is true for an answer whose length limit left no space for text.
func tried(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	switch f.cause {
	case causeEmpty, causeRoom:
		return nil
	case causeKey:
		return fmt.Errorf("%w: %w", ErrModelKey, f.detail)
	case causeModel:
		return fmt.Errorf("%w: %w", ErrNoModel, f.detail)
	case causeRequest, causeFilter, causeLong, causeQuota:
		return fmt.Errorf("%w: %w", ErrModelRefuses, f.detail)
	}
	return fmt.Errorf("%w: %w", ErrModelUnreachable, f.detail)
}
