package desk

import (
	"context"
	"errors"
	"strconv"

	"countersign/approvers"
	"countersign/store"
)

// Remind tells those of a stage's people who have not decided that it still waits. people are the stage's, as the roll's request had them.
func (d *Desk) Remind(ctx context.Context, timer store.Timer, roll Roll, people []approvers.Presence) error {
	return d.update(ctx, "remind", func(t *tx) error {
		r, err := t.pendingRequest(timer, roll)
		if err != nil || r.ID == "" {
			return err
		}
		after, told, due := r.Remind(t.deciding(), people)
		if !due {
			if next := r.RemindNext(); !next.IsZero() {
				return t.SetTimer(store.Timer{Kind: store.TimerRemind, Ref: r.ID, Due: t.notYet(next)})
			}
			return t.ClearTimer(store.TimerRemind, r.ID)
		}
		if unseen, err := t.unseen(after); err != nil || unseen {
			return errors.Join(err, t.follow(r, after)) // nobody is reminded of what they were not shown
		}
		if err := t.auditReminded(after, len(told)); err != nil {
			return err
		}
		if err := t.follow(r, after); err != nil {
			return err
		}
		if err := t.cardsAgain(after); err != nil {
			return err
		}
		for _, who := range told {
			if err := t.notify(r.ID, who.ID, store.NoteReminder, after.Reminded+after.Told); err != nil {
				return err
			}
		}
		return nil
	})
}

// auditReminded records how many people were told once more.
func (t *tx) auditReminded(r approvers.Request, people int) error {
	if people == 0 {
		return nil
	}
	return t.audit(r.ID, approvers.AuditReminded, "", map[string]string{
		"people": strconv.Itoa(people), "reminder": strconv.Itoa(r.Reminded), "round": strconv.Itoa(r.Told), "digest": r.Digest,
	}, nil)
}
