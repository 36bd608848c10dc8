package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/bot/directory"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/slackapi"
	"countersign/store"
)

// unconfirmedPosts tracks this process's posts with unconfirmed delivery, and the results of searches for such posts.
// unconfirmedPosts orders events by a counter, because somebody may change the system clock.
type unconfirmedPosts struct {
	mu    sync.Mutex
	count uint64
	begun map[string]uint64 // by outbox message: the count at which one of its posts was last under way
	found map[destination]historyScan
}

// historyScan is the result of one search of a channel or thread. historyScan has the Slack messages that show outbox
// messages and were posted after the time since.
type historyScan struct {
	since   time.Time // zero: no lower limit
	at      uint64    // the count when the search began
	began   time.Time
	parts   map[round]map[int]string // for each round: the timestamps of the Slack messages, by part
	unnamed string                   // the bot's newest message without metadata, such as a stream that has not ended
	bare    []bareMessage            // the bot's unrecorded messages without metadata
}

// bareMessage is a message of the bot without metadata: Slack may have dropped the metadata. Such a message is
// recognised by its buttons, which name the outbox message. If the message has no buttons, it is recognised by its
// text.
type bareMessage struct {
	ts     string
	text   string
	tokens []control.ButtonToken
}

func newBareMessage(m slack.Message) bareMessage {
	bare := bareMessage{ts: m.Timestamp, text: m.Text}
	if raw, err := json.Marshal(m.Blocks); err == nil {
		bare.tokens = control.TokensIn(raw)
	}
	return bare
}

// shows reports whether a message is an unrecorded version of an outbox message.
func (m bareMessage) shows(s store.OutboxMessage) bool {
	return slices.ContainsFunc(m.tokens, func(t control.ButtonToken) bool { return t.Message == s.ID && t.Post == s.Posts+1 })
}

// round identifies an outbox message in one of its rounds. Each time the Slack message of an outbox message is lost, a
// new round begins. Slack messages of earlier rounds do not belong to the outbox message.
type round struct {
	message string
	n       uint64
}

func roundOf(s store.OutboxMessage) round { return round{s.ID, s.Round} }

// nextCount increments and returns the counter. The caller holds p.mu.
func (p *unconfirmedPosts) nextCount() uint64 {
	p.count++
	return p.count
}

// moment returns a count that is higher than the count of every earlier record, and lower than the count of every later
// record.
func (p *unconfirmedPosts) moment() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nextCount()
}

// underWay records that a post of an outbox message is under way. underWay is called before the post. If the outcome is
// not recorded after the post, underWay is called once more, because a search in between may have missed the post.
// underWay reports whether an earlier post is unconfirmed.
func (p *unconfirmedPosts) underWay(message string) (before bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun == nil {
		p.begun = map[string]uint64{}
	}
	_, before = p.begun[message]
	p.begun[message] = p.nextCount()
	return before
}

// recorded records that the outcome of an outbox message's posts is known.
func (p *unconfirmedPosts) recorded(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.begun, message)
}

// doubt means that Slack may have an unrecorded message of an outbox message. Only a later search is sure to find this
// message: it must have begun after the counter had the value count, and after the time until.
type doubt struct {
	count uint64
	until time.Time
}

// doubtOf reports whether Slack may already show the outbox message s in a Slack message that the store does not record.
// doubtful is true if Slack's answer to a post was lost, or if another process may have posted s.
func doubtOf(s store.OutboxMessage, p *unconfirmedPosts, o Outbox) (d doubt, doubtful bool) {
	made, until := o.Made(s)
	return p.doubt(s, made, until)
}

// doubt is like doubtOf. made and until are the results of Outbox.Made for the message.
func (p *unconfirmedPosts) doubt(s store.OutboxMessage, made bool, until time.Time) (d doubt, doubtful bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.count, doubtful = p.begun[s.ID]
	if !made {
		d.until, doubtful = until, true
	}
	return d, doubtful
}

// known returns the outbox message's Slack messages that an earlier search found, if that search settles the doubt.
func (p *unconfirmedPosts) known(s store.OutboxMessage, texts []string, at destination, d doubt) (parts map[int]string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.found[at]
	if !ok || f.since.After(s.After) || f.at <= d.count || !f.began.After(d.until) {
		return nil, false
	}
	return f.messagesOf(s, texts), true
}

// messagesOf returns the Slack messages that show an outbox message. texts are the texts of the outbox message's parts.
// The texts are needed, because a draft's message may not have the id yet, and Slack may have dropped other messages'
// metadata.
func (f historyScan) messagesOf(s store.OutboxMessage, texts []string) map[int]string {
	parts := maps.Clone(f.parts[roundOf(s)])
	if parts == nil {
		parts = map[int]string{}
	}
	for _, m := range f.bare {
		part := 0
		if !m.shows(s) {
			part = slices.Index(texts, m.text)
		}
		if _, named := parts[part]; !named && part >= 0 && !s.Drafted && (part > 0 || len(m.tokens) == 0 || m.shows(s)) {
			parts[part] = m.ts
		}
	}
	if _, named := parts[0]; !named && s.Drafted && f.unnamed != "" {
		parts[0] = f.unnamed
	}
	return parts
}

// maxFound is the maximum number of channels and threads whose search results are kept.
const maxFound = 1000

func (p *unconfirmedPosts) note(at destination, f historyScan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil || len(p.found) >= maxFound {
		p.found = map[destination]historyScan{}
	}
	p.found[at] = f
}

// These values limit the search for a message with an unconfirmed post. The search goes back to the time at which the
// outbox message was created, by Slack's clock. The search may end earlier, at the page limit.
const (
	scanPages  = 10
	scanLimit  = 200
	scanMargin = time.Minute // allowed difference between the clocks of Slack's machines
)

// find returns the unrecorded Slack messages of an outbox message, by part. drawn is the outbox message in its
// current drawing. For a draft, drawn is empty. All outbox messages in a channel or thread share the result of one
// search.
func (b *posts) find(ctx context.Context, me directory.Self, s store.OutboxMessage, drawn block.Rendered, at destination) (map[int]string, error) {
	var texts []string
	for _, m := range drawn.Messages {
		texts = append(texts, m.Text)
	}
	d, doubtful := doubtOf(s, &b.unconfirmed, b.Outbox)
	if !doubtful {
		return nil, nil
	}
	if parts, ok := b.unconfirmed.known(s, texts, at, d); ok {
		return parts, nil
	}
	f := historyScan{since: s.After, at: b.unconfirmed.moment(), began: time.Now(), parts: map[round]map[int]string{}}
	oldest := oldestOf(s)
	cursor := ""
	for range scanPages {
		messages, next, err := b.scanHistory(ctx, at, oldest, cursor)
		code := slackapi.ErrorCode(err)
		if code == errNoThread.Err && at.thread != "" {
			return nil, b.findUnnamed(ctx, me, s, at.channel, oldest)
		}
		if slackapi.IsUnreachable(code) {
			b.Log.WarnContext(ctx, "the bot can't read the messages of a channel that it posts in, so a message may appear twice",
				"message", string(s.Kind), "request", s.Request, "channel", at.channel, "cause", code)
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			of, part, ours := namedPart(me, m)
			if !ours {
				if isUnnamed(me, m) && !b.isShown(ctx, at.channel, m.Timestamp) {
					f.bare, f.unnamed = append(f.bare, newBareMessage(m)), max(f.unnamed, m.Timestamp)
				}
				continue
			}
			if f.parts[of] == nil {
				f.parts[of] = map[int]string{}
			}
			f.parts[of][part] = m.Timestamp
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	// The result of an incomplete search of a channel is kept. Such a search has read the newest messages, and another
	// search would end at the same page limit. The result of an incomplete search of a thread is not kept, because it
	// has only the oldest messages.
	if cursor == "" || at.thread == "" {
		b.unconfirmed.note(at, f)
	}
	return f.messagesOf(s, texts), nil
}

// oldestOf returns the earliest possible time of an outbox message's post, as a ts. If the time is unknown, oldestOf
// returns "".
func oldestOf(s store.OutboxMessage) string {
	if s.After.IsZero() {
		return ""
	}
	return strconv.FormatInt(s.After.Add(-scanMargin).Unix(), 10)
}

// findUnnamed handles an outbox message whose thread does not exist any more. Slack may have posted unrecorded messages
// to the whole channel instead. findUnnamed deletes these messages. findUnnamed then returns errNoThread.
func (b *posts) findUnnamed(ctx context.Context, me directory.Self, s store.OutboxMessage, channel, oldest string) error {
	cursor := ""
	for range scanPages {
		messages, next, err := b.scanHistory(ctx, destination{channel: channel}, oldest, cursor)
		if err != nil {
			return err
		}
		for _, m := range messages {
			if of, _, ours := namedPart(me, m); ours && of == roundOf(s) {
				if err := b.takeBack(ctx, s, channel, m.Timestamp); slackapi.ErrorCode(err) != errNoThread.Err {
					return err
				}
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return fmt.Errorf("conversations.replies: %w", errNoThread)
}

// scanHistory reads one page of a thread or of a channel.
func (b *posts) scanHistory(ctx context.Context, at destination, oldest, cursor string) ([]slack.Message, string, error) {
	if at.thread != "" {
		messages, _, next, err := b.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
			ChannelID: at.channel, Timestamp: at.thread, Oldest: oldest, Cursor: cursor, Limit: scanLimit, IncludeAllMetadata: true,
		})
		if err != nil {
			return nil, "", fmt.Errorf("conversations.replies: %w", slackapi.WithDelay(err))
		}
		return messages, next, nil
	}
	h, err := b.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
		ChannelID: at.channel, Oldest: oldest, Cursor: cursor, Limit: scanLimit, IncludeAllMetadata: true,
	})
	if err != nil {
		return nil, "", fmt.Errorf("conversations.history: %w", slackapi.WithDelay(err))
	}
	return h.Messages, h.ResponseMetaData.NextCursor, nil
}

// isUnnamed reports whether a message is from the bot and has no metadata. isUnnamed excludes messages with files,
// which never have metadata.
func isUnnamed(me directory.Self, m slack.Message) bool {
	mine := m.User == me.User || me.Bot != "" && m.BotID == me.Bot
	return mine && m.Metadata.EventType == "" && len(m.Files) == 0 && m.SubType == ""
}

// isShown reports whether a message is recorded for an outbox message that is not a draft. Slack may have dropped the
// message's metadata.
func (b *posts) isShown(ctx context.Context, channel, ts string) bool {
	s, _, err := b.Views.Delivery(ctx, channel, ts)
	return err == nil && !s.Drafted
}

// namedPart returns the outbox message, round and part that a message of the bot shows.
func namedPart(me directory.Self, m slack.Message) (of round, part int, ok bool) {
	of.message, ok = m.Metadata.EventPayload[messageField].(string)
	times, _ := m.Metadata.EventPayload["round"].(float64)
	n, _ := m.Metadata.EventPayload["part"].(float64)
	of.n = uint64(times)
	mine := m.User == me.User || me.Bot != "" && m.BotID == me.Bot
	return of, int(n), ok && mine && m.Metadata.EventType == messageEvent
}
