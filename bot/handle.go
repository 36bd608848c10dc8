package bot

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"countersign/approvers/desk"
	"countersign/internal/redact"
	"countersign/store"
)

// How long a delivery is tried. Clicks end sooner: their sender waits for an answer, and can click again.
const (
	clickTries = 3
	maxTries   = 40 // with the agenda's backoff some twenty minutes; while Slack is down it is kept
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
	rank := urgent
	if row.Kind == store.InboxEvent {
		rank = plain
	}
	err = b.handle(dueFor(ctx, rank, t), t, row)
	switch {
	case err == nil, errors.Is(err, desk.ErrHandled), errors.Is(err, desk.ErrNotDue):
		return nil
	case ctx.Err() != nil:
		return err
	case errors.Is(err, errPayload), errors.Is(err, errMark):
		return b.setAside(ctx, t, redact.Error(err), err)
	case t.Tries >= maxTries && !isPutOff(err):
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
		if err := b.here(ctx, e.origin()); err != nil {
			return b.elsewhere(ctx, row, err)
		}
		switch {
		case e.Event.homeOpened():
			return b.openedHome(ctx, row, e.Event)
		case b.aboutPlace(e.Event):
			return b.movePlace(ctx, row, e.Event)
		case e.Event.aboutAgent():
			if e.Event.opened() {
				return b.greet(ctx, row, e.Event)
			}
			return b.stopSession(ctx, row, e)
		case e.Event.deletion():
			return b.deleted(ctx, row, e)
		}
		return b.hear(ctx, row, e)
	case store.InboxInteraction:
		i, err := readInteraction(row.Payload)
		if err != nil {
			return err
		}
		d := delivered{id: row.ID, at: row.ReceivedAt, tries: t.Tries}
		switch i.Type {
		case interactionForm:
			return b.submitted(ctx, d, i)
		case interactionShortcut:
			return b.explainMessage(ctx, d, i)
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

// elsewhere closes a delivery that is not for the bot. Why else it is not known where it is from passes.
func (b *Bot) elsewhere(ctx context.Context, row store.Inbox, err error) error {
	if !errors.Is(err, errWorkspace) {
		return err
	}
	b.Log.Warn("a delivery was set aside", "inbox", row.ID, "why", err)
	return b.Desk.Done(ctx, row.ID, redact.Error(err))
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
