package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// pen writes one draft into Slack: as a stream, or where Slack takes none, by changing a message.
type pen struct {
	b    *Bot
	turn string
	step int

	s         store.Surface // the draft; no id: it is not made yet
	conv      store.Conversation
	asker     approvers.PersonID
	streaming bool
	sent      int // bytes of the text that the stream holds
	size      int // characters of it
	blocks    int
	table     bool // it holds a table, of which Slack takes one in a message
}

// write shows a text as far as it is there, and says how long to wait before the next.
func (p *pen) write(ctx context.Context, text string) (time.Duration, error) {
	if strings.TrimSpace(text) == "" {
		return appendEvery, nil
	}
	if err := p.pickUp(ctx); err != nil {
		return updateEvery, err
	}
	var err error
	switch {
	case p.s.TS == "" && p.mayStream():
		err = p.start(ctx, text)
	case p.streaming:
		err = p.append(ctx, text)
	default:
		err = p.change(ctx, text)
	}
	every := updateEvery
	if p.streaming {
		every = appendEvery
	}
	var put later
	if errors.As(err, &put) {
		return max(every, put.after), err
	}
	return every, err
}

// pickUp finds the draft, and the message that an earlier try or an earlier process may have begun.
func (p *pen) pickUp(ctx context.Context) error {
	if p.s.ID != "" {
		return nil
	}
	s, conv, asker, err := p.b.Desk.Draft(ctx, p.turn, p.step)
	if err != nil || conv.Gone {
		return errNoUse // the turn is over, or went another way
	}
	if s.TS == "" {
		me, err := p.b.whoAmI(ctx)
		if err != nil {
			return err
		}
		begun, err := p.b.lost(ctx, me, s, spot{conv.Channel, conv.Thread})
		if err != nil {
			return err
		}
		s.Channel, s.TS = conv.Channel, begun[0]
	}
	p.s, p.conv, p.asker = s, conv, asker
	return nil
}

// mayStream reports whether a stream can be begun: Slack has them in threads only, and has not refused one lately.
func (p *pen) mayStream() bool { return p.conv.Thread != "" && !p.b.noStreams.isSet(p.b.Now()) }

// start begins a stream with what there is.
func (p *pen) start(ctx context.Context, text string) error {
	next, pieces := p.whole(text)
	if len(pieces) == 0 {
		return nil // nothing is whole yet
	}
	me, err := p.b.whoAmI(ctx)
	if err != nil {
		return err
	}
	p.b.posts.underWay(p.s.ID)
	channel, ts, err := p.b.api.StartStreamContext(ctx, p.conv.Channel, slack.MsgOptionTS(p.conv.Thread), slack.MsgOptionChunks(slack.NewBlocksChunk(p.draw(pieces)...)),
		slack.MsgOptionRecipientUserID(p.asker.User()), slack.MsgOptionRecipientTeamID(me.Team))
	if unsent(err) {
		p.b.posts.recorded(p.s.ID)
	}
	switch code := errorCode(err); {
	case err == nil:
	case unsent(err) && code == "": // Slack takes no more of them for now
		return fmt.Errorf("chat.startStream: %w", slow(err))
	case gone[code] && code != "missing_scope" && code != "invalid_blocks":
		return errNoUse
	case unsent(err):
		p.b.noStreams.set(p.b.Now())
		p.b.Log.Info("Slack refuses streams here; what the agent writes is shown by changing a message", "cause", code)
		return nil
	default:
		p.b.Log.Debug("nobody knows whether a stream began; the answer will tell", "error", err)
		return errNoUse
	}
	p.b.posts.underWay(p.s.ID)
	p.s.Channel, p.s.TS, p.streaming = channel, ts, true
	if err := p.record(ctx, text[:next]); err != nil {
		return err
	}
	p.b.posts.recorded(p.s.ID)
	p.took(next, pieces)
	return nil
}

// append adds to the stream what has become whole since.
func (p *pen) append(ctx context.Context, text string) error {
	next, pieces := p.whole(text)
	if len(pieces) == 0 || p.full(pieces) {
		return nil
	}
	_, _, err := p.b.api.AppendStreamContext(ctx, p.s.Channel, p.s.TS, slack.MsgOptionChunks(slack.NewBlocksChunk(p.draw(pieces)...)))
	switch code := errorCode(err); {
	case err == nil:
	case unsent(err) && code == "":
		return fmt.Errorf("chat.appendStream: %w", slow(err))
	case vanished[code]:
		return errNoUse
	default: // Slack ended the stream, or nobody knows what it holds: from here on the whole message is written anew
		p.streaming = false
		p.b.Log.Debug("a stream is over before its end; the message is changed instead", "error", err)
		return nil
	}
	p.took(next, pieces)
	return p.record(ctx, text[:next])
}

// change writes all that is whole into the draft's message, or posts it.
func (p *pen) change(ctx context.Context, text string) error {
	p.sent, p.size, p.blocks, p.table = 0, 0, 0, false
	next, pieces := p.whole(text)
	if len(pieces) == 0 {
		return nil
	}
	first := parts(pieces)[0]
	page := new(page)
	for _, x := range first {
		page.piece(x)
	}
	page.small("The agent is still writing…")
	d := one(page)
	if p.s.TS != "" {
		err := p.b.update(ctx, p.s, d)
		switch code := errorCode(err); {
		case err == nil:
			p.s.Drafted = false // the stream, if it was one, has been ended
			return p.record(ctx, text[:next])
		case vanished[code], stale[code]:
			return errNoUse
		}
		return err
	}
	channel, ts, err := p.b.post(ctx, p.s, d, spot{p.conv.Channel, p.conv.Thread}, nil)
	switch {
	case err == nil:
	case unsent(err) && errorCode(err) == "":
		return err
	default: // what was posted bears its name, and is found when the answer is shown
		return errNoUse
	}
	p.s.Channel, p.s.TS = channel, ts
	if err := p.record(ctx, text[:next]); err != nil {
		return err
	}
	p.b.posts.recorded(p.s.ID)
	return nil
}

func (p *pen) record(ctx context.Context, said string) error {
	if err := p.b.Desk.Drafted(ctx, p.s, said); err != nil {
		return errors.Join(errNoUse, err)
	}
	return nil
}

// whole is what of the rest of a text can't become anything else by what follows it: up to the end of a paragraph, a list, a table, a piece of code. next is where it ends.
func (p *pen) whole(text string) (next int, pieces []piece) {
	next = p.sent + settled(text[p.sent:])
	return next, markdown(text[p.sent:next])
}

// settled is how many bytes of a Markdown text stay as they are whatever follows: its blocks up to the last blank line outside of a fence, or up to the end of a fence.
func settled(text string) (n int) {
	fence, at := "", 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		at += len(line)
		if !strings.HasSuffix(line, "\n") {
			break
		}
		mark := mdFence.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		switch {
		case fence == "" && mark != nil:
			fence = mark[1]
		case fence == "":
			if strings.TrimSpace(line) == "" {
				n = at
			}
		case strings.HasPrefix(strings.TrimSpace(line), fence) && strings.Trim(strings.TrimSpace(line), fence[:1]) == "":
			fence, n = "", at
		}
	}
	return n
}

// draw makes blocks of pieces.
func (p *pen) draw(pieces []piece) []slack.Block {
	page := &page{tabled: p.table}
	for _, x := range pieces {
		page.piece(x)
	}
	return page.blocks
}

// full reports whether more does not fit into the message: the rest is shown at the end, in further ones.
func (p *pen) full(pieces []piece) bool {
	size := 0
	for _, x := range pieces {
		size += x.size
	}
	return p.size+size > maxPartText || p.blocks+len(pieces) > maxParts
}

// took notes what the stream holds.
func (p *pen) took(next int, pieces []piece) {
	p.sent, p.blocks = next, p.blocks+len(pieces)
	for _, x := range pieces {
		p.size += x.size
		p.table = p.table || x.table != nil
	}
}

// streamsRefused is for how long it is remembered that Slack refused a stream: the app may have been given them meanwhile.
const streamsRefused = time.Hour

// refusalNote remembers for a while that Slack refused something that a workspace has or has not.
type refusalNote struct {
	mu    sync.Mutex
	until time.Time
}

func (r *refusalNote) set(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = now.Add(streamsRefused)
}

func (r *refusalNote) isSet(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.until)
}

// endStream ends the stream that a message may still be: Slack changes no message that is being streamed.
func (b *Bot) endStream(ctx context.Context, channel, ts string) error {
	_, _, err := b.api.StopStreamContext(ctx, channel, ts)
	if code := errorCode(err); err == nil || code != "" && !failing(code) { // it is none, or not any more: changing it tells the rest
		return nil
	}
	return fmt.Errorf("chat.stopStream: %w", slow(err))
}

// drafted has a surface wait for its draft, and reads it anew then.
func (b *Bot) drafted(ctx context.Context, s desk.Sight) (desk.Sight, error) {
	if !s.Surface.Drafted {
		return s, nil
	}
	if _, err := b.drafts.end(ctx, s.Surface.Ref); err != nil {
		return s, err
	}
	return b.Desk.See(ctx, s.Surface.ID)
}
