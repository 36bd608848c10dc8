package bot

import (
	"context"
	"errors"

	"countersign/bot/directory"
	"countersign/bot/render"

	"github.com/slack-go/slack"
)

// explainMessage answers the shortcut "Explain this approval": who has to allow what a message asks for, why, and what
// has happened. It fills the modal that was opened when the shortcut arrived.
func (b *Bot) explainMessage(ctx context.Context, d delivered, i interaction) error {
	v, err := b.messageExplained(ctx, i)
	if err != nil && d.tries < clickTries {
		return err
	}
	if err != nil {
		b.Log.Error("a message could not be explained", "inbox", d.id, "error", err)
		v = render.Refusal(render.ExplainShortcut, render.Say("I could not look this up. Please try again in a moment."))
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
	return b.Workflow.Done(ctx, d.id, "")
}

func (b *Bot) messageExplained(ctx context.Context, i interaction) (slack.ModalViewRequest, error) {
	if err := b.here(ctx, i.origin()); errors.Is(err, errWorkspace) {
		return render.Refusal(render.ExplainShortcut, render.Say("I explain this to members of my own workspace only.")), nil
	} else if err != nil {
		return slack.ModalViewRequest{}, err
	}
	who, err := b.member(ctx, i.User.ID, b.Workflow.Policy())
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	if directory.Barred(who) {
		return render.Refusal(render.ExplainShortcut, render.Say("I explain this to full members of this workspace only.")), nil
	}
	channel, ts := i.message()
	ids, err := b.requestsOn(ctx, channel, ts)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	if len(ids) == 0 {
		return render.Refusal(render.ExplainShortcut, render.Say("Nobody is asked for an approval in this message, so there is nothing to explain. Use this on a card of mine, or on a line in a thread that says that something waits.")), nil
	}
	v, err := b.viewFor(ctx, i.User.ID)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	p, err := b.explainRequests(ctx, v, who, ids, false)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	v.Reader.LocalizeBlocks(p.Blocks)
	return render.Modal(render.FormTitles[render.ExplainShortcut], p), nil
}
