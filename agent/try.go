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

// Trial is what one small call of a model has shown.
type Trial struct {
	Took   time.Duration
	Called bool // it asked for the tool that it was offered
	Tokens int  // in and out; zero: the server does not say
}

// tryTool is the one tool that a model is offered when it is tried.
const tryTool = "answer"

// Try asks a model one small question whose answer is a tool call, as every step of an agent may be. Its error wraps ErrModelKey where the key is refused,
// ErrNoModel where there is no such model, ErrModelRefuses where the request is refused as it is, and else ErrModelUnreachable.
func Try(ctx context.Context, m Model) (Trial, error) {
	m.Timeout, m.Idle = tryTime, tryTime
	c := newClient(m, time.Now, slog.New(slog.DiscardHandler))
	began := time.Now()
	r, err := c.ask(ctx, openai.ChatCompletionRequest{
		Model: m.Name,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: "This is a test of the connection. Call the tool " + tryTool + " with ok set to true, and say nothing."},
			{Role: openai.ChatMessageRoleUser, Content: "Are you there?"},
		},
		Tools: []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: tryTool, Description: "Answers the test.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`),
		}}},
	}, func(name string) string { return name }, noDraft{}.Write)
	t := Trial{Took: time.Since(began), Called: len(r.calls) > 0 && r.calls[0].Tool == tryTool, Tokens: r.tokens}
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	return t, tried(err)
}

// tryTime is how long a model may take for the small question. People wait at the terminal.
const tryTime = 45 * time.Second

// tried says what a failed trial means for whoever sets the model up. An answer that holds nothing, or that was cut, is one all the same.
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
