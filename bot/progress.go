package bot

import (
	"context"
	"sync"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/render"
	"countersign/bot/render/wording"
	"countersign/bot/slackapi"
	"countersign/store"
)

// This file shows the progress of runs, in the message of their step and in the thread's status. Progress is not
// stored. An update with progress is not a recorded version of the message. Such an update keeps the buttons of the
// last recorded version. The next change of the state replaces the update.

// These values set the timing of progress. Each update calls chat.update and assistant.threads.setStatus.
const (
	progressAfter = time.Second             // most runs end sooner, and show no progress
	stepEvery     = 2900 * time.Millisecond // interval between two updates of one message; slightly less than updateEvery, so that no update is skipped
)

// Progress shows the progress of one try of a run. Close must be called when the try ends.
type Progress struct {
	b         *Display
	turn      string
	call      string
	execution string

	mu     sync.Mutex
	begun  bool
	closed bool

	news chan struct{} // signals new progress
	quit chan struct{}
}

// Progress starts to show the progress of a run. Nothing is shown until the run reports something.
func (b *Display) Progress(turn, call, execution string) *Progress {
	return &Progress{b: b, turn: turn, call: call, execution: execution, news: make(chan struct{}, 1), quit: make(chan struct{})}
}

// Show sets the progress: done of total, and a text from the tool. If total is 0, the total is unknown. Show never
// blocks. The latest call replaces earlier ones.
func (p *Progress) Show(done, total float64, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.b.progress.set(p.execution, wording.RunProgress{Done: done, Total: total, Text: text[:min(len(text), 4*wording.MaxRunProgressText)]})
	if !p.begun {
		p.begun = true
		p.b.side.Go(p.work)
	}
	p.retryLater()
}

// Close ends the progress. The current call to Slack may finish. After this call, nothing more is shown.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.b.progress.forget(p.execution)
		close(p.quit)
	}
}

// work shows the progress as often as the interval and Slack's rate limits allow, until the run ends.
func (p *Progress) work() {
	ctx := slackapi.WithCallPriority(context.Background(), slackapi.CallPriority{Priority: slackapi.PriorityTransient})
	for wait := progressAfter; p.awaitProgress(wait); {
		wait = updateEvery
		shown, err := p.b.showProgress(ctx, p.turn, p.call)
		if !shown {
			p.retryLater()
		}
		wait = max(wait, slackapi.RetryDelay(err))
		if err != nil {
			p.b.Log.DebugContext(ctx, "the progress of a run can't be shown now", "execution", p.execution, "error", err)
		}
	}
}

// awaitProgress waits for the given time, and then until there is new progress. The function returns false if the run
// has ended.
func (p *Progress) awaitProgress(wait time.Duration) bool {
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

// retryLater schedules another attempt to show the progress.
func (p *Progress) retryLater() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// showProgress updates the message of the run's step and the status of its thread. showProgress returns false if the
// message can't be changed now.
func (b *Display) showProgress(ctx context.Context, turn, call string) (shown bool, err error) {
	b.statuses.show(ctx, turn, false)
	id, err := b.Views.StepOf(ctx, call)
	if err != nil || id == "" || !b.shows.tryLock(id) { // if the message is being redrawn, the progress is shown next time
		return false, err
	}
	defer b.shows.unlock(id)
	vm, err := b.Views.Message(ctx, id)
	if err != nil {
		return false, err
	}
	s := vm.Message
	if at, there := b.shows.noted(id); there && b.Now().Sub(at) < stepEvery {
		return false, nil
	}
	if s.State != store.OutboxShown || s.Revision != s.ShownRevision || s.TS == "" || s.Drafted {
		return false, nil
	}
	v, err := b.viewOf(ctx, vm)
	if err != nil {
		return false, err
	}
	d, fits, err := render.RedrawProgress(v, b.progress.progressOf(vm.Calls))
	if err != nil || !fits {
		return false, err
	}
	b.shows.note(id, b.Now())
	_, err = b.posts.update(ctx, s, d)
	return true, err
}

// keyed serializes the work on each outbox message, and tracks when progress was last shown on it.
type keyed struct {
	mu    sync.Mutex
	busy  map[string]chan struct{}
	shown map[string]time.Time
}

// tryLock locks an outbox message if the message is not locked.
func (k *keyed) tryLock(id string) bool {
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

// lock waits until it can lock an outbox message.
func (k *keyed) lock(ctx context.Context, id string) error {
	for !k.tryLock(id) {
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

func (k *keyed) unlock(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.busy[id])
	delete(k.busy, id)
}

// note records the time at which progress was shown on an outbox message.
func (k *keyed) note(id string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shown == nil {
		k.shown = map[string]time.Time{}
	}
	k.shown[id] = at
}

// noted returns the time when progress was last shown on an outbox message. If the message shows no progress, the
// second result is false.
func (k *keyed) noted(id string) (time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, there := k.shown[id]
	return at, there
}

// markReplaced records that an outbox message no longer shows progress, because a recorded version replaced it.
func (k *keyed) markReplaced(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.shown, id)
}

// runProgresses holds the progress of current runs, by execution. The progress is stored nowhere else.
type runProgresses struct {
	mu sync.Mutex
	by map[string]wording.RunProgress
}

func (rs *runProgresses) set(execution string, r wording.RunProgress) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.by == nil {
		rs.by = map[string]wording.RunProgress{}
	}
	rs.by[execution] = r
}

func (rs *runProgresses) forget(execution string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.by, execution)
}

// progressOf returns the progress of the running calls of a step.
func (rs *runProgresses) progressOf(calls []view.Call) map[string]wording.RunProgress {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	out := map[string]wording.RunProgress{}
	for _, c := range calls {
		if c.Execution == nil || c.Execution.State != approvers.ExecutionExecuting {
			continue
		}
		if r, there := rs.by[c.Execution.ID]; there {
			out[c.Execution.ID] = r
		}
	}
	return out
}
