package workflow

import (
	"context"
	"errors"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// Refuse records a click that is not valid for any of the bot's current buttons: on a replaced version, a copy, or with
// a forged value. named are the ids in the click or on the message; each that is a request gets a record, and nothing
// else changes. anew is an outbox message to render again, so that the next click is on a recorded version; empty:
// none.
func (w *Requests) Refuse(ctx context.Context, c Click, denied *approvers.Denied, anew string, named ...string) error {
	err := w.update(ctx, "refuse", func(t *tx) error {
		if err := t.settle(c.Inbox, string(denied.Code)); err != nil {
			return err
		}
		if err := t.outbox.drawAnew(anew, c, denied); err != nil {
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

// drawAnew renders an outbox message again, whatever Slack shows now; empty: none. Every version is kept, so the number
// of versions that one person can cause this way is limited.
func (t outboxTx) drawAnew(surface string, c Click, denied *approvers.Denied) error {
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
