package workflow

import (
	"context"
	"errors"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// Refuse records that somebody clicked what can't be taken for a button of the bot's as it is: a version that was
// replaced, a copy, a value that was made up. named are the requests, or whatever else, that it names or that the
// message shows; each of them that exists gets a record, and nothing else changes. anew is a outbox message that is to
// be drawn again, so that the next click is on what is recorded; empty: none.
func (w *Workflow) Refuse(ctx context.Context, c Click, denied *approvers.Denied, anew string, named ...string) error {
	err := w.update(ctx, "refuse", func(t *tx) error {
		if err := t.settle(c.Inbox, string(denied.Code)); err != nil {
			return err
		}
		if err := t.drawAnew(anew, c, denied); err != nil {
			return err
		}
		slices.Sort(named)
		for _, id := range slices.Compact(named) {
			if id == "" {
				continue
			}
			_, err := t.Request(id)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if err := t.auditDenied(id, "click", c, denied); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, ErrHandled) {
		return nil
	}
	return err
}

// drawAnew has an outbox message drawn again whatever Slack is believed to show; none for an empty name. Each drawing
// is kept, so somebody who goes on clicking on what was drawn often enough has no more of them.
func (t *tx) drawAnew(surface string, c Click, denied *approvers.Denied) error {
	if surface == "" {
		return nil
	}
	_, draw, err := t.countDenial(denial{chain: surface, actor: string(c.Who.ID), user: c.User, what: "draw", code: string(denied.Code)})
	if err != nil || !draw {
		return err
	}
	s, err := t.OutboxMessage(surface)
	if err != nil {
		return err
	}
	s.Hash = ""
	return t.changed(s)
}
