package workflow

import (
	"context"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// tellPausers tells everybody who may end a pause that it began, with a button to end it, or that it is over.
func (t pausesTx) tellPausers(p settings.Pause) error {
	if !p.On {
		return t.outbox.changedRef(settings.Pause{Round: p.Round - 1}.Ref())
	}
	for _, role := range t.policy.PausedBy {
		if err := t.outbox.wantOnce(store.OutboxMessage{Kind: store.OutboxPause, Ref: p.Ref(), To: store.ToRole + role}); err != nil {
			return err
		}
	}
	return nil
}

// Show refreshes everything that a pause, or its end, changes: the cards and steps that wait, and in each turn
// that waits for the model a message that it is held up. It works page by page, so that clicks are handled in between.
// Its timer stays until all is done.
func (w *Pauses) Show(ctx context.Context, timer store.Timer) error {
	var p settings.Pause
	err := w.Store.View(ctx, func(r store.Reader) (err error) {
		p, _, err = settings.ReadPause(r)
		return err
	})
	if err != nil {
		return err
	}
	err = w.openRequests(ctx, "show pause", func(t *tx, r approvers.Request) error { return t.pauses.showAgain(r) })
	if err != nil {
		return err
	}
	for _, kind := range []store.TimerKind{store.TimerThink, store.TimerRun} {
		if err := w.showHeldUp(ctx, kind); err != nil {
			return err
		}
	}
	return w.update(ctx, "show pause", func(t *tx) error {
		now, _, err := settings.ReadPause(t)
		if err != nil {
			return err
		}
		if now.Round != p.Round { // it changed meanwhile, so some messages show the old state
			timer.Due = t.now
			return t.SetTimer(timer)
		}
		return t.ClearTimer(timer.Kind, timer.Ref)
	})
}

// showAgain refreshes every message that shows a request.
func (t pausesTx) showAgain(r approvers.Request) error {
	if err := t.outbox.changedRef(r.ID); err != nil {
		return err
	}
	if err := t.cards.changedBundle(r); err != nil {
		return err
	}
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	return t.outbox.changedTurn(r.Turn, store.OutboxStep, call.Step)
}

// mostHeldUp limits the runs and model calls that are read when a pause changes. Work that arrives during the pause is
// told of it at once.
const mostHeldUp = 10_000

// showHeldUp tells runs or turns that wait that they are held up, or continue.
func (w *Pauses) showHeldUp(ctx context.Context, kind store.TimerKind) error {
	var timers []store.Timer
	err := w.Store.View(ctx, func(r store.Reader) (err error) {
		timers, err = r.Timers(kind, mostHeldUp)
		return err
	})
	for len(timers) > 0 && err == nil {
		page := timers[:min(len(timers), pageOfRequests)]
		timers = timers[len(page):]
		err = w.update(ctx, "show pause", func(t *tx) error {
			for _, timer := range page {
				if err := t.pauses.showHeldUp(timer); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return err
}

func (t pausesTx) showHeldUp(timer store.Timer) error {
	if _, err := t.Timer(timer.Kind, timer.Ref); err != nil {
		return store.IgnoreNotFound(err) // it was done meanwhile
	}
	if timer.Kind == store.TimerRun {
		e, err := t.Execution(timer.Ref)
		if err != nil {
			return store.IgnoreNotFound(err)
		}
		return t.runs.changedStep(e)
	}
	turn, err := t.Turn(timer.Ref)
	if err != nil {
		return store.IgnoreNotFound(err)
	}
	p, _, err := settings.ReadPause(t)
	if err != nil {
		return err
	}
	if p.On {
		return t.standStill(turn)
	}
	return t.outbox.changedTurn(turn.ID, store.OutboxStandstill, 0)
}

// standStill tells a conversation that a pause holds up its turn.
func (t pausesTx) standStill(turn approvers.Turn) error {
	if err := t.outbox.wantOnce(store.OutboxMessage{Kind: store.OutboxStandstill, Ref: turn.ID, To: store.ToConversation + turn.Conversation}); err != nil {
		return err
	}
	return t.outbox.changedTurn(turn.ID, store.OutboxStandstill, 0)
}
