package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/tracing"
	"countersign/store"
)

// Preview is the handler of store.TimerPreview. Preview calls a tool for the preview of a call that waits for
// approval. A preview has the protections of a run: a time limit, and recovery from panics. A pause ends a preview.
// The approval card shows the preview, or the reason why there is none.
func (a *Agent) Preview(ctx context.Context, t store.Timer) error {
	p, ok, err := a.Runs.BeginPreview(ctx, t.Ref)
	if err != nil {
		return fmt.Errorf("preview %s: %w", t.Ref, err)
	}
	if !ok {
		return nil
	}
	tracing.Belongs(ctx, tracing.Subject{Turn: p.Turn, Request: p.Request})
	log := a.Log.With("tool", p.Tool, "request", p.Request, "conversation", p.Conversation)
	text, err := a.runPreviewTool(ctx, p)
	outlive := context.WithoutCancel(ctx)
	switch {
	case err == nil:
		log.InfoContext(ctx, "preview made", "bytes", len(text))
		return a.Runs.EndPreview(outlive, p, approvers.PreviewAnswer{Text: text})
	case paused(ctx):
		return a.Runs.PutBackPreview(outlive, p)
	case stopped(ctx): // the request was decided or changed while the tool worked
		return nil
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), a.Runs.PutBackPreview(outlive, p))
	}
	if a.saidNo(p, err) {
		log.InfoContext(ctx, "the tool's preview says that the call would not succeed") // without the tool's text, which may contain arguments
		said := sentence(err, p.Within)
		return a.Runs.EndPreview(outlive, p, approvers.PreviewAnswer{Text: said, No: said})
	}
	log.WarnContext(ctx, "the preview could not be made", "error", err)
	return a.Runs.EndPreview(outlive, p, approvers.PreviewAnswer{Fault: p.Tool + ": " + sentence(err, p.Within)})
}

// saidNo reports whether an error means that the call would not succeed, according to the tool. An error from [Refused]
// means this. An error of a Go function also means this, with three exceptions: the network caused the error, the
// function did not end normally, or the outcome is unknown. After any other error, there is no preview.
func (a *Agent) saidNo(p workflow.PreviewCall, err error) bool {
	tool, ok := a.Tools.find(p.Tool)
	var network net.Error
	switch {
	case errors.Is(err, ErrRefused):
		return true
	case err.Error() == "":
		return false
	case !ok || tool.Definition != nil || tool.pinned.Hash != p.ToolHash, errors.As(err, &network):
		return false
	}
	return !slices.ContainsFunc([]error{errTimeUp, errPanic, errStopping, ErrOutcomeUnknown, ErrNotRun, context.Canceled, context.DeadlineExceeded},
		func(other error) bool { return errors.Is(err, other) })
}

func (a *Agent) runPreviewTool(ctx context.Context, p workflow.PreviewCall) (string, error) {
	tool, ok := a.Tools.find(p.Tool)
	if !ok || tool.pinned.Hash != p.ToolHash {
		return "", errors.New("its definition was changed in the meantime")
	}
	if p.Own {
		tool.Run = tool.Preview
	}
	tool.Timeout = p.Within
	e := approvers.Execution{ID: p.Key, Tool: p.Tool, Args: p.Args, Conversation: p.Conversation, Turn: p.Turn, Request: p.Request, Asker: p.Asker}
	ctx, span := startTool(ctx, tracing.SpanPreview, e)
	text, _, err := a.call(ctx, tool, e, a.Log.With("tool", p.Tool, "request", p.Request))
	span.End(toolProblem(err))
	if err != nil {
		return "", err
	}
	return cutText(text, maxToolPreviewBytes), nil
}

// maxToolPreviewBytes limits a tool's preview before the agent passes the preview to the workflow. The workflow
// shortens the preview further.
const maxToolPreviewBytes = 64 << 10
