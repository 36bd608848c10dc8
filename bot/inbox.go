package bot

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/slackapi"
	"countersign/internal/redact"
	"countersign/store"
)

// A delivery is tried again at most maxTries times. A click has the lower limit clickTries in three cases: Slack can't
// say who clicked, a form can't be shown, or the clicked version is not recorded yet. In these cases, the person waits
// and can click again.
const (
	clickTries = 3
	maxTries   = 40 // about 16 minutes with the scheduler's backoff; not applied while calls must wait (outage of Slack)
)

// Inbox handles the stored deliveries. Inbox reads a delivery, and calls the handler for the delivery's kind. A
// delivery that can't be handled is set aside with a note, so no delivery is retried forever.
type Inbox struct {
	*core
	ephemeral    *ephemeral
	messages     *messageHandler
	clicks       *clickHandler
	submissions  *submissionHandler
	commands     *commandHandler
	explainer    *explainer
	homes        *homeTabs
	access       *channelAccess
	availability *Availability
}

// Handle processes one delivery of the inbox. If a delivery can't be handled, it is set aside with a note.
func (b *Inbox) Handle(ctx context.Context, t store.Timer) (err error) {
	row, err := b.Views.Inbox(ctx, t.Ref)
	if errors.Is(err, store.ErrNotFound) {
		return b.setAside(ctx, t, "the inbox row is gone", err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			b.Log.ErrorContext(ctx, "handling a delivery panicked", "inbox", t.Ref, "panic", p, "stack", string(debug.Stack()))
			err = b.giveUp(ctx, t, "handling it panicked", fmt.Errorf("panic: %v", p))
		}
	}()
	if n := b.Intake.Deadly(row.ID); n > 0 {
		return b.abandon(ctx, row, n)
	}
	rank := slackapi.PriorityUrgent
	if row.Kind == store.InboxEvent {
		rank = slackapi.PriorityNormal
	}
	err = b.handle(dueFor(ctx, rank, t), t, row)
	switch {
	case err == nil, errors.Is(err, workflow.ErrHandled), errors.Is(err, workflow.ErrNotDue):
		return nil
	case ctx.Err() != nil, isDeferred(err):
		return err
	case isUnpermitted(err):
		return b.unpermitted(ctx, row, err)
	case errors.Is(err, errPayload), errors.Is(err, control.ErrButtonToken):
		return b.setAside(ctx, t, redact.Error(err), err)
	case t.Tries >= maxTries && !slackapi.IsPutOff(err):
		return b.giveUp(ctx, t, "it failed too often", err)
	}
	return err
}

func (b *Inbox) handle(ctx context.Context, t store.Timer, row store.Inbox) error {
	switch row.Kind {
	case store.InboxEvent:
		e, err := readEnvelope(row.Payload)
		if err != nil {
			return err
		}
		if err := e.shaped(); err != nil {
			return err
		}
		if err := b.checkOrigin(ctx, e.origin()); err != nil {
			return b.elsewhere(ctx, row, err)
		}
		switch {
		case e.Event.homeOpened():
			return b.homes.opened(ctx, row, e.Event)
		case e.Event.Type == userChange:
			return b.availability.accountChanged(ctx, row, e.Event)
		case e.Event.aboutGroup():
			return b.availability.groupChanged(ctx, row, e.Event)
		case b.aboutChannel(e.Event):
			return b.access.moveChannel(ctx, row, e.Event)
		case e.Event.aboutAgent():
			if e.Event.opensAgent() {
				return b.messages.greet(ctx, row, e.Event)
			}
			return b.messages.stopSession(ctx, row, e)
		case e.Event.deletion():
			return b.messages.deleted(ctx, row, e)
		}
		return b.messages.handle(ctx, row, e)
	case store.InboxInteraction:
		i, err := readInteraction(row.Payload)
		if err != nil {
			return err
		}
		d := delivered{id: row.ID, at: row.ReceivedAt, tries: t.Tries}
		switch i.Type {
		case interactionForm:
			return b.submissions.handle(ctx, d, i)
		case interactionShortcut:
			return b.explainer.explainMessage(ctx, d, i)
		}
		return b.clicks.handle(ctx, d, i)
	case store.InboxCommand:
		c, err := readCommand(row.Payload)
		if err != nil {
			return err
		}
		if err := b.checkOrigin(ctx, c.origin()); err != nil {
			return b.elsewhere(ctx, row, err)
		}
		c.inbox = row.ID
		return b.commands.handle(ctx, c)
	}
	return b.setAside(ctx, store.Timer{Ref: row.ID}, "nothing handles deliveries of the kind "+string(row.Kind), nil)
}

// delivered identifies the inbox row of an interaction, with its receipt time and tries.
type delivered struct {
	id    string
	at    time.Time
	tries int
}

// elsewhere marks a delivery as handled, with a note, if err says that the delivery is not for the bot. elsewhere
// returns any other error, so that the delivery is tried again.
func (b *Inbox) elsewhere(ctx context.Context, row store.Inbox, err error) error {
	if !errors.Is(err, errWorkspace) {
		return err
	}
	b.Log.WarnContext(ctx, "a delivery was set aside", "inbox", row.ID, "why", err)
	return b.Intake.Done(ctx, row.ID, redact.Error(err))
}

// abandon sets aside a delivery that has crashed the process several times. abandon tells the sender that the delivery
// was not handled.
func (b *Inbox) abandon(ctx context.Context, row store.Inbox, deaths int) error {
	to := senderOf(row)
	b.Log.ErrorContext(ctx, "a delivery was set aside: the process died repeatedly while it worked on it", "inbox", row.ID, "kind", string(row.Kind), "user", to.user, "deaths", deaths)
	err := b.Intake.Abandon(ctx, row.ID, to.user)
	if errors.Is(err, workflow.ErrHandled) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err == nil && to.user != "" {
		b.ephemeral.reply(ctx, to, form.DeniedText(&approvers.Denied{Code: approvers.DeniedAbandoned}, nil, nil))
	}
	return err
}

// senderOf returns the sender of a delivery, and where the sender acted. senderOf parses only the fields that it needs.
func senderOf(row store.Inbox) (to ephemeralReply) {
	switch row.Kind {
	case store.InboxEvent:
		if e, err := readEnvelope(row.Payload); err == nil {
			to = ephemeralReply{user: e.Event.userID(), channel: e.Event.channelID(), thread: e.Event.ThreadTS}
		}
	case store.InboxInteraction:
		if i, err := readInteraction(row.Payload); err == nil {
			channel, _ := i.message()
			to = ephemeralReply{user: i.User.ID, channel: channel, thread: i.Posted.ThreadTS, responseURL: i.ResponseURL}
		}
	case store.InboxCommand:
		if c, err := readCommand(row.Payload); err == nil {
			to = ephemeralReply{user: c.User, channel: c.Channel, responseURL: c.ResponseURL, command: true}
		}
	}
	return to
}

// setAside sets a delivery aside that the bot does not understand: it marks the delivery as handled, with a note that
// says why.
func (b *Inbox) setAside(ctx context.Context, t store.Timer, note string, cause error) error {
	return b.end(ctx, t, note, cause, b.Intake.Done)
}

// giveUp sets a delivery aside that the bot could not handle. giveUp also tells the operators.
func (b *Inbox) giveUp(ctx context.Context, t store.Timer, note string, cause error) error {
	return b.end(ctx, t, note, cause, b.Intake.GiveUp)
}

func (b *Inbox) end(ctx context.Context, t store.Timer, note string, cause error, settle func(ctx context.Context, inbox, note string) error) error {
	b.Log.ErrorContext(ctx, "a delivery was set aside", "inbox", t.Ref, "tries", t.Tries, "why", note, "error", cause)
	err := settle(ctx, t.Ref, note)
	if errors.Is(err, workflow.ErrHandled) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// unpermitted handles a delivery for which the bot token lacks a scope. unpermitted marks the delivery as handled, and
// immediately tells the sender about the missing scope.
func (b *Inbox) unpermitted(ctx context.Context, row store.Inbox, cause error) error {
	b.Log.ErrorContext(ctx, "a delivery was set aside, because the bot token lacks a scope; add it on the app's page OAuth & Permissions, and reinstall the app",
		"inbox", row.ID, "kind", string(row.Kind), "cause", slackapi.Explain(cause))
	if err := b.Intake.Done(ctx, row.ID, redact.Error(cause)); errors.Is(err, workflow.ErrHandled) || errors.Is(err, store.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	if to := senderOf(row); to.user != "" && isAddressed(row, &b.self) {
		b.ephemeral.reply(ctx, to, form.UnpermittedText())
	}
	return nil
}
