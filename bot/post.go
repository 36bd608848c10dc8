package bot

import (
	"context"
	"fmt"

	"github.com/slack-go/slack"

	"countersign/store"
)

// surfaceEvent names the metadata by which a message is known as a surface. Every app of the workspace can read it: it holds an id only.
const surfaceEvent = "countersign_surface"

func options(s store.Surface, m message, part int) []slack.MsgOption {
	return []slack.MsgOption{
		slack.MsgOptionText(m.Text, false), slack.MsgOptionBlocks(m.Blocks...),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
		slack.MsgOptionMetadata(slack.SlackMetadata{
			EventType: surfaceEvent, EventPayload: map[string]any{"surface": s.ID, "part": part, "round": s.Round},
		}),
	}
}

// update changes the message that shows a surface. The further messages of a long answer never change.
func (b *Bot) update(ctx context.Context, s store.Surface, d drawing) error {
	if s.Drafted {
		if err := b.endStream(ctx, s.Channel, s.TS); err != nil {
			return err
		}
	}
	if _, _, _, err := b.api.UpdateMessageContext(ctx, s.Channel, s.TS, options(s, d.messages[0], 0)...); err != nil {
		return fmt.Errorf("chat.update: %w", slow(err))
	}
	return nil
}

// post posts a surface's messages but those that are there already, and says where the first one is. A first one that was found is
// brought up to date: it was drawn from an earlier state.
func (b *Bot) post(ctx context.Context, s store.Surface, d drawing, at spot, sent map[int]string) (channel, ts string, err error) {
	for part, m := range d.messages {
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
		tried := b.posts.underWay(s.ID)
		postedIn, posted, message, err := b.api.PostMessageWithResponseContext(ctx, at.channel, opts...)
		if !tried && unsent(err) {
			b.posts.recorded(s.ID)
		} else {
			b.posts.underWay(s.ID)
		}
		if err != nil {
			return "", "", fmt.Errorf("chat.postMessage: %w", slow(err))
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

// takeBack deletes what was meant for a thread that is gone: Slack refuses no such reply, but posts it to the whole channel, and only the message in its answer, which is
// in no thread, tells. It says that there is no such thread; or that this has to be tried again, and then lost finds the message.
func (b *Bot) takeBack(ctx context.Context, channel, ts string) error {
	_, _, err := b.api.DeleteMessageContext(ctx, channel, ts)
	switch code := errorCode(err); {
	case err == nil, vanished[code]:
	case code == "", failing(code):
		return fmt.Errorf("chat.delete: %w", slow(err))
	default:
		b.Log.Warn("what was said in a thread that is gone is in the channel now", "channel", channel, "error", err)
	}
	return fmt.Errorf("chat.postMessage: %w", errNoThread)
}
