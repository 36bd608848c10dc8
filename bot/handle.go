package bot

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"countersign/approvers/desk"
	"countersign/store"
)

// How long a delivery is tried. Clicks end sooner: their sender waits for an answer, and can click again.
const (
	clickTries = 3
	maxTries   = 40 // with the agenda's backoff some twenty minutes
)

// Handle works on one delivery of the inbox. It always ends: a delivery that can't be handled is set aside with a note.
func (b *Bot) Handle(ctx context.Context, t store.Timer) (err error) {
	row, err := b.Desk.Inbox(ctx, t.Ref)
	if errors.Is(err, store.ErrNotFound) {
		return b.setAside(ctx, t, "the inbox row is gone", err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			b.Log.Error("handling a delivery panicked", "inbox", t.Ref, "panic", p, "stack", string(debug.Stack()))
			err = b.setAside(ctx, t, "handling it panicked", fmt.Errorf("panic: %v", p))
		}
	}()
	err = b.handle(ctx, t, row)
	switch {
	case err == nil, errors.Is(err, desk.ErrHandled), errors.Is(err, desk.ErrNotDue):
		return nil
	case ctx.Err() != nil:
		return err
	case errors.Is(err, errPayload), errors.Is(err, errMark):
		return b.setAside(ctx, t, err.Error(), err)
	case t.Tries >= maxTries:
		return b.setAside(ctx, t, "it failed too often", err)
	}
	return err
}

func (b *Bot) handle(ctx context.Context, t store.Timer, row store.Inbox) error {
	switch row.Kind {
	case store.InboxEvent:
		e, err := readEnvelope(row.Payload)
		if err != nil {
			return err
		}
		return b.hear(ctx, row, e)
	case store.InboxInteraction:
		i, err := readInteraction(row.Payload)
		if err != nil {
			return err
		}
		d := delivered{id: row.ID, at: row.ReceivedAt, tries: t.Tries}
		if i.Type == "view_submission" {
			return b.submitted(ctx, d, i)
		}
		return b.clicked(ctx, d, i)
	case store.InboxCommand:
		return b.commanded(ctx, row)
	}
	return b.setAside(ctx, store.Timer{Ref: row.ID}, "nothing handles deliveries of the kind "+string(row.Kind), nil)
}

// delivered is the inbox row of a click.
type delivered struct {
	id    string
	at    time.Time
	tries int
}

// setAside ends a delivery without handling it.
func (b *Bot) setAside(ctx context.Context, t store.Timer, note string, cause error) error {
	b.Log.Error("a delivery was set aside", "inbox", t.Ref, "tries", t.Tries, "why", note, "error", cause)
	err := b.Desk.Done(ctx, t.Ref, note)
	if errors.Is(err, desk.ErrHandled) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
