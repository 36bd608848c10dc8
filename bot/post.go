package bot

import (
	"context"
	"fmt"
	"strconv"
	"time"

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
			EventType: surfaceEvent, EventPayload: map[string]any{"surface": s.ID, "part": part},
		}),
	}
}

// update changes the message that shows a surface. The further messages of a long answer never change.
func (b *Bot) update(ctx context.Context, s store.Surface, d drawing) error {
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
		postedIn, posted, err := b.api.PostMessageContext(ctx, at.channel, opts...)
		if err != nil {
			return "", "", fmt.Errorf("chat.postMessage: %w", slow(err))
		}
		if part == 0 {
			channel, ts = postedIn, posted
		}
	}
	return channel, ts, nil
}

// How far back the bot looks for a message of its own whose post it did not see answered.
const (
	lookPages = 10
	lookLimit = 200
	lookSlack = 2 * time.Minute // between the workspace's clock and ours
)

// sent finds messages of a surface that were posted without our knowing, by their part.
func (b *Bot) sent(ctx context.Context, me self, s store.Surface, at spot) (map[int]string, error) {
	found := map[int]string{}
	oldest := strconv.FormatInt(s.CreatedAt.Add(-lookSlack).Unix(), 10)
	cursor := ""
	for range lookPages {
		messages, next, err := b.look(ctx, at, oldest, cursor)
		if code := errorCode(err); gone[code] {
			b.Log.Warn("the bot can't read where it posts, so a message may appear twice", "channel", at.channel, "cause", code)
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			part, ours := surfacePart(m, s.ID)
			if ours && (m.User == me.User || m.BotID == me.Bot && me.Bot != "") {
				found[part] = m.Timestamp
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return found, nil
}

// look reads one page of a thread or of a channel.
func (b *Bot) look(ctx context.Context, at spot, oldest, cursor string) ([]slack.Message, string, error) {
	if at.thread != "" {
		messages, _, next, err := b.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
			ChannelID: at.channel, Timestamp: at.thread, Oldest: oldest, Cursor: cursor, Limit: lookLimit, IncludeAllMetadata: true,
		})
		if err != nil {
			return nil, "", fmt.Errorf("conversations.replies: %w", slow(err))
		}
		return messages, next, nil
	}
	h, err := b.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
		ChannelID: at.channel, Oldest: oldest, Cursor: cursor, Limit: lookLimit, IncludeAllMetadata: true,
	})
	if err != nil {
		return nil, "", fmt.Errorf("conversations.history: %w", slow(err))
	}
	return h.Messages, h.ResponseMetaData.NextCursor, nil
}

// surfacePart reports which part of the surface a message is, if it is one.
func surfacePart(m slack.Message, surface string) (int, bool) {
	if m.Metadata.EventType != surfaceEvent || m.Metadata.EventPayload["surface"] != surface {
		return 0, false
	}
	part, _ := m.Metadata.EventPayload["part"].(float64)
	return int(part), true
}
