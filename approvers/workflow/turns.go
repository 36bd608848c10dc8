package workflow

import (
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// tellTurns tells those who may decide now, and have had the card since before they could, that it is their turn: a
// message that only changes tells nobody.
func (t *tx) tellTurns(r approvers.Request, people []approvers.Presence) error {
	if r.State != approvers.Pending {
		return nil
	}
	messages, err := t.OutboxMessagesOf(r.ID)
	if err != nil {
		return err
	}
	for _, p := range people {
		since, ok := r.TurnOf(t.policy, p.Who)
		if ok && !p.Away && !moved(r, p.Who.ID, since) && stale(messages, toUser+p.Who.ID.User(), since) {
			if err := t.notify(r.ID, p.Who.ID, store.NoteTurn, 0); err != nil {
				return err
			}
		}
	}
	for _, to := range t.addresses(r) {
		if strings.HasPrefix(to, toChannel) && stale(messages, to, r.StageAt) {
			if err := t.newOutboxMessage(store.OutboxMessage{Kind: store.OutboxNotice, Ref: r.ID, Request: r.ID, To: to, Note: store.NoteTurn}); err != nil {
				return err
			}
		}
	}
	return nil
}

// moved reports whether it is a person's own move that began their turn: they see what it did.
func moved(r approvers.Request, who approvers.PersonID, since time.Time) bool {
	return slices.ContainsFunc(r.Decisions, func(d approvers.Decision) bool { return d.By == who && d.At.Equal(since) })
}

// stale reports whether an address has had the card since before a time, and has been told nothing of it since.
func stale(messages []store.OutboxMessage, to string, since time.Time) bool {
	old := false
	for _, s := range messages {
		switch {
		case s.To != to || s.State == store.OutboxUnreachable:
		case isCard(s.Kind) && s.CreatedAt.Before(since):
			old = true
		case (isCard(s.Kind) || s.Note == store.NoteTurn || s.Note == store.NoteInvited) && !s.CreatedAt.Before(since):
			return false
		}
	}
	return old
}
