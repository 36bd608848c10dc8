package workflow

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// Slack may refuse every card of a request. For example, a permission is missing, or the bot was not invited. In this
// case, no person who may decide the request can see it. Therefore the requesters and the operator are notified, and
// the next lead is asked immediately. The bot tries the cards again after growing delays, and when the cause may be
// gone (RetryUnreached).

// firstRetry is the delay before refused cards are tried again. The delay doubles with each try.
const firstRetry = time.Minute

// After Slack has shown or refused a card, updateUnreached checks whether people can see the card's requests.
func (t cardsTx) updateUnreached(s store.OutboxMessage) error {
	var requests []approvers.Request
	var err error
	switch {
	case view.IsCard(s.Kind):
		requests = make([]approvers.Request, 1)
		requests[0], err = t.Request(s.Ref)
	case s.Kind == store.OutboxBundle:
		requests, err = t.bundled(s)
	}
	if err != nil {
		return err
	}
	for _, r := range requests {
		if r.State != approvers.Pending {
			continue
		}
		if err := t.updateUnreachedOf(r); err != nil {
			return err
		}
	}
	return nil
}

func (t cardsTx) updateUnreachedOf(r approvers.Request) error {
	messages, err := t.cardsOfStage(r)
	if err != nil {
		return err
	}
	var refused *store.OutboxMessage
	before := false
	for i, s := range messages {
		switch {
		case s.State == store.OutboxExpanded, s.State == store.OutboxRemoved:
		case s.State == store.OutboxUnreachable:
			refused = &messages[i]
			before = before || s.Posts > 0
		case s.State == store.OutboxWanted && s.TS == "":
			return nil // Slack has not answered yet
		default:
			if !r.ReachesNobody() {
				return nil
			}
			t.note(slog.LevelInfo, "people can see the card of a request again", "request", r.ID, "since", r.Unreached.Since)
			return t.apply(approvers.CardShown(t.deciding(), r), nil)
		}
	}
	if refused == nil {
		return nil
	}
	first := !r.ReachesNobody()
	if first {
		t.note(slog.LevelError, "nobody can see the card of a request: Slack refuses it everywhere. Correct the cause; countersign pending lists the request", "request", r.ID, "cause", refused.LastError)
	}
	before = before || !first && r.Unreached.Before
	was := r
	r = approvers.CardsRefused(t.deciding(), r, refused.LastError, before)
	if first || *was.Unreached != *r.Unreached || !was.EscalateAt.Equal(r.EscalateAt) {
		if err := t.apply(r, nil); err != nil {
			return err
		}
	}
	pause := firstRetry
	for waited := t.now.Sub(r.Unreached.Since); pause <= waited; {
		pause *= 2
	}
	for _, s := range t.roots(r, messages) {
		if err := t.SetTimer(store.Timer{Kind: store.TimerRepost, Ref: s.ID, Due: t.now.Add(pause)}); err != nil {
			return err
		}
	}
	return nil
}

// cardsOfStage returns the cards that were addressed to the people of a request's stage.
func (t cardsTx) cardsOfStage(r approvers.Request) ([]store.OutboxMessage, error) {
	messages, err := t.reposts.cardsOf(r)
	places := t.places(r)
	return slices.DeleteFunc(messages, func(s store.OutboxMessage) bool {
		return s.CreatedAt.Before(r.StageAt) && !slices.Contains(places, s.To)
	}), err
}

// roots returns the refused cards at the addresses that the policy names. The function leaves out the copies for single
// people.
func (t cardsTx) roots(r approvers.Request, messages []store.OutboxMessage) (roots []store.OutboxMessage) {
	places := t.places(r)
	for _, s := range messages {
		if slices.Contains(places, s.To) && (s.State == store.OutboxUnreachable || s.State == store.OutboxExpanded) {
			roots = append(roots, s)
		}
	}
	return roots
}

// tryAgain shows a refused card, answer or question again. A card for a role or a group goes to its current members.
func (t cardsTx) tryAgain(s store.OutboxMessage) error {
	s.State = store.OutboxWanted
	s.Revision++
	if err := t.PutOutboxMessage(s); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerRepost, s.ID); err != nil {
		return err
	}
	return t.outbox.showNow(s)
}

// When the timer of a refused message is due, retryCard tries the message again. The message is an answer, a question,
// or a card of a request that nobody can see yet.
func (t cardsTx) retryCard(s store.OutboxMessage) error {
	if isAnswer(s) || isQuestion(s) {
		return t.retryAnswer(s)
	}
	unreached, err := t.isUnreached(s)
	if err != nil || !unreached {
		return errors.Join(err, t.ClearTimer(store.TimerRepost, s.ID))
	}
	return t.tryAgain(s)
}

// isUnreached reports whether a card belongs to a request that nobody can see.
func (t cardsTx) isUnreached(s store.OutboxMessage) (bool, error) {
	if s.Kind == store.OutboxBundle {
		requests, err := t.bundled(s)
		return slices.ContainsFunc(requests, approvers.Request.ReachesNobody), err
	}
	if !view.IsCard(s.Kind) {
		return false, nil
	}
	r, err := t.Request(s.Ref)
	return r.ReachesNobody(), err
}

// RetryUnreached tries all refused cards, answers and questions again, because the cause may be gone. RetryUnreached
// also retries deliveries whose sender Slack did not name. RetryUnreached skips the cards of requests that people can
// see.
func (w *Outbox) RetryUnreached(ctx context.Context) error {
	var unreached []approvers.Request
	err := w.Store.View(ctx, func(r store.Reader) (err error) {
		unreached, err = view.UnreachedRequests(r)
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range unreached {
		if err := w.update(ctx, "retry unreached", func(t *tx) error { return t.cards.retryRequest(r.ID) }); err != nil {
			return err
		}
	}
	return w.update(ctx, "retry answers", func(t *tx) error { return errors.Join(t.cards.retryAnswers(), t.reception.retryDeferred()) })
}

func (t cardsTx) retryRequest(request string) error {
	r, err := t.Request(request)
	if err != nil || !r.ReachesNobody() {
		return store.IgnoreNotFound(err)
	}
	messages, err := t.cardsOfStage(r)
	if err != nil {
		return err
	}
	for _, s := range t.roots(r, messages) {
		if err := t.tryAgain(s); err != nil {
			return err
		}
	}
	return nil
}

// If a role's card was refused, expandAgain schedules its copies again.
func (t cardsTx) expandAgain(s store.OutboxMessage, role string) error {
	if unreached, err := t.isUnreached(s); err != nil || !unreached {
		return err
	}
	messages, err := t.OutboxMessagesOf(s.Ref)
	if err != nil {
		return err
	}
	for _, o := range messages {
		if o.To == role && o.State == store.OutboxExpanded && alike(o.Kind, s.Kind) && o.Bundle == s.Bundle && strings.HasPrefix(role, store.ToRole) {
			if err := t.tryAgain(o); err != nil {
				return err
			}
		}
	}
	return nil
}
