package bot

import (
	"context"
	"errors"
	"fmt"

	"countersign/bot/render/block"
	"countersign/bot/slackapi"

	"github.com/slack-go/slack"
)

// ephemeral sends private replies to people. A reply is not stored, so it may be lost. No other work depends on it.
type ephemeral struct {
	*core
	identities *Identities
}

// ephemeralReply identifies the recipient of a private reply, and the place of the recipient's action.
type ephemeralReply struct {
	user        string
	channel     string // empty: direct message
	thread      string
	responseURL string // a URL from a click is used in direct messages; a URL from a slash command is used everywhere
	command     bool   // the recipient used a slash command, perhaps in a channel where the bot is not a member
	replace     bool   // the answer replaces the clicked message, which only the recipient sees
}

// reply sends a private reply. If the ephemeral message fails, the reply is sent as a direct message. If that fails,
// too, the reply is sent through the response URL of the person's action. If nothing succeeds, the reply is lost,
// because no other work depends on it.
func (b *ephemeral) reply(ctx context.Context, to ephemeralReply, p ...*block.RichText) {
	b.send(ctx, to, block.Paragraph(p...))
}

// respond sends the reply through the response URL of the person's action. The URL needs no token.
func (b *ephemeral) respond(ctx context.Context, to ephemeralReply, m block.Message, how slack.MsgOption) error {
	return b.refused.sendContent(ctx, m, func(opts ...slack.MsgOption) error {
		_, _, err := b.api.PostMessageContext(ctx, to.channel, append(opts, how)...)
		return err
	})
}

// send is like reply, but also accepts buttons.
func (b *ephemeral) send(ctx context.Context, to ephemeralReply, p *block.Builder) {
	ctx = slackapi.WithCallPriority(ctx, slackapi.CallPriority{Priority: slackapi.PriorityUrgent})
	m := p.Message()
	b.identities.known(to.user).Localize(&m)
	err := b.sendIn(ctx, to, m)
	if err == nil {
		return
	}
	if !errors.Is(err, errElsewhere) {
		b.Log.InfoContext(ctx, "an ephemeral message failed; it is sent as a direct one", "channel", to.channel, "cause", slackapi.Explain(err))
	}
	for _, fresh := range []bool{false, true} { // second try: Slack may have given the direct messages another channel
		dm := ""
		if dm, err = b.channels.DirectMessages(ctx, to.user, fresh); err == nil {
			err = b.refused.sendContent(ctx, m, func(opts ...slack.MsgOption) error {
				_, _, err := b.api.PostMessageContext(ctx, dm, opts...)
				return err
			})
		}
		if !slackapi.IsChannelLost(slackapi.ErrorCode(err)) {
			break
		}
	}
	if err != nil && to.responseURL != "" { // for example, Slack refuses the bot token
		err = b.respond(ctx, to, m, slack.MsgOptionResponseURL(to.responseURL, slack.ResponseTypeEphemeral))
	}
	if err != nil {
		b.Log.WarnContext(ctx, "a person could not be notified", "user", to.user, "channel", to.channel, "error", slackapi.Explain(err))
	}
}

var errElsewhere = fmt.Errorf("told by direct message")

// sendIn sends the reply in the place where the person acted. Only that person sees the reply. The reply has no
// metadata, because response URLs do not support metadata.
func (b *ephemeral) sendIn(ctx context.Context, to ephemeralReply, m block.Message) error {
	switch {
	case to.channel == "":
		return errElsewhere
	case to.responseURL != "" && to.replace:
		return b.respond(ctx, to, m, slack.MsgOptionReplaceOriginal(to.responseURL))
	case to.responseURL != "" && (to.command || to.channel[0] == 'D'):
		return b.respond(ctx, to, m, slack.MsgOptionResponseURL(to.responseURL, slack.ResponseTypeEphemeral))
	case to.channel[0] == 'D':
		return errElsewhere
	}
	return b.refused.sendContent(ctx, m, func(opts ...slack.MsgOption) error {
		if to.thread != "" {
			opts = append(opts, slack.MsgOptionTS(to.thread))
		}
		_, err := b.api.PostEphemeralContext(ctx, to.channel, to.user, opts...)
		return err
	})
}
