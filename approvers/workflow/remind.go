package workflow

import (
	"context"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// Remind reminds the people of a stage who have not decided. people are those of the stage, as the request of the
// snapshot had them.
func (w *People) Remind(ctx context.Context, timer store.Timer, roll view.StageSnapshot, people []approvers.Presence) error {
	return w.update(ctx, "remind", func(t *tx) error {
		r, err := t.requests.pendingRequest(timer, roll)
		if err != nil || r.ID == "" {
			return err
		}
		after, events, due := r.Remind(t.deciding(), people)
		if !due {
			if next := r.RemindNext(); !next.IsZero() {
				return t.SetTimer(store.Timer{Kind: store.TimerRemind, Ref: r.ID, Due: t.notYet(next)})
			}
			return t.ClearTimer(store.TimerRemind, r.ID)
		}
		unseen, err := t.cards.unseen(after)
		if err != nil {
			return err
		}
		if unseen {
			events = nil // nobody is reminded of a request that they were not shown
		}
		return t.apply(after, events)
	})
}
