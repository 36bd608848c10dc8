package bot

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/store"
)

// posts are those of this process of which nobody knows yet whether they are there, and what was found of such in the places where it was looked. What
// came before what is counted, and not read off a clock: the machine's may be set meanwhile.
type posts struct {
	mu    sync.Mutex
	count uint64
	begun map[string]uint64 // by surface: when one of its posts was under way last
	found map[spot]sweep
}

// sweep is what was found in a place when it was looked at: the messages of surfaces that were there then, of those since a time of Slack's.
type sweep struct {
	since time.Time // zero: of all
	at    uint64
	parts map[round]map[int]string // ts by part
	stray string                   // the newest message of the bot's own that bears no name, as a stream does until it has ended
}

// round is a surface since its message was lost last: a message of an earlier round is none of it any more.
type round struct {
	surface string
	n       uint64
}

func roundOf(s store.Surface) round { return round{s.ID, s.Round} }

// now counts on. p.mu is held.
func (p *posts) now() uint64 {
	p.count++
	return p.count
}

// moment is one that lies after all that was noted before it, and before all that is noted after it.
func (p *posts) moment() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now()
}

// underWay notes that a post of a surface is under way: before it is made, and once more when it is over and nobody has recorded it yet, for whoever looked
// meanwhile may have come too early to see it. It reports whether there was one before whose fate is not recorded.
func (p *posts) underWay(surface string) (before bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun == nil {
		p.begun = map[string]uint64{}
	}
	_, before = p.begun[surface]
	p.begun[surface] = p.now()
	return before
}

// recorded notes that what became of a surface's posts is known.
func (p *posts) recorded(surface string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.begun, surface)
}

// doubt is since when a message of a surface may be there without our knowing, if one may: its answer was lost, or the process that made the surface stopped
// before it was recorded. That was before all that this one does.
func (p *posts) doubt(s store.Surface, ours bool) (since uint64, doubtful bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, doubtful = p.begun[s.ID]
	return since, doubtful || !ours
}

// known are a surface's messages as they were found when others were looked for, after the doubt began.
func (p *posts) known(s store.Surface, at spot, doubt uint64) (parts map[int]string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.found[at]
	if !ok || f.since.After(s.After) || f.at <= doubt {
		return nil, false
	}
	return f.of(s), true
}

// of are the messages of a surface. A draft's may be one that bears no name yet.
func (f sweep) of(s store.Surface) map[int]string {
	parts := f.parts[roundOf(s)]
	if _, named := parts[0]; named || !s.Drafted || f.stray == "" {
		return parts
	}
	parts = maps.Clone(parts)
	if parts == nil {
		parts = map[int]string{}
	}
	parts[0] = f.stray
	return parts
}

// maxFound bounds in how many places it is remembered what was found there.
const maxFound = 1000

func (p *posts) note(at spot, f sweep) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil || len(p.found) >= maxFound {
		p.found = map[spot]sweep{}
	}
	p.found[at] = f
}

// How far back the bot looks for a message of its own whose post it did not see answered: to the time by Slack's clock when its surface was made, or, where
// that is not known, as many pages as it takes, but not more than this.
const (
	lookPages = 10
	lookLimit = 200
	lookSlack = time.Minute // between the clocks of Slack's machines
)

// lost finds messages of a surface that were posted without our knowing, by their part. One look at a place is for all that was to be there.
func (b *Bot) lost(ctx context.Context, me self, s store.Surface, at spot) (map[int]string, error) {
	doubt, doubtful := b.posts.doubt(s, b.Desk.Made(s))
	if !doubtful {
		return nil, nil
	}
	if parts, ok := b.posts.known(s, at, doubt); ok {
		return parts, nil
	}
	f := sweep{since: s.After, at: b.posts.moment(), parts: map[round]map[int]string{}}
	oldest := oldestOf(s)
	cursor := ""
	for range lookPages {
		messages, next, err := b.look(ctx, at, oldest, cursor)
		code := errorCode(err)
		if code == errNoThread.Err && at.thread != "" {
			return nil, b.strayed(ctx, me, s, at.channel, oldest)
		}
		if gone[code] {
			b.Log.Warn("the bot can't read where it posts, so a message may appear twice", "channel", at.channel, "cause", code)
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			of, part, ours := me.surfacePart(m)
			if !ours {
				if me.stray(m) && m.Timestamp > f.stray {
					f.stray = m.Timestamp
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
	if cursor == "" || at.thread == "" { // of a channel the newest was read, and the bot looks no further back for anything; of a thread the oldest
		b.posts.note(at, f)
	}
	return f.of(s), nil
}

// oldestOf is since when messages of a surface may be there; empty: nobody knows.
func oldestOf(s store.Surface) string {
	if s.After.IsZero() {
		return ""
	}
	return strconv.FormatInt(s.After.Add(-lookSlack).Unix(), 10)
}

// strayed takes back what was posted to a whole channel because its thread is gone, before that was recorded.
func (b *Bot) strayed(ctx context.Context, me self, s store.Surface, channel, oldest string) error {
	cursor := ""
	for range lookPages {
		messages, next, err := b.look(ctx, spot{channel: channel}, oldest, cursor)
		if err != nil {
			return err
		}
		for _, m := range messages {
			if of, _, ours := me.surfacePart(m); ours && of == roundOf(s) {
				if err := b.takeBack(ctx, channel, m.Timestamp); errorCode(err) != errNoThread.Err {
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

// stray reports whether a message is one of the bot's own that bears no name. Files come in such messages, too.
func (me self) stray(m slack.Message) bool {
	mine := m.User == me.User || me.Bot != "" && m.BotID == me.Bot
	return mine && m.Metadata.EventType == "" && len(m.Files) == 0 && m.SubType == ""
}

// surfacePart is which part of which surface a message is, in which round, if it is one of the bot's own.
func (me self) surfacePart(m slack.Message) (of round, part int, ok bool) {
	of.surface, ok = m.Metadata.EventPayload["surface"].(string)
	times, _ := m.Metadata.EventPayload["round"].(float64)
	n, _ := m.Metadata.EventPayload["part"].(float64)
	of.n = uint64(times)
	mine := m.User == me.User || me.Bot != "" && m.BotID == me.Bot
	return of, int(n), ok && mine && m.Metadata.EventType == surfaceEvent
}
