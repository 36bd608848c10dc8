package bot

import (
	"context"
	"errors"
	"sync"
	"time"
)

// This file shows what a model is writing while it writes it. None of it counts: the desk's draft says where it stands, and what the step becomes takes its place. So
// whatever goes wrong here is left, and at the end there is one message with all of the answer.

// How a draft is shown. A model that is through before the first of these has its answer posted at once, as a whole.
const (
	draftAfter  = time.Second     // after its first words
	appendEvery = time.Second     // each is a call of chat.appendStream
	updateEvery = 3 * time.Second // each is a call of chat.update, of which Slack takes half as many
)

// Draft shows a step while the model writes it. It is made for one model call, and Close has to be called when that is over.
type Draft struct {
	b    *Bot
	turn string
	step int

	mu    sync.Mutex
	text  string
	begun bool

	news chan struct{} // rings when there is more text
	quit chan struct{}
	once sync.Once
	done chan struct{} // closed when Slack is asked nothing any more, and what it was asked is recorded
}

// drafts are those that are being written, by turn.
type drafts struct {
	mu    sync.Mutex
	under map[string]*Draft
}

// Draft begins to show what a model writes in a step of a turn. Nothing is shown until it has written something for a while.
func (b *Bot) Draft(turn string, step int) *Draft {
	return &Draft{b: b, turn: turn, step: step, news: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
}

// Write says what the model has written so far, all of it. It never waits.
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

// Close ends it: nothing more of it is shown. It waits for what Slack is being asked, and until that is recorded.
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

// add notes a draft. An earlier one of the turn has been closed.
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

// end ends the draft of a turn, and waits until it is recorded what became of it. It reports whether there was one.
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

// work shows what there is, as often as Slack takes it, until the draft is closed or there is no use in it.
func (d *Draft) work() {
	defer d.b.drafts.remove(d)
	defer close(d.done)
	ctx := withErrand(context.Background(), errand{precedence: last})
	pen := pen{b: d.b, turn: d.turn, step: d.step}
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

// rest waits for a while and then for news. It reports false when the draft is closed.
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
