package bot

import (
	"context"
	"errors"
	"sync"
	"time"

	"countersign/approvers/desk"
	"countersign/store"
)

// This file shows how far a run is while it runs: in the message of its step, and in the status of the thread. None of it is stored. The message is changed between
// two recorded versions of it, with the buttons of the one that is recorded, and the next change of the state takes it away.

// How a run's progress is shown. Each is a call of chat.update, and of assistant.threads.setStatus.
const (
	progressAfter = time.Second             // most runs are over by then
	stepEvery     = 2900 * time.Millisecond // of one message, however many runs it shows; a little less than updateEvery, so that no turn is missed
)

// Progress shows how far one run is. It is made for one try of it, and Close has to be called when that is over.
type Progress struct {
	b         *Bot
	turn      string
	call      string
	execution string

	mu     sync.Mutex
	begun  bool
	closed bool

	news chan struct{} // rings when there is something new
	quit chan struct{}
}

// Progress begins to show how far a run is. Nothing is shown until the run says something.
func (b *Bot) Progress(turn, call, execution string) *Progress {
	return &Progress{b: b, turn: turn, call: call, execution: execution, news: make(chan struct{}, 1), quit: make(chan struct{})}
}

// Show says how far the run is: done of total, which is zero where it is not known, and what it is at, in the words of its tool. It never waits, and the newest counts.
func (p *Progress) Show(done, total float64, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.b.readings.set(p.execution, reading{done: done, total: total, text: text[:min(len(text), 4*maxReadingText)]})
	if !p.begun {
		p.begun = true
		p.b.side.Go(p.work)
	}
	p.again()
}

// Close ends it: nothing of it is shown any more, once what Slack is being asked is answered.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.b.readings.forget(p.execution)
		close(p.quit)
	}
}

// work shows what there is, as often as Slack takes it, until the run is over.
func (p *Progress) work() {
	ctx := withErrand(context.Background(), errand{precedence: last})
	for wait := progressAfter; p.rest(wait); {
		wait = updateEvery
		shown, err := p.b.showProgress(ctx, p.turn, p.call)
		if !shown {
			p.again()
		}
		var put later
		if errors.As(err, &put) {
			wait = max(wait, put.after)
		}
		if err != nil {
			p.b.Log.Debug("how far a run is can't be shown for now", "execution", p.execution, "error", err)
		}
	}
}

// rest waits for a while and then for news. It reports false when the run is over.
func (p *Progress) rest(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.quit:
		return false
	case <-timer.C:
	}
	select {
	case <-p.quit:
		return false
	case <-p.news:
	}
	return true
}

// again has what could not be shown now shown the next time.
func (p *Progress) again() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// showProgress brings what runs say into the message of their step and the status of their thread. It reports false where the message can't be changed for now.
func (b *Bot) showProgress(ctx context.Context, turn, call string) (shown bool, err error) {
	b.showStatus(ctx, turn, false)
	id, err := b.Desk.StepOf(ctx, call)
	if err != nil || id == "" || !b.shows.try(id) { // where it is being shown anew this moment, what is under way is shown the next time
		return false, err
	}
	defer b.shows.done(id)
	sight, err := b.Desk.See(ctx, id)
	if err != nil {
		return false, err
	}
	s := sight.Surface
	if at, there := b.shows.noted(id); there && b.Now().Sub(at) < stepEvery {
		return false, nil
	}
	if s.State != store.SurfaceShown || s.Want != s.Shown || s.TS == "" || s.Drafted {
		return false, nil
	}
	view, err := b.scene(ctx, sight)
	if err != nil {
		return false, err
	}
	d, fits, err := between(view, b.readings.of(sight.Calls))
	if err != nil || !fits {
		return false, err
	}
	b.shows.note(id, b.Now())
	return true, b.update(ctx, s, d)
}

// between draws a surface as it is recorded, but for what runs say of themselves: the buttons name the recorded version. It reports false where the state has moved
// on since that was drawn.
func between(view scene, say map[string]reading) (drawing, bool, error) {
	view.readings = nil
	view.Surface.Posts--
	_, body, err := draw(view)
	if err != nil || !desk.Same(view.Surface, body) {
		return drawing{}, false, err
	}
	if view.print, err = view.fingerprint(); err != nil {
		return drawing{}, false, err
	}
	view.readings = say
	return view.draw(), true, nil
}

// keyed are surfaces that are being shown, one at a time each, and when those were changed last that say how far a run is.
type keyed struct {
	mu    sync.Mutex
	busy  map[string]chan struct{}
	shown map[string]time.Time
}

// try takes a surface unless somebody has it.
func (k *keyed) try(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy[id] != nil {
		return false
	}
	if k.busy == nil {
		k.busy = map[string]chan struct{}{}
	}
	k.busy[id] = make(chan struct{})
	return true
}

// take waits until nobody else has a surface.
func (k *keyed) take(ctx context.Context, id string) error {
	for !k.try(id) {
		k.mu.Lock()
		free := k.busy[id]
		k.mu.Unlock()
		if free == nil {
			continue
		}
		select {
		case <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (k *keyed) done(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.busy[id])
	delete(k.busy, id)
}

// note says that a surface shows since then how far a run is.
func (k *keyed) note(id string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shown == nil {
		k.shown = map[string]time.Time{}
	}
	k.shown[id] = at
}

// noted is when a surface was changed last to show how far a run is; false: it shows nothing of that.
func (k *keyed) noted(id string) (time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, there := k.shown[id]
	return at, there
}

// over says that a surface shows its recorded version.
func (k *keyed) over(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.shown, id)
}
