package agent

import (
	"context"
	"errors"
	"fmt"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// Preview is the handler of store.TimerPreview: it has a tool say what a call would do, before anybody decides. That is a call like any other as far as the process is concerned:
// bounded in time, kept from taking the process down, ended by a pause. What comes of it is shown on the card, and never kept from it: a failure as much as an answer.
func (a *Agent) Preview(ctx context.Context, t store.Timer) error {
	p, ok, err := a.Desk.BeginPreview(ctx, t.Ref)
	if err != nil {
		return fmt.Errorf("preview %s: %w", t.Ref, err)
	}
	if !ok {
		return nil
	}
	log := a.Log.With("tool", p.Tool, "request", p.Request, "conversation", p.Conversation)
	text, err := a.foretell(ctx, p)
	outlive := context.WithoutCancel(ctx)
	switch {
	case err == nil:
		log.Info("preview made", "bytes", len(text))
		return a.Desk.EndPreview(outlive, p, text, "")
	case paused(ctx):
		return a.Desk.PutBackPreview(outlive, p)
	case stopped(ctx): // it was decided, or changed, meanwhile
		return nil
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), a.Desk.PutBackPreview(outlive, p))
	}
	log.Warn("no preview could be made", "error", err)
	return a.Desk.EndPreview(outlive, p, "", p.Tool+": "+sentence(err, p.Within))
}

// foretell calls the tool.
func (a *Agent) foretell(ctx context.Context, p desk.Previewing) (string, error) {
	tool, ok := a.Tools.find(p.Tool)
	if !ok || tool.pinned.Hash != p.ToolHash {
		return "", errors.New("its definition changed meanwhile")
	}
	if p.Own {
		tool.Run = tool.Preview
	}
	tool.Timeout = p.Within
	text, _, err := a.call(ctx, tool, approvers.Execution{
		ID: p.Key, Tool: p.Tool, Args: p.Args, Conversation: p.Conversation, Turn: p.Turn, Request: p.Request, Asker: p.Asker,
	}, a.Log.With("tool", p.Tool, "request", p.Request))
	if err != nil {
		return "", err
	}
	return cutText(text, maxForecastBytes), nil
}

// maxForecastBytes bounds what is handed on of what a tool said: far more than is kept.
const maxForecastBytes = 64 << 10
