package bot

import (
	"context"
	"errors"
	"time"

	"countersign/bot/directory"
	"countersign/bot/render/block"
	"countersign/bot/render/form"
	"countersign/bot/slackapi"
	"countersign/internal/redact"
	"countersign/store"
)

// The bot does nothing for a person whom it can't look up. If Slack does not identify the writer of a message, the bot
// keeps the message and tries again for a while. Later messages of the same conversation wait until the kept message is
// handled.
const (
	firstLookup  = 15 * time.Second
	lastLookup   = 2 * time.Minute
	deferredMost = time.Hour
)

// deferredError is the error of a delivery that must be tried again later.
type deferredError struct {
	error
	wait time.Duration
}

// After returns the delay before the next try. The scheduler calls After, and delays the later messages of the
// conversation for the same time.
func (e deferredError) After() time.Duration { return e.wait }

func (e deferredError) Unwrap() error { return e.error }

// isLookupRefused reports whether Slack refuses to identify a person, or gives an answer that can't be used.
func isLookupRefused(err error) bool {
	return slackapi.IsRefused(err) || slackapi.IsUnusable(err) || errors.Is(err, directory.ErrAboutAnother)
}

func isDeferred(err error) bool {
	var later deferredError
	return errors.As(err, &later)
}

// unknownWriter is a message whose writer Slack does not identify.
type unknownWriter struct {
	*messageHandler
	row store.Inbox
	e   envelope
}

// deferMessage keeps the message for a while, because Slack refuses to identify the writer. The bot tells the writer
// immediately, and once more if it finally sets the message aside.
func (b unknownWriter) deferMessage(ctx context.Context, cause error) error {
	row, waited, user := b.row, b.Now().Sub(b.row.ReceivedAt), b.e.Event.userID()
	if waited >= deferredMost { // waited includes the time that the message waited behind other messages
		b.Log.ErrorContext(ctx, "a message was set aside, because Slack did not say who wrote it", "inbox", row.ID, "user", user, "received", row.ReceivedAt, "cause", slackapi.Explain(cause))
		if err := b.Intake.Done(ctx, row.ID, redact.Error(cause)); err != nil {
			return err
		}
		b.tell(ctx, form.NotLookedUpText())
		return nil
	}
	fresh, err := b.Intake.Defer(ctx, row.ID, slackapi.Explain(cause))
	if err != nil {
		return err
	}
	if fresh {
		b.Log.WarnContext(ctx, "Slack does not say who wrote a message; the message is kept and tried again for an hour", "inbox", row.ID, "user", user, "cause", slackapi.Explain(cause))
		b.tell(ctx, form.LookedUpLaterText())
	}
	wait := firstLookup
	for wait <= waited {
		wait *= 2
	}
	return deferredError{cause, min(wait, lastLookup)}
}

// tell sends a notice to the writer if the message is for the bot. A message is for the bot if it mentions the bot, is
// a direct message, or belongs to a current conversation.
func (b unknownWriter) tell(ctx context.Context, words *block.RichText) {
	if !isAddressed(b.row, &b.self) {
		me, known := b.self.known()
		if !known {
			return
		}
		if turn, err := b.Views.TurnAt(ctx, me.Team, b.e.Event.channelID(), b.e.Event.thread()); err != nil || turn == "" {
			return
		}
	}
	b.ephemeral.reply(ctx, senderOf(b.row), words)
}
