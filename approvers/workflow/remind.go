package workflow

import (
	"context"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// Remind reminds the people of a stage who have not decided. people are the stage's people as of snapshot.
func (w *People) Remind(ctx context.Context, timer store.Timer, snapshot view.StageSnapshot, people []approvers.Presence) error {
	return w.update(ctx, "remind", func(t *tx) error {
		r, err := t.requests.pendingRequest(timer, snapshot)
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
		if err := t.apply(after, events); err != nil || approvers.AwaitsAnybody(after, t.policy, people) {
			return err
		}
		return t.timers.scheduleAvailability(after) // for example if Slack's event about a deactivation was lost
	})
}

// tellTurns notifies people who may decide now and already had the card before. They need a message of their own,
// because an edit of a message notifies nobody.
func (t noticesTx) tellTurns(r approvers.Request, people []approvers.Presence) error {
	if r.State != approvers.Pending {
		return nil
	}
	messages, err := t.OutboxMessagesOf(r.ID)
	if err != nil {
		return err
	}
	for _, p := range people {
		since, ok := r.TurnOf(t.policy, p.Who)
		if ok && !p.Away && !decidedThemselves(r, p.Who.ID, since) && stale(messages, store.ToUser+p.Who.ID.User(), since) {
			if err := t.outbox.notify(r.ID, p.Who.ID, store.NoteTurn, 0); err != nil {
				return err
			}
		}
	}
	for _, to := range t.cards.addresses(r) {
		if strings.HasPrefix(to, store.ToChannel) && stale(messages, to, r.StageAt) {
			if err := t.outbox.add(store.OutboxMessage{Kind: store.OutboxNotice, Ref: r.ID, Request: r.ID, To: to, Note: store.NoteTurn}); err != nil {
				return err
			}
		}
	}
	return nil
}

// decidedThemselves reports whether a person's turn began with their own decision, so that they know of it.
func decidedThemselves(r approvers.Request, who approvers.PersonID, since time.Time) bool {
	return slices.ContainsFunc(r.Decisions, func(d approvers.Decision) bool { return d.By == who && d.At.Equal(since) })
}

// stale reports whether an address got the card before a time, and has not been notified after it.
func stale(messages []store.OutboxMessage, to string, since time.Time) bool {
	old := false
	for _, s := range messages {
		switch {
		case s.To != to || s.State == store.OutboxUnreachable:
		case view.IsCard(s.Kind) && s.CreatedAt.Before(since):
			old = true
		case (view.IsCard(s.Kind) || s.Note == store.NoteTurn || s.Note == store.NoteInvited) && !s.CreatedAt.Before(since):
			return false
		}
	}
	return old
}
