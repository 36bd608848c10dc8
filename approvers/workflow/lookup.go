package workflow

import (
	"context"
	"encoding/json"

	"countersign/approvers"
	"countersign/store"
)

// Delivery finds the outbox message that a Slack message shows, and the version of it that was posted last.
func (w *Workflow) Delivery(ctx context.Context, channel, ts string) (s store.OutboxMessage, shown store.Rendering, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		if s, err = r.OutboxMessageAt(channel, ts); err != nil {
			return err
		}
		shown, err = r.Rendering(s.ID, s.Posts)
		return err
	})
	return s, shown, err
}

// Rendering reads one posted version of an outbox message.
func (w *Workflow) Rendering(ctx context.Context, surface string, post uint64) (shown store.Rendering, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		shown, err = r.Rendering(surface, post)
		return err
	})
	return shown, err
}

// Request reads a request.
func (w *Workflow) Request(ctx context.Context, id string) (req approvers.Request, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		req, err = r.Request(id)
		mask(w.Policy(), &req, nil)
		return err
	})
	return req, err
}

// Execution reads an execution with its exact arguments: nothing is masked.
func (w *Workflow) Execution(ctx context.Context, id string) (e approvers.Execution, err error) {
	err = w.Store.View(ctx, func(r store.Reader) (err error) {
		e, err = r.Execution(id)
		return err
	})
	return e, err
}

// Policy is the policy in force.
func (w *Workflow) Policy() *approvers.Policy { return w.Config.Policy() }

// Admits validates what somebody filled in against the schema of a form. See Config.
func (w *Workflow) Admits(schema, values json.RawMessage) error {
	return w.Config.Admits(schema, values)
}

// Inbox reads a delivery that is due to be handled.
func (w *Workflow) Inbox(ctx context.Context, id string) (row store.Inbox, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		row, err = r.Inbox(id)
		return err
	})
	return row, err
}

// Waiting reports whether any request is open.
func (w *Workflow) Waiting(ctx context.Context) (waiting bool, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		open, err := r.OpenRequests(store.RequestCursor{}, 1)
		waiting = len(open) > 0
		return err
	})
	return waiting, err
}

// StepOf names the outbox message that shows the step of a call in the asker's thread; empty: nothing does.
func (w *Workflow) StepOf(ctx context.Context, call string) (surface string, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		surface = ""
		c, err := r.Call(call)
		if err != nil {
			return err
		}
		of, err := r.OutboxMessagesOf(c.Turn)
		for _, s := range of {
			if s.Kind == store.OutboxStep && s.Step == c.Step && s.State == store.OutboxShown {
				surface = s.ID
			}
		}
		return err
	})
	return surface, err
}

// Elicitation reads what a run asked.
func (w *Workflow) Elicitation(ctx context.Context, id string) (q approvers.Elicitation, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		q, err = r.Elicitation(id)
		return err
	})
	return q, err
}
