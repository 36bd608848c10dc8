package workflow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// The expiry of a request is tried again after clickGrace if a click from before the deadline is not handled yet. The
// delay doubles with each try, up to maxGrace. With a constant short delay, a click that can't be handled would keep
// the store busy.
const (
	clickGrace = 50 * time.Millisecond
	maxGrace   = 5 * time.Second
)

// Expire ends a request whose deadline has passed. Clicks that were received before the deadline are handled first.
func (w *Requests) Expire(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "expire", func(t *tx) error {
		r, err := t.requests.openRequest(store.TimerExpire, timer.Ref)
		if err != nil || r.ID == "" {
			return err
		}
		return t.expire(timer, r)
	})
}

func (t *tx) expire(timer store.Timer, r approvers.Request) error {
	after, events, expired := r.Expire(t.deciding())
	if !expired {
		return t.timers.resetTimers(r)
	}
	if r.State == approvers.Pending {
		if early, err := t.handledFirst(timer, r.ExpiresAt); early || err != nil {
			return err
		}
	}
	return t.apply(after, events)
}

// handledFirst postpones an expiry if a click or a form arrived before the deadline and is not handled yet.
// handledFirst returns true if it has postponed the expiry. Other deliveries from Slack can't decide a request, so
// handledFirst ignores them.
func (t *tx) handledFirst(timer store.Timer, deadline time.Time) (bool, error) {
	early, err := t.Unhandled(store.InboxInteraction, deadline)
	if err != nil || !early {
		return false, err
	}
	timer.Due = t.now.Add(min(clickGrace<<min(timer.Tries, 10), maxGrace))
	timer.Tries++
	return true, t.SetTimer(timer)
}

// openRequest reads the request that a timer names. If the request is not open, openRequest clears the timer and
// returns an empty request.
func (t requestsTx) openRequest(kind store.TimerKind, id string) (approvers.Request, error) {
	r, err := t.Request(id)
	if errors.Is(err, store.ErrNotFound) || (err == nil && !r.State.Open()) {
		return approvers.Request{}, t.ClearTimer(kind, id)
	}
	return r, err
}

// Escalate adds the next lead role to the current stage, and notifies the members of the lead role. The members may
// then decide the stage. After the last lead, Escalate notifies all people of the stage again.
func (w *Requests) Escalate(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "escalate", func(t *tx) error {
		r, err := t.requests.openRequest(store.TimerEscalate, timer.Ref)
		if err != nil || r.ID == "" {
			return err
		}
		after, events, due := r.Escalate(t.deciding())
		if !due && len(events) == 0 {
			if after.EscalateAt.IsZero() || after.State != approvers.Pending {
				return t.ClearTimer(store.TimerEscalate, r.ID)
			}
			return t.SetTimer(store.Timer{Kind: store.TimerEscalate, Ref: r.ID, Due: t.notYet(after.EscalateAt)})
		}
		return t.apply(after, events) // also if nobody is left to notify, because the cards must no longer announce an escalation
	})
}

// notYet returns the new time of a timer whose work is not due yet. The parameter due is the time at which the work
// should be done. If due has passed, notYet returns the current time plus maxGrace.
func (t *tx) notYet(due time.Time) time.Time {
	if due.After(t.now) {
		return due
	}
	return t.now.Add(maxGrace)
}

// Remind reminds the approvers of a stage who have not decided. Remind also shows the card to approvers who have no
// card. people are the stage's approvers at the time of snapshot.
func (w *People) Remind(ctx context.Context, timer store.Timer, snapshot view.StageSnapshot, people []approvers.Presence) error {
	return w.update(ctx, "remind", func(t *tx) error {
		r, err := t.requests.pendingRequest(timer, snapshot)
		if err != nil || r.ID == "" {
			return err
		}
		cards, err := t.reposts.cardsOf(r)
		if err != nil {
			return err
		}
		after, events, due := r.Remind(t.deciding(), t.cards.withCards(r, cards, people))
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
			events = nil // if nobody could see the request, it needs no reminder
		}
		if err := t.cards.showJoined(after, people); err != nil {
			return err
		}
		if err := t.apply(after, events); err != nil || approvers.AwaitsAnybody(after, t.policy, people) && !approvers.LacksMore(after, t.policy, people) {
			return err
		}
		return t.timers.scheduleAvailability(after) // for example because Slack's event about a deactivation was lost
	})
}

// tellTurns notifies people whose stage has begun, and who got the card before the stage began. A new message is
// needed, because Slack does not notify people when the bot edits a card.
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
		if ok && !p.Away && !decidedThemselves(r, p.Who.ID, since) && stale(messages, atPerson(p.Who), since) {
			if err := t.outbox.notify(r.ID, p.Who.ID, store.NoteTurn, 0); err != nil {
				return err
			}
		}
	}
	for _, to := range t.cards.addresses(r) {
		if strings.HasPrefix(to, store.ToChannel) && stale(messages, func(other string) bool { return other == to }, r.StageAt) {
			if err := t.outbox.add(store.OutboxMessage{Kind: store.OutboxNotice, Ref: r.ID, Request: r.ID, To: to, Note: store.NoteTurn}); err != nil {
				return err
			}
		}
	}
	return nil
}

// decidedThemselves reports whether a person's own decision started the stage. A person whose own decision started the
// stage needs no notice about it.
func decidedThemselves(r approvers.Request, who approvers.PersonID, since time.Time) bool {
	return slices.ContainsFunc(r.Decisions, func(d approvers.Decision) bool { return d.By == who && d.At.Equal(since) })
}

// atPerson returns a function that reports whether an address is for the person's direct messages.
func atPerson(who approvers.Identity) func(to string) bool {
	return func(to string) bool {
		user, direct := strings.CutPrefix(to, store.ToUser)
		return direct && who.HasUser(user)
	}
}

// stale reports whether an address got the card before the given time, and has got no notice since then. A notice that
// Slack refused also counts as a notice, so that it is not repeated. The callback "is" reports whether an outbox
// message has this address.
func stale(messages []store.OutboxMessage, is func(to string) bool, since time.Time) bool {
	old := false
	for _, s := range messages {
		switch {
		case !is(s.To) || view.IsCard(s.Kind) && s.State == store.OutboxUnreachable:
		case view.IsCard(s.Kind) && s.CreatedAt.Before(since):
			old = true
		case (view.IsCard(s.Kind) || s.Note == store.NoteTurn || s.Note == store.NoteInvited) && !s.CreatedAt.Before(since):
			return false
		}
	}
	return old
}
