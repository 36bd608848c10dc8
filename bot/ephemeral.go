package bot

import (
	"context"
	"fmt"

	"countersign/bot/render"
	"countersign/bot/slackapi"

	"github.com/slack-go/slack"
)

// ephemeralReply identifies the recipient of a private reply, and where they are.
type ephemeralReply struct {
	user        string
	channel     string // empty: direct message
	thread      string
	responseURL string // from a click: valid for answers in direct messages; from a slash command: valid everywhere
	command     bool   // from a slash command, which can be used where the bot is not a member
	replace     bool   // the answer replaces the clicked message, which only the recipient sees
}

// replyEphemeral sends a private reply. It is help, not state, so it is not retried indefinitely. If Slack refuses the
// ephemeral message, the reply is sent as a direct message.
func (b *Bot) replyEphemeral(ctx context.Context, r ephemeralReply, p ...*render.RichText) {
	b.sendEphemeral(ctx, r, render.Paragraph(p...))
}

// sendEphemeral is like replyEphemeral, but also accepts buttons.
func (b *Bot) sendEphemeral(ctx context.Context, r ephemeralReply, p *render.BlockBuilder) {
	ctx = slackapi.WithCallPriority(ctx, slackapi.CallPriority{Priority: slackapi.PriorityUrgent})
	if err := b.replyIn(ctx, r, p); err == nil {
		return
	} else if r.channel != "" {
		b.Log.Debug("an ephemeral message was refused; sending a direct one", "error", err)
	}
	err := b.sendDirect(ctx, r.user, p, false)
	if slackapi.IsChannelLost(slackapi.ErrorCode(err)) {
		err = b.sendDirect(ctx, r.user, p, true)
	}
	if err != nil {
		b.Log.Warn("a person could not be notified", "user", r.user, "error", slackapi.Explain(err))
	}
}

// sendDirect sends a reply as a direct message. fresh opens the direct messages again.
func (b *Bot) sendDirect(ctx context.Context, user string, p *render.BlockBuilder, fresh bool) error {
	dm, err := b.channels.DirectMessages(ctx, user, fresh)
	if err != nil {
		return err
	}
	return b.ephemerally(ctx, p, user, func(opts ...slack.MsgOption) error {
		_, _, err := b.api.PostMessageContext(ctx, dm, opts...)
		return err
	})
}

var errElsewhere = fmt.Errorf("told by direct message")

// replyIn sends the reply in the place where the person acted, visible only to them.
func (b *Bot) replyIn(ctx context.Context, r ephemeralReply, p *render.BlockBuilder) error {
	switch {
	case r.channel == "":
		return errElsewhere
	case r.responseURL != "" && r.replace:
		return b.ephemerally(ctx, p, r.user, func(opts ...slack.MsgOption) error {
			_, _, err := b.api.PostMessageContext(ctx, r.channel, append(opts, slack.MsgOptionReplaceOriginal(r.responseURL))...)
			return err
		})
	case r.responseURL != "" && (r.command || r.channel[0] == 'D'):
		return b.ephemerally(ctx, p, r.user, func(opts ...slack.MsgOption) error {
			_, _, err := b.api.PostMessageContext(ctx, r.channel, append(opts, slack.MsgOptionResponseURL(r.responseURL, slack.ResponseTypeEphemeral))...)
			return err
		})
	case r.channel[0] == 'D':
		return errElsewhere
	}
	return b.ephemerally(ctx, p, r.user, func(opts ...slack.MsgOption) error {
		if r.thread != "" {
			opts = append(opts, slack.MsgOptionTS(r.thread))
		}
		_, err := b.api.PostEphemeralContext(ctx, r.channel, r.user, opts...)
		return err
	})
}

// ephemerally calls send with a message for one reader, in the form that Slack accepts. It omits what response URLs do
// not support.
func (b *Bot) ephemerally(ctx context.Context, p *render.BlockBuilder, user string, send func(...slack.MsgOption) error) error {
	m := p.Message()
	b.known(user).Localize(&m)
	_, _, err := b.inSimplerForms(ctx, m, render.TextOnly, func(m render.Message) error { return send(options(m)...) })
	return err
}
