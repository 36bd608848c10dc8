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
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
	"countersign/bot/render/markdown"
	"countersign/bot/slackapi"
	"countersign/store"
)

// These values set the timing of drafts. If the model finishes before draftAfter, there is no draft, and only the
// finished answer is posted.
const (
	draftAfter  = time.Second     // how long after the model's first words a draft begins
	appendEvery = time.Second     // interval of chat.appendStream
	updateEvery = 3 * time.Second // interval of chat.update, whose rate limit is half that of chat.appendStream
)

// Drafts shows the model's text while the model writes it. The text is provisional. The finished step replaces this
// text, in the Slack message that the workflow's draft record names. Errors of drafts are ignored, because the finished
// step shows the whole answer.
type Drafts struct {
	*core
	posts *posts

	mu    sync.Mutex
	under map[string]*Draft // the current drafts, by turn
}

// Draft shows the text of one model call while the model writes it. Close must be called when the call ends.
type Draft struct {
	b    *Drafts
	turn string
	step int

	mu    sync.Mutex
	text  string
	begun bool

	news chan struct{} // signals that there is more text
	quit chan struct{}
	once sync.Once
	done chan struct{} // closed when the last call to Slack is complete and recorded
}

// Draft starts a draft for a step of a turn. The bot shows nothing until the model has written for a while.
func (b *Drafts) Draft(turn string, step int) *Draft {
	return &Draft{b: b, turn: turn, step: step, news: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
}

// Write sets the text that the model has written so far. Write never blocks.
func (d *Draft) Write(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text = text
	if !d.begun {
		d.begun = true
		d.b.add(d)
		go d.work() // Close waits for this goroutine
	}
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// Close ends the draft. After Close returns, no more text is shown. Close waits until the current call to Slack is
// complete and recorded.
func (d *Draft) Close() {
	d.once.Do(func() { close(d.quit) })
	d.mu.Lock()
	begun := d.begun
	d.mu.Unlock()
	if begun {
		<-d.done
	}
}

func (d *Draft) soFar() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text
}

// add registers a draft. An earlier draft of the turn is already closed.
func (b *Drafts) add(d *Draft) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.under == nil {
		b.under = map[string]*Draft{}
	}
	b.under[d.turn] = d
}

func (b *Drafts) forget(d *Draft) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.under[d.turn] == d {
		delete(b.under, d.turn)
	}
}

// end ends the draft of a turn, and waits until the draft's outcome is recorded. The function returns false if there
// was no draft.
func (b *Drafts) end(ctx context.Context, turn string) (bool, error) {
	b.mu.Lock()
	d := b.under[turn]
	b.mu.Unlock()
	if d == nil {
		return false, nil
	}
	d.once.Do(func() { close(d.quit) })
	select {
	case <-d.done:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

// errNoUse says that no more text of a draft can be shown.
var errNoUse = errors.New("the draft is not shown any further")

// work shows the text as often as the intervals and Slack's rate limits allow, until the draft is closed or can't be
// shown any more.
func (d *Draft) work() {
	defer d.b.forget(d)
	defer close(d.done)
	ctx := slackapi.WithCallPriority(context.Background(), slackapi.CallPriority{Priority: slackapi.PriorityLast, WillChange: true})
	w := streamWriter{b: d.b, turn: d.turn, step: d.step}
	for wait := draftAfter; d.awaitText(wait); {
		var err error
		wait, err = w.write(ctx, d.soFar())
		if errors.Is(err, errNoUse) {
			return
		}
		if err != nil {
			d.b.Log.DebugContext(ctx, "a draft could not be shown; the next text is tried again", "turn", d.turn, "conversation", w.conv.ID, "error", err)
		}
	}
}

// awaitText waits for the given time, and then until there is new text. The function returns false if the draft is
// closed.
func (d *Draft) awaitText(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-d.quit:
		return false
	case <-timer.C:
	}
	select {
	case <-d.quit:
		return false
	case <-d.news:
	}
	select {
	case <-d.quit:
		return false
	default:
		return true
	}
}

// streamWriter writes one draft into Slack. streamWriter uses a stream of Slack's API. If Slack accepts no stream,
// streamWriter posts a message and edits it.
type streamWriter struct {
	b    *Drafts
	turn string
	step int

	s         store.OutboxMessage // the draft; its id is empty until it exists
	conv      store.Conversation
	asker     approvers.PersonID
	streaming bool
	sent      int // bytes of the text in the stream
	size      int // characters of the text in the stream
	blocks    int
	table     bool // the stream contains a table; Slack accepts one per message
	tried     bool // Slack refused a stream for this text
}

// noStreams describes, for the log, the bot's behaviour if Slack accepts no streams.
const noStreams = "the model's text is shown by editing a message"

// write shows those blocks of a text that are complete. The function returns how long to wait before the next write.
func (w *streamWriter) write(ctx context.Context, text string) (time.Duration, error) {
	if strings.TrimSpace(text) == "" {
		return appendEvery, nil
	}
	if err := w.pickUp(ctx); err != nil {
		return updateEvery, err
	}
	var err error
	switch {
	case w.s.TS == "" && w.mayStream(ctx):
		err = w.start(ctx, text)
	case w.streaming:
		err = w.append(ctx, text)
	default:
		err = w.change(ctx, text)
	}
	every := updateEvery
	if w.streaming {
		every = appendEvery
	}
	return max(every, slackapi.RetryDelay(err)), err
}

// pickUp finds or creates the draft. pickUp also finds the Slack message if an earlier try or process has posted it.
func (w *streamWriter) pickUp(ctx context.Context) error {
	if w.s.ID != "" {
		return nil
	}
	s, conv, asker, err := w.b.Turns.Draft(ctx, w.turn, w.step)
	if err != nil || conv.Gone {
		return errNoUse // the turn has ended or changed
	}
	if s.TS == "" {
		me, err := w.b.whoAmI(ctx)
		if err != nil {
			return err
		}
		begun, err := w.b.posts.find(ctx, me, s, block.Rendered{}, destination{conv.Channel, conv.Thread})
		if err != nil {
			return err
		}
		s.Channel, s.TS = conv.Channel, begun[0]
	}
	w.s, w.conv, w.asker = s, conv, asker
	return nil
}

// mayStream reports whether a stream can be started. A stream requires a thread. After Slack has refused a stream, no
// stream is started for a while.
func (w *streamWriter) mayStream(ctx context.Context) bool {
	return w.conv.Thread != "" && !w.tried && !w.b.refused.has(ctx, refusedStreams)
}

// start starts a stream with the text so far.
func (w *streamWriter) start(ctx context.Context, text string) error {
	next, pieces := w.nextPieces(text)
	if len(pieces) == 0 { // no block is complete yet, or the first block is too long for a stream; a message can show the beginning of a long block
		w.tried = markdown.Settled(text) > next
		return nil
	}
	me, err := w.b.whoAmI(ctx)
	if err != nil {
		return err
	}
	w.b.posts.unconfirmed.underWay(w.s.ID)
	channel, ts, err := w.b.api.StartStreamContext(ctx, w.conv.Channel, slack.MsgOptionTS(w.conv.Thread), slack.MsgOptionChunks(slack.NewBlocksChunk(w.draw(pieces)...)),
		slack.MsgOptionRecipientUserID(w.asker.User()), slack.MsgOptionRecipientTeamID(me.Team))
	if slackapi.IsNotSent(err) {
		w.b.posts.unconfirmed.recorded(w.s.ID)
	}
	if err == nil && ts == "" {
		err = slackapi.ErrNoTimestamp
	}
	switch code := slackapi.ErrorCode(err); {
	case err == nil:
	case slackapi.IsBlocksRefused(err): // posting the draft as a message shows which kind of block Slack refuses
		w.tried = true
		w.b.Log.DebugContext(ctx, "Slack refuses the blocks of a stream; the draft is shown by editing a message", "turn", w.turn, "conversation", w.conv.ID, "cause", slackapi.Explain(err))
		return nil
	case slackapi.IsMissing(err):
		w.b.refused.markMissing(ctx, refusedStreams, noStreams, err)
		return nil
	case slackapi.IsUnusable(err): // the stream may exist, so the bot looks for its message and edits the message
		w.b.refused.markMissing(ctx, refusedStreams, noStreams, err)
		w.s = store.OutboxMessage{}
		return nil
	case slackapi.IsNotSent(err) && code == "": // Slack accepts no more streams for now
		return fmt.Errorf("chat.startStream: %w", slackapi.WithDelay(err))
	case slackapi.IsUnreachable(code) && code != "missing_scope":
		return errNoUse
	case slackapi.IsNotSent(err):
		w.b.refused.markMissing(ctx, refusedStreams, noStreams, err)
		return nil
	default:
		w.b.Log.DebugContext(ctx, "it is unknown whether a stream began; the answer replaces it", "turn", w.turn, "conversation", w.conv.ID, "error", err)
		return errNoUse
	}
	w.b.posts.unconfirmed.underWay(w.s.ID)
	w.s.Channel, w.s.TS, w.streaming = channel, ts, true
	if err := w.record(ctx, text[:next]); err != nil {
		return err
	}
	w.b.posts.unconfirmed.recorded(w.s.ID)
	w.advance(next, pieces)
	return nil
}

// append adds the newly completed text to the stream.
func (w *streamWriter) append(ctx context.Context, text string) error {
	next, pieces := w.nextPieces(text)
	if len(pieces) == 0 {
		return nil
	}
	_, _, err := w.b.api.AppendStreamContext(ctx, w.s.Channel, w.s.TS, slack.MsgOptionChunks(slack.NewBlocksChunk(w.draw(pieces)...)))
	switch code := slackapi.ErrorCode(err); {
	case err == nil:
	case slackapi.IsNotSent(err) && code == "" && !slackapi.IsMissing(err):
		return fmt.Errorf("chat.appendStream: %w", slackapi.WithDelay(err))
	case slackapi.IsMessageLost(code):
		return errNoUse
	default: // Slack ended the stream, or its content is unknown: rewrite the whole message from now on
		w.streaming = false
		w.b.Log.DebugContext(ctx, "Slack ended a stream early; its message is edited instead", "turn", w.turn, "conversation", w.conv.ID, "error", err)
		return nil
	}
	w.advance(next, pieces)
	return w.record(ctx, text[:next])
}

// change writes the complete text, as far as it fits into one message, into the draft's message. If the draft has no
// message, change posts one.
func (w *streamWriter) change(ctx context.Context, text string) error {
	w.sent, w.size, w.blocks, w.table = 0, 0, 0, false
	next := markdown.Settled(text)
	pieces := markdown.Parse(text[:next])
	if len(pieces) == 0 {
		return nil
	}
	first := markdown.Messages(pieces)[0]
	page := new(block.Builder)
	for _, x := range first {
		page.Piece(x)
	}
	page.Small("The agent is still writing…")
	d := block.Single(page)
	if w.s.TS != "" {
		_, err := w.b.posts.update(slackapi.WithCallPriority(ctx, slackapi.CallPriority{Priority: slackapi.PriorityTransient}), w.s, d)
		switch code := slackapi.ErrorCode(err); {
		case err == nil:
			w.s.Drafted = false // the stream has ended, if there was one
			return w.record(ctx, text[:next])
		case slackapi.IsMessageLost(code), slackapi.IsRefused(err), slackapi.IsUnusable(err):
			return errNoUse
		}
		return err
	}
	shown, _, err := w.b.posts.post(ctx, w.s, d, destination{w.conv.Channel, w.conv.Thread}, nil)
	switch {
	case err == nil:
	case slackapi.IsNotSent(err) && slackapi.ErrorCode(err) == "":
		return err
	default: // if Slack posted the message, the bot finds it by the outbox message's id when it shows the answer
		return errNoUse
	}
	w.s = shown
	if err := w.record(ctx, text[:next]); err != nil {
		return err
	}
	w.b.posts.unconfirmed.recorded(w.s.ID)
	return nil
}

func (w *streamWriter) record(ctx context.Context, said string) error {
	if err := w.b.Turns.Drafted(ctx, w.s, said); err != nil {
		return errors.Join(errNoUse, err)
	}
	return nil
}

// nextPieces returns the part of the remaining text that can be shown now. This part fits into the message, and later
// text can't change its formatting. The result "next" is the end of this part. Text that does not fit is shown at the
// end, in further messages.
func (w *streamWriter) nextPieces(text string) (next int, pieces []markdown.Piece) {
	n, pieces := markdown.SettledWithin(text[w.sent:], markdown.MaxBlocks-w.blocks, markdown.MaxMessageText-w.size)
	return w.sent + n, pieces
}

// draw makes blocks from pieces.
func (w *streamWriter) draw(pieces []markdown.Piece) []slack.Block {
	page := &block.Builder{Tabled: w.table}
	for _, x := range pieces {
		page.Piece(x)
	}
	return page.Blocks
}

// advance records the content of the stream.
func (w *streamWriter) advance(next int, pieces []markdown.Piece) {
	w.sent, w.blocks = next, w.blocks+len(pieces)
	for _, x := range pieces {
		w.size += x.Size
		w.table = w.table || x.Table != nil
	}
}

// await waits until the draft of an outbox message has ended. Then await rereads the outbox message from the store.
func (b *Drafts) await(ctx context.Context, s view.Model) (view.Model, error) {
	if !s.Message.Drafted {
		return s, nil
	}
	if _, err := b.end(ctx, s.Message.Ref); err != nil {
		return s, err
	}
	return b.Views.Message(ctx, s.Message.ID)
}
