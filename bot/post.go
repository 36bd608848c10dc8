package bot

import (
	"context"
	"fmt"

	"github.com/slack-go/slack"

	"countersign/bot/render"
	"countersign/bot/slackapi"
	"countersign/store"
)

// messageEvent is the type of the metadata that identifies the outbox message of a Slack message. Every app in the
// workspace can read the metadata, so it only contains ids.
const messageEvent = "countersign_surface"

func options(s store.OutboxMessage, m render.Message, part int) []slack.MsgOption {
	return []slack.MsgOption{
		slack.MsgOptionText(m.Text, false), slack.MsgOptionBlocks(m.Blocks...),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
		slack.MsgOptionMetadata(slack.SlackMetadata{
			EventType: messageEvent, EventPayload: map[string]any{"surface": s.ID, "part": part, "round": s.Round},
		}),
	}
}

// update changes the message that shows an outbox message. The further messages of a long answer never change.
func (b *Bot) update(ctx context.Context, s store.OutboxMessage, d render.Rendered) error {
	if s.Drafted {
		if err := b.endStream(ctx, s.Channel, s.TS); err != nil {
			return err
		}
	}
	if _, _, _, err := b.api.UpdateMessageContext(ctx, s.Channel, s.TS, options(s, d.Messages[0], 0)...); err != nil {
		return fmt.Errorf("chat.update: %w", slackapi.WithDelay(err))
	}
	return nil
}

// post posts the messages of an outbox message that are not there yet, and returns where the first one is. If the first
// one is already there, it is updated, because it was drawn from an earlier state.
func (b *Bot) post(ctx context.Context, s store.OutboxMessage, d render.Rendered, at destination, sent map[int]string) (channel, ts string, err error) {
	for part, m := range d.Messages {
		if found, ok := sent[part]; ok {
			if part == 0 {
				s.Channel, s.TS = at.channel, found
				channel, ts = at.channel, found
				if err := b.update(ctx, s, d); err != nil {
					return "", "", err
				}
			}
			continue
		}
		opts := options(s, m, part)
		if at.thread != "" {
			opts = append(opts, slack.MsgOptionTS(at.thread))
		}
		tried := b.unconfirmed.underWay(s.ID)
		postedIn, posted, message, err := b.api.PostMessageWithResponseContext(ctx, at.channel, opts...)
		if !tried && slackapi.IsNotSent(err) {
			b.unconfirmed.recorded(s.ID)
		} else {
			b.unconfirmed.underWay(s.ID)
		}
		if err != nil {
			return "", "", fmt.Errorf("chat.postMessage: %w", slackapi.WithDelay(err))
		}
		if at.thread != "" && message.Timestamp != "" && message.ThreadTimestamp == "" {
			return "", "", b.takeBack(ctx, postedIn, posted)
		}
		if part == 0 {
			channel, ts = postedIn, posted
		}
	}
	return channel, ts, nil
}

// takeBack deletes a reply to a deleted thread. Slack does not refuse such a reply, but posts it to the whole channel;
// only the message in its response shows that it has no thread. takeBack returns errNoThread. If the deletion fails, it
// returns an error that causes a retry, and findUnnamed then finds the message.
func (b *Bot) takeBack(ctx context.Context, channel, ts string) error {
	_, _, err := b.api.DeleteMessageContext(ctx, channel, ts)
	switch code := slackapi.ErrorCode(err); {
	case err == nil, slackapi.IsMessageLost(code):
	case code == "", slackapi.IsServerFailure(code):
		return fmt.Errorf("chat.delete: %w", slackapi.WithDelay(err))
	default:
		b.Log.Warn("what was said in a thread that is gone is in the channel now", "channel", channel, "error", err)
	}
	return fmt.Errorf("chat.postMessage: %w", errNoThread)
}

// errNoThread is Slack's answer for a deleted thread, if it does not post to the channel instead.
var errNoThread = slack.SlackErrorResponse{Err: "thread_not_found"}
