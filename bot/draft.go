package bot

import (
	"context"
	"errors"
	"sync"
	"time"

	"countersign/bot/slackapi"
)

// This file shows the model's text while it is written. The text is provisional: the workflow's draft record has its
// position, and the finished step replaces it. Errors here are therefore ignored; at the end there is one message with
// the whole answer.

// Timing of drafts. If the model finishes before draftAfter, the answer is posted at once as a whole.
const (
	draftAfter  = time.Second     // after the first words
	appendEvery = time.Second     // interval of chat.appendStream
	updateEvery = 3 * time.Second // interval of chat.update, which Slack accepts half as often
)

// Draft shows a step while the model writes it. It belongs to one model call. Close must be called when the call ends.
type Draft struct {
	b    *Bot
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

// drafts holds the current drafts, by turn.
type drafts struct {
	mu    sync.Mutex
	under map[string]*Draft
}

// Draft starts a draft for a step of a turn. Nothing is shown until the model has been writing for a while.
func (b *Bot) Draft(turn string, step int) *Draft {
	return &Draft{b: b, turn: turn, step: step, news: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
}

// Write sets the text that the model has written so far. It never blocks.
func (d *Draft) Write(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text = text
	if !d.begun {
		d.begun = true
		d.b.drafts.add(d)
		go d.work() // Close waits for it
	}
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// Close ends the draft: nothing more is shown. It waits until the call under way is complete and recorded.
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
func (ds *drafts) add(d *Draft) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.under == nil {
		ds.under = map[string]*Draft{}
	}
	ds.under[d.turn] = d
}

func (ds *drafts) remove(d *Draft) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.under[d.turn] == d {
		delete(ds.under, d.turn)
	}
}

// end ends the draft of a turn and waits until its outcome is recorded. It reports whether there was a draft.
func (ds *drafts) end(ctx context.Context, turn string) (bool, error) {
	ds.mu.Lock()
	d := ds.under[turn]
	ds.mu.Unlock()
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

// errNoUse says that nothing more of a draft can be shown.
var errNoUse = errors.New("the draft is not shown any further")

// work shows the text, as often as Slack accepts it, until the draft is closed or can't be shown any more.
func (d *Draft) work() {
	defer d.b.drafts.remove(d)
	defer close(d.done)
	ctx := slackapi.WithCallPriority(context.Background(), slackapi.CallPriority{Priority: slackapi.PriorityLast, WillChange: true})
	pen := streamWriter{b: d.b, turn: d.turn, step: d.step}
	for wait := draftAfter; d.rest(wait); {
		var err error
		wait, err = pen.write(ctx, d.soFar())
		if errors.Is(err, errNoUse) {
			return
		}
		if err != nil {
			d.b.Log.Debug("a draft is not shown for now", "turn", d.turn, "error", err)
		}
	}
}

// rest waits for the given time and then for new text. It reports false when the draft is closed.
func (d *Draft) rest(wait time.Duration) bool {
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
