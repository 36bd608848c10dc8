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
	dm, err := b.channels.DirectMessages(ctx, r.user)
	if err == nil {
		_, _, err = b.api.PostMessageContext(ctx, dm, ephemeralOptions(p, b.known(r.user))...)
	}
	if err != nil {
		b.Log.Warn("a person could not be notified", "user", r.user, "error", err)
	}
}

var errElsewhere = fmt.Errorf("told by direct message")

// replyIn sends the reply in the place where the person acted, visible only to them.
func (b *Bot) replyIn(ctx context.Context, r ephemeralReply, p *render.BlockBuilder) error {
	switch {
	case r.channel == "":
		return errElsewhere
	case r.responseURL != "" && r.replace:
		_, _, err := b.api.PostMessageContext(ctx, r.channel, append(ephemeralOptions(p, b.known(r.user)), slack.MsgOptionReplaceOriginal(r.responseURL))...)
		return err
	case r.responseURL != "" && (r.command || r.channel[0] == 'D'):
		_, _, err := b.api.PostMessageContext(ctx, r.channel, append(ephemeralOptions(p, b.known(r.user)), slack.MsgOptionResponseURL(r.responseURL, slack.ResponseTypeEphemeral))...)
		return err
	case r.channel[0] == 'D':
		return errElsewhere
	}
	options := ephemeralOptions(p, b.known(r.user))
	if r.thread != "" {
		options = append(options, slack.MsgOptionTS(r.thread))
	}
	_, err := b.api.PostEphemeralContext(ctx, r.channel, r.user, options...)
	return err
}

// ephemeralOptions makes a message for one reader. It omits what response URLs do not support.
func ephemeralOptions(p *render.BlockBuilder, by render.Reader) []slack.MsgOption {
	m := p.Message()
	by.Localize(&m)
	return []slack.MsgOption{
		slack.MsgOptionText(m.Text, false), slack.MsgOptionBlocks(m.Blocks...),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
}
