package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers/workflow/settings"
	"countersign/bot/directory"
	"countersign/bot/slackapi"
	"countersign/store"
)

// These values limit one catch-up. A catch-up reads the histories of channels (docs/transports.md). settings.MostReread
// limits the period that is read.
const (
	mostChannels  = 500
	mostMessages  = 1000 // maximum number of messages per channel, and per thread
	mostThreads   = 200  // maximum number of threads per channel
	pageOfHistory = 200
	// oldThreads limits the age of threads in which the bot does not take part. In such a thread, the bot reads new
	// replies only if the thread began at most this long before the gap.
	oldThreads = 72 * time.Hour
	// oldTalks limits the age of the last message of a conversation with the bot. The bot reads the thread of a
	// conversation only if the last message was written at most this long before the gap. The first message of the
	// thread may be much older.
	oldTalks  = 7 * 24 * time.Hour
	mostTalks = 5000
	// The answer to a message that is older than longAway includes a note that the bot was away.
	longAway = 15 * time.Minute
)

// CatchUp reads the messages of a gap. A gap is a period in which the bot received no deliveries. CatchUp handles these
// messages as if Slack had delivered them. CatchUp recognises received messages by their ids, so Slack may deliver the
// same message before or after CatchUp reads it. CatchUp continues where an earlier process stopped. If the timer names
// a channel that the bot has joined, CatchUp reads only this channel.
func (b *Gaps) CatchUp(ctx context.Context, t store.Timer) error {
	now, err := b.Views.Received(ctx)
	if err != nil {
		return err
	}
	joined := t.Ref != store.SettingReceived
	switch {
	case joined && now.Until.IsZero(): // nothing was ever received, so no message was missed
		return b.Intake.JoinedRead(ctx, t)
	case joined:
		gap := now.Joined(b.Now())
		now.Gap = &gap
	case now.Gap == nil:
		return b.Intake.CaughtUp(ctx, settings.Gap{})
	default:
		if err := b.Intake.StillWaits(ctx, *now.Gap); err != nil {
			return err
		}
	}
	c := &catchUp{Gaps: b, gap: *now.Gap, since: now.Since, unread: map[string]int{}}
	if c.me, err = b.whoAmI(ctx); err != nil {
		return err
	}
	ctx = slackapi.WithCallPriority(ctx, slackapi.CallPriority{Priority: slackapi.PriorityLast})
	if !joined {
		return c.run(ctx)
	}
	if err := c.readJoined(ctx, t.Ref); err != nil {
		return err
	}
	return b.Intake.JoinedRead(ctx, t)
}

// readJoined reads a channel that the bot has joined. The bot may have been in the channel before, and can't find out
// when it was removed: for example, it may have been down at that time. So readJoined reads as far back as
// settings.MostReread allows. readJoined reads an older thread only if the bot had a recent conversation in it.
func (c *catchUp) readJoined(ctx context.Context, channel string) error {
	c.oldest, _ = c.gap.Oldest(c.since)
	if _, err := c.recentTalks(ctx); err != nil {
		return err
	}
	if err := c.readChannel(ctx, history{id: channel}); err != nil {
		return err
	}
	c.report()
	return nil
}

// catchUp is the state of one catch-up.
type catchUp struct {
	*Gaps
	me     directory.Self
	gap    settings.Gap
	since  time.Time           // time of the first start with this store
	oldest time.Time           // messages since this time are read
	talks  map[string][]string // threads of recent conversations, by channel
	found  int                 // number of messages that had not been received
	unread map[string]int      // number of channels whose history Slack does not show, by Slack's reason
}

// history identifies a channel whose history is read.
type history struct {
	id   string
	kind string // one of Slack's channel types, such as im or mpim; empty: unknown
}

func (c *catchUp) run(ctx context.Context) error {
	var cut bool
	if c.oldest, cut = c.gap.Oldest(c.since); cut {
		c.Log.WarnContext(ctx, "the gap is longer than the history that is read back; earlier messages are not answered", "from", c.gap.Received, "read_from", c.oldest)
	}
	channels, err := c.channels(ctx)
	if err != nil {
		return err
	}
	for i, ch := range channels {
		if ch.id <= c.gap.Done {
			continue
		}
		if i >= mostChannels {
			c.bound("channels", mostChannels, "")
			break
		}
		if err := c.readChannel(ctx, ch); err != nil {
			return err
		}
		if err := c.Intake.ChannelRead(ctx, c.gap, ch.id); err != nil {
			return err
		}
	}
	c.report()
	return c.Intake.CaughtUp(ctx, c.gap)
}

// report logs the number of messages that had not been received, and the number of histories that Slack does not show.
func (c *catchUp) report() {
	if c.found > 0 {
		c.Log.Info("missed messages were read from Slack", "from", c.gap.From, "to", c.gap.To, "messages", c.found)
	}
	for _, cause := range slices.Sorted(maps.Keys(c.unread)) {
		c.Log.Warn("channels can't be read after a gap; messages written there during the gap are not answered", "channels", c.unread[cause], "cause", cause)
	}
}

// bound logs that a limit of the catch-up was reached.
func (c *catchUp) bound(what string, most int, channel string) {
	c.Log.Warn("after a gap there was more to read than the limit; the rest is not answered", "limit", what, "most", most, "channel", channel)
}

// callPatiently makes a call, and repeats the call while Slack's rate limits delay it. All other calls of the bot have
// priority, so the caller may wait for minutes.
func callPatiently[T any](ctx context.Context, api *slackapi.Client, call func() (T, error)) (out T, err error) {
	for {
		out, err = call()
		wait := slackapi.RetryDelay(err)
		if wait == 0 || !api.Worth() {
			return out, err
		}
		if err := slackapi.Sleep(ctx, wait); err != nil {
			return out, err
		}
	}
}

// skipped reports whether Slack refused to let the bot read a history.
func (c *catchUp) skipped(err error) bool {
	code := slackapi.ErrorCode(err)
	if code == "" || slackapi.IsServerFailure(code) || slackapi.IsTokenRefusal(code) || slackapi.RetryDelay(err) > 0 {
		return false
	}
	c.Log.Debug("a history can't be read", "error", err)
	return true
}

// channels returns the channels and direct messages that the bot is a member of, sorted by id. The function adds the
// channels of recent conversations that Slack does not list.
func (c *catchUp) channels(ctx context.Context) (out []history, err error) {
	known := map[string]bool{}
	for _, kind := range []string{"public_channel", "private_channel", "im", "mpim"} {
		query := slack.GetConversationsForUserParameters{Types: []string{kind}, ExcludeArchived: true, Limit: pageOfHistory}
		for more := true; more; {
			page, err := callPatiently(ctx, c.api, func() (page []slack.Channel, err error) {
				page, query.Cursor, err = c.api.GetConversationsForUserContext(ctx, &query)
				return page, err
			})
			if c.skipped(err) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("users.conversations: %w", err)
			}
			for _, ch := range page {
				known[ch.ID] = true
				out = append(out, history{ch.ID, kind})
			}
			more = query.Cursor != ""
		}
	}
	talks, err := c.recentTalks(ctx)
	if err != nil {
		return nil, err
	}
	for _, conv := range talks {
		if !known[conv.Channel] {
			known[conv.Channel] = true
			kind := ""
			if conv.DM {
				kind = "im"
			}
			out = append(out, history{conv.Channel, kind})
		}
	}
	slices.SortFunc(out, func(a, b history) int { return cmp.Compare(a.id, b.id) })
	return out, nil
}

// recentTalks returns the recent conversations, and stores their threads in c.talks.
func (c *catchUp) recentTalks(ctx context.Context) ([]store.Conversation, error) {
	talks, err := c.Views.ConversationsSince(ctx, c.oldest.Add(-oldTalks), mostTalks+1)
	if len(talks) > mostTalks {
		c.bound("conversations", mostTalks, "")
		talks = talks[:mostTalks]
	}
	c.talks = map[string][]string{}
	for _, conv := range talks {
		if conv.Thread != "" && !conv.Gone {
			c.talks[conv.Channel] = append(c.talks[conv.Channel], conv.Thread)
		}
	}
	return talks, err
}

// readChannel handles people's messages in a channel and its threads, in order.
func (c *catchUp) readChannel(ctx context.Context, ch history) error {
	said, threads, err := c.topLevel(ctx, ch)
	if c.skipped(err) {
		c.unread[slackapi.Explain(err)]++
		return nil
	}
	if err != nil {
		return err
	}
	if len(threads) > mostThreads {
		c.bound("threads", mostThreads, ch.id)
		threads = threads[:mostThreads]
	}
	for _, root := range threads {
		replies, err := c.replies(ctx, ch, root)
		if c.skipped(err) {
			continue
		}
		if err != nil {
			return err
		}
		said = append(said, replies...)
	}
	slices.SortStableFunc(said, func(a, b slack.Message) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	said = slices.CompactFunc(said, func(a, b slack.Message) bool { return a.Timestamp == b.Timestamp }) // a reply that was also sent to the channel is in both lists
	for _, m := range said {
		if err := c.hear(ctx, ch, m); err != nil {
			return err
		}
	}
	return nil
}

// topLevel returns the new messages of a channel, newest first, and the threads that may have new replies.
func (c *catchUp) topLevel(ctx context.Context, ch history) (said []slack.Message, threads []string, err error) {
	oldest, seen, cursor := slackTime(c.oldest), map[string]bool{}, ""
	for n := 0; ; {
		h, err := callPatiently(ctx, c.api, func() (*slack.GetConversationHistoryResponse, error) {
			return c.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
				ChannelID: ch.id, Oldest: slackTime(c.oldest.Add(-oldThreads)), Cursor: cursor, Limit: pageOfHistory,
			})
		})
		if err != nil {
			return nil, nil, fmt.Errorf("conversations.history: %w", err)
		}
		for _, m := range h.Messages {
			seen[m.Timestamp] = true
			if m.Timestamp > oldest {
				said = append(said, m)
			}
			if m.LatestReply > oldest {
				threads = append(threads, m.Timestamp)
			}
		}
		n += len(h.Messages)
		if cursor = h.ResponseMetaData.NextCursor; cursor == "" {
			break
		}
		if n >= mostMessages {
			if len(said) >= mostMessages {
				c.bound("messages", mostMessages, ch.id)
			}
			break
		}
	}
	for _, root := range c.talks[ch.id] { // threads whose first message is older than the messages that were read above
		if !seen[root] {
			seen[root] = true
			threads = append(threads, root)
		}
	}
	return said, threads, nil
}

// replies returns the new replies of a thread.
func (c *catchUp) replies(ctx context.Context, ch history, root string) (said []slack.Message, err error) {
	type page struct {
		messages []slack.Message
		next     string
	}
	oldest, cursor := slackTime(c.oldest), ""
	for {
		p, err := callPatiently(ctx, c.api, func() (p page, err error) {
			p.messages, _, p.next, err = c.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
				ChannelID: ch.id, Timestamp: root, Oldest: oldest, Cursor: cursor, Limit: pageOfHistory,
			})
			return p, err
		})
		if err != nil {
			return nil, fmt.Errorf("conversations.replies: %w", err)
		}
		for _, m := range p.messages {
			if m.Timestamp > oldest {
				said = append(said, m)
			}
		}
		if cursor = p.next; cursor == "" {
			return said, nil
		}
		if len(said) >= mostMessages {
			c.bound("replies", mostMessages, ch.id)
			return said, nil
		}
	}
}

// slackTime formats a time as a Slack timestamp.
func slackTime(t time.Time) string {
	return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/int(time.Microsecond))
}

// hear stores a message as if Slack had delivered it. A new message is stored in its current version. If a message was
// received before, the function stores its edit.
func (c *catchUp) hear(ctx context.Context, ch history, m slack.Message) error {
	if m.User == c.me.User {
		return nil
	}
	e, raw, err := c.asEvent(ch, m, "")
	if err != nil || !e.Event.forUs() || c.chatter(e.Event) || e.shaped() != nil {
		return err
	}
	id, _ := e.Event.messageID(&c.self)
	_, err = c.Views.Inbox(ctx, id)
	if err == nil && m.Edited != nil && !e.Event.deletion() && m.Edited.Timestamp > slackTime(c.oldest) {
		if e, raw, err = c.asEvent(ch, m, m.Edited.Timestamp); err != nil {
			return err
		}
		id = deliveryID(store.InboxEvent, ch.id, m.Timestamp, "edited", m.Edited.Timestamp)
	} else if err == nil {
		return nil
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	fresh, err := c.Intake.Receive(ctx, store.Inbox{ID: id, Kind: store.InboxEvent, ReceivedAt: c.rereadAt.Next(c.Now()), Payload: raw}, e.lane())
	if fresh {
		c.found++
	}
	return err
}

// asEvent converts a message of a history to an event. raw is the event in its stored form. edited is the time of the
// message's edit. edited is empty for a message that the bot has not received before, even if somebody edited the
// message.
func (c *catchUp) asEvent(ch history, m slack.Message, edited string) (e envelope, raw []byte, err error) {
	inner := map[string]any{
		"type": "message", "subtype": m.SubType, "user": m.User, "bot_id": m.BotID, "text": m.Text, "ts": m.Timestamp, "channel": ch.id, "files": m.Files,
	}
	if ch.kind == "im" || ch.kind == "mpim" {
		inner["channel_type"] = ch.kind
	}
	if m.ThreadTimestamp != m.Timestamp { // Slack delivers the first message of a thread without thread_ts, because the message has no replies at that time
		inner["thread_ts"] = m.ThreadTimestamp
	}
	if edited != "" {
		inner["edited"] = map[string]any{"ts": edited}
	}
	outer := map[string]any{"type": "event_callback", "api_app_id": c.me.App, "team_id": c.me.Team, "enterprise_id": c.me.Enterprise, "event": inner}
	if sent, ok := timeOf(m.Timestamp); ok && c.Now().Sub(sent) > longAway {
		gap := c.gap.Gap
		if sent.Before(gap.From) {
			gap.From = sent
		}
		outer["gap"] = gap
	}
	if raw, err = json.Marshal(outer); err != nil {
		return e, nil, fmt.Errorf("encode a message: %w", err)
	}
	e, err = readEnvelope(raw)
	return e, raw, err
}

// timeOf returns the time of a Slack timestamp.
func timeOf(ts string) (time.Time, bool) {
	seconds, err := strconv.ParseFloat(ts, 64)
	return time.Unix(int64(seconds), 0).UTC(), err == nil
}
