package bot

import (
	"context"
	"errors"

	"github.com/slack-go/slack"
)

// explainMessage answers Explain this approval: who has to allow what a message of the bot asks for, why, and what has happened. It fills the form that was opened
// when the shortcut came in.
func (b *Bot) explainMessage(ctx context.Context, d delivered, i interaction) error {
	v, err := b.messageExplained(ctx, i)
	if err != nil && d.tries < clickTries {
		return err
	}
	if err != nil {
		b.Log.Error("a message could not be explained", "inbox", d.id, "error", err)
		v = refusal(explainShortcut, say("I could not look this up. Please try again in a moment."))
	}
	err = b.fill(ctx, d.id, v)
	switch {
	case errors.Is(err, errNoForm):
		b.Log.Info("a form could not be filled in", "inbox", d.id, "cause", err)
	case err != nil && d.tries < clickTries:
		return err
	case err != nil:
		b.Log.Error("a form could not be filled in", "inbox", d.id, "error", err)
	}
	return b.Desk.Done(ctx, d.id, "")
}

func (b *Bot) messageExplained(ctx context.Context, i interaction) (slack.ModalViewRequest, error) {
	if err := b.here(ctx, i.origin()); errors.Is(err, errWorkspace) {
		return refusal(explainShortcut, say("I explain this to members of my own workspace only.")), nil
	} else if err != nil {
		return slack.ModalViewRequest{}, err
	}
	who, err := b.member(ctx, i.User.ID, b.Desk.Policy())
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	if barred(who) {
		return refusal(explainShortcut, say("I explain this to full members of this workspace only.")), nil
	}
	channel, ts := i.message()
	ids, err := b.requestsOn(ctx, channel, ts)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	if len(ids) == 0 {
		return refusal(explainShortcut, say("Nobody is asked for an approval in this message, so there is nothing to explain. Use this on a card of mine, or on a line in a thread that says that something waits.")), nil
	}
	view, err := b.sceneFor(ctx, i.User.ID)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	p, err := b.explainRequests(ctx, view, who, ids, false)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	view.reader.localizeBlocks(p.blocks)
	return modal(formTitles[explainShortcut], p), nil
}
