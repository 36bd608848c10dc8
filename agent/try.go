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
	Called bool // the model called a tool
	Tokens int  // input and output tokens; zero: not reported
}

// tryTool is the tool that the model must call in a trial.
const tryTool = "answer"

// Try sends one small question to a model, with the definitions of an agent's tools. The expected answer is a tool call,
// as in a step of the agent. Try calls no tool. An error of Try wraps ErrModelKey, ErrNoModel, ErrModelRefuses,
// ErrToolsTooLong or ErrModelUnreachable, or is ctx's error.
func Try(ctx context.Context, m Model, offered Offered) (Trial, error) {
	m.Timeout, m.Idle = tryTime, tryTime
	c := newClient(m, time.Now, slog.New(slog.DiscardHandler))
	began := time.Now()
	tools := Offered{{Tool: Tool{Description: "Answers the test."}, wire: tryTool,
		params: json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`)}}
	for _, t := range offered {
		if t.wire != tryTool {
			tools = append(tools, t)
		}
	}
	q := modelRequest{messages: []openai.ChatCompletionMessage{
		{Role: openai.ChatMessageRoleSystem, Content: "This is a test of the connection. Call the tool " + tryTool + " with ok set to true, and say nothing."},
		{Role: openai.ChatMessageRoleUser, Content: "Are you there?"},
	}}
	r, err := c.ask(ctx, request(m.Name, q, tools, false), func(name string) string { return name }, noDraft{}.Write)
	t := Trial{Took: time.Since(began), Called: len(r.calls) > 0, Tokens: r.tokens}
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
	case causeLong:
		return fmt.Errorf("%w: %w", ErrToolsTooLong, f.detail)
	case causeRequest, causeFilter, causeQuota:
		return fmt.Errorf("%w: %w", ErrModelRefuses, f.detail)
	}
	return fmt.Errorf("%w: %w", ErrModelUnreachable, f.detail)
}
