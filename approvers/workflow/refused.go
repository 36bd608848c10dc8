package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// maxRefusals is the maximum number of Slack's refusals that the store keeps.
const maxRefusals = 50

// Refused records that Slack refuses a feature in this workspace. A refusal replaces an earlier refusal of the same
// feature. Refused also deletes old refusals whose feature the bot may try again.
func (w *Outbox) Refused(ctx context.Context, refusal settings.Refusal) error {
	return w.update(ctx, "refused", func(t *tx) error {
		list, s, err := settings.ReadRefusals(t)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(r settings.Refusal) bool { return r.What == refusal.What || !r.Until.After(t.now) })
		if len(list) >= maxRefusals {
			list = list[1:]
		}
		if s.Value, err = json.Marshal(append(list, refusal)); err != nil {
			return fmt.Errorf("refusals: %w", err)
		}
		return t.PutSetting(s)
	})
}

// If Slack refuses an answer or a question at all addresses, the bot tries the message again after growing delays. The
// bot also tries the message when the bot starts, because a person may have corrected the cause.
const (
	firstAnswerRetry   = 10 * time.Minute
	firstQuestionRetry = time.Minute // shorter than the delay for an answer, because a question has a deadline
	lastAnswerRetry    = 24 * time.Hour
	answersKept        = 7 * 24 * time.Hour
)

// isAnswer reports whether a requester waits for an outbox message.
func isAnswer(s store.OutboxMessage) bool {
	switch s.Kind {
	case store.OutboxAnswer, store.OutboxFile, store.OutboxProblem, store.OutboxAttachment:
		return true
	}
	return false
}

// isQuestion reports whether an outbox message is a question to people. A card, which asks for a decision, is not a
// question in this sense.
func isQuestion(s store.OutboxMessage) bool {
	switch s.Kind {
	case store.OutboxModelQuestion, store.OutboxElicitation, store.OutboxQuestion, store.OutboxUnknown:
		return true
	}
	return false
}

// isRetried reports whether the bot tries a refused outbox message again: an answer, a question, or a notice for the
// operators.
func isRetried(s store.OutboxMessage) bool {
	return isAnswer(s) || isQuestion(s) || s.Kind == store.OutboxOperators
}

// isNeeded reports whether a refused message must still be shown. An answer is always needed.
func (t outboxTx) isNeeded(s store.OutboxMessage) (bool, error) {
	switch {
	case isQuestion(s):
		life, err := t.reposts.relevance(s)
		return life.relevant, err
	case s.Kind == store.OutboxOperators:
		return t.operators.lasts(s)
	}
	return true, nil
}

// retryLater schedules another attempt for a refused message that has no other address. If the message is too old, or
// is not needed any more, retryLater schedules nothing.
func (t outboxTx) retryLater(s store.OutboxMessage) error {
	first := firstAnswerRetry
	switch {
	case isQuestion(s):
		first = firstQuestionRetry
	case !isRetried(s) || isAnswer(s) && t.now.Sub(s.CreatedAt) > answersKept:
		return nil
	}
	if needed, err := t.isNeeded(s); err != nil || !needed {
		return err
	}
	if places, err := t.otherPlaces(s); err != nil || len(places) > 0 {
		return err
	}
	pause := lastAnswerRetry
	if s.Refusals < 8 {
		pause = min(pause, first<<max(0, s.Refusals-1))
	}
	t.note(slog.LevelWarn, "Slack refuses a message everywhere; it is kept and tried again", "message", string(s.Kind), "request", s.Request, "to", s.To, "cause", s.LastError, "after", pause)
	return t.SetTimer(store.Timer{Kind: store.TimerRepost, Ref: s.ID, Due: t.now.Add(pause)})
}

// retryAnswer tries a refused answer, question or notice for the operators again. If the message is not needed any
// more, retryAnswer only clears the timer.
func (t cardsTx) retryAnswer(s store.OutboxMessage) error {
	if needed, err := t.outbox.isNeeded(s); err != nil || !needed {
		return errors.Join(err, t.ClearTimer(store.TimerRepost, s.ID))
	}
	return t.tryAgain(s)
}

// maxRetried is the maximum number of timers that retryAnswers reads.
const maxRetried = 10_000

// retryAnswers tries all refused answers, questions and notices for the operators again now, because the cause of the
// refusals may be corrected. If Slack refuses a message again, the delay to the next attempt does not grow. A longer
// delay could postpone an answer for hours after the cause is corrected.
func (t cardsTx) retryAnswers() error {
	timers, err := t.Timers(store.TimerRepost, maxRetried)
	if err != nil {
		return err
	}
	for _, timer := range timers {
		s, err := t.OutboxMessage(timer.Ref)
		if errors.Is(err, store.ErrNotFound) || err == nil && (s.State != store.OutboxUnreachable || !isRetried(s)) {
			continue
		}
		if err != nil {
			return err
		}
		s.Refusals = max(0, s.Refusals-1)
		if err := t.retryAnswer(s); err != nil {
			return err
		}
	}
	return nil
}

// Slack may refuse every card of a request, for example because the bot was not invited to the channel. The request is
// then unreached: no person who may decide the request can see it. In this case, the bot notifies the requesters and
// the operator, and asks the next lead immediately. The bot tries the cards again after growing delays, and when
// RetryUnreached is called.

// firstRetry is the delay before refused cards are tried again. The delay doubles with each try.
const firstRetry = time.Minute

// updateUnreached checks whether people can see a card's requests. updateUnreached is called after Slack has shown or
// refused the card.
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
			if refused == nil || s.LastError != approvers.NobodyThere { // Slack's refusal is a better reason than a role without members
				refused = &messages[i]
			}
			before = before || s.Posts > 0
		case s.State == store.OutboxWanted && s.TS == "":
			return nil // Slack has not accepted or refused this card yet
		default:
			return t.shownAgain(r)
		}
	}
	if refused == nil {
		return nil
	}
	first := !r.ReachesNobody()
	if first {
		why := "Slack refuses it everywhere. Correct the cause"
		if refused.LastError == approvers.NobodyThere {
			why = "its roles and user groups have no members who can be written to. Add members"
		}
		t.note(slog.LevelError, "nobody can see the card of a request: "+why+"; countersign pending lists the request",
			"message", string(refused.Kind), "request", r.ID, "conversation", r.Conversation, "tool", r.Tool, "cause", refused.LastError)
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

// shownAgain records that people can see a card of a request again.
func (t cardsTx) shownAgain(r approvers.Request) error {
	if !r.ReachesNobody() || approvers.HasNobodyLeft(r) {
		return nil
	}
	t.note(slog.LevelInfo, "people can see the card of a request again", "request", r.ID, "conversation", r.Conversation, "tool", r.Tool, "since", r.Unreached.Since)
	after := approvers.CardShown(t.deciding(), r)
	t.notePeople(r, after)
	if err := t.apply(after, nil); err != nil || !approvers.HasTooFew(after) {
		return err
	}
	return t.timers.scheduleAvailability(after) // perhaps enough people can be reached again
}

// cardsOfStage returns the cards that were addressed to the approvers of a request's current stage. A card from an
// earlier stage counts if its person was asked again.
func (t cardsTx) cardsOfStage(r approvers.Request) ([]store.OutboxMessage, error) {
	messages, err := t.reposts.cardsOf(r)
	places := t.places(r)
	return slices.DeleteFunc(messages, func(s store.OutboxMessage) bool {
		return s.CreatedAt.Before(r.StageAt) && s.AskedAt.Before(r.StageAt) && !slices.Contains(places, s.To)
	}), err
}

// t.roots returns the cards at the addresses of a stage that were refused, or that were replaced by direct messages.
// roots leaves out the copies that went to the members of a role or a group.
func (t cardsTx) roots(r approvers.Request, messages []store.OutboxMessage) (roots []store.OutboxMessage) {
	places := t.places(r)
	for _, s := range messages {
		if slices.Contains(places, s.To) && (s.State == store.OutboxUnreachable || s.State == store.OutboxExpanded) {
			roots = append(roots, s)
		}
	}
	return roots
}

// tryAgain schedules another attempt to show a refused message. A card for a role or a group goes to the current
// members of the role or group.
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

// retryCard tries a refused message again when the message's timer is due. The message is an answer, a question, a
// notice for the operators, or a card of an unreached request.
func (t cardsTx) retryCard(s store.OutboxMessage) error {
	if isRetried(s) {
		return t.retryAnswer(s)
	}
	unreached, err := t.isUnreached(s)
	if err != nil || !unreached {
		return errors.Join(err, t.ClearTimer(store.TimerRepost, s.ID))
	}
	return t.tryAgain(s)
}

// isUnreached reports whether a card belongs to an unreached request.
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

// RetryUnreached tries all refused answers, questions and notices for the operators again, and the cards of unreached
// requests. RetryUnreached also retries deferred deliveries. The bot calls RetryUnreached when the cause of a refusal
// may have been corrected, for example when the bot starts.
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
	return w.update(ctx, "retry answers", func(t *tx) error { return errors.Join(t.cards.retryAnswers(), t.gaps.retryDeferred()) })
}

func (t cardsTx) retryRequest(request string) error {
	r, err := t.Request(request)
	if err != nil || !r.ReachesNobody() {
		return store.IgnoreNotFound(err)
	}
	return t.retryCardsOf(r)
}

// retryCardsOf tries the refused cards of a request's stage again. Cards for a role or a group go to the current
// members.
func (t cardsTx) retryCardsOf(r approvers.Request) error {
	messages, err := t.cardsOfStage(r)
	if err != nil {
		return err
	}
	again := t.roots(r, messages)
	for _, s := range messages {
		role, ofRole := strings.CutPrefix(s.To, store.ToRole)
		listed := slices.ContainsFunc(again, func(other store.OutboxMessage) bool { return other.ID == s.ID })
		if s.State == store.OutboxExpanded && ofRole && slices.Contains(r.Roles(), role) && !listed {
			again = append(again, s) // Slack refused the card in the channel, so the members got it by direct message
		}
	}
	for _, s := range again {
		if err := t.tryAgain(s); err != nil {
			return err
		}
	}
	return nil
}

// expandAgain tries the card of a role again after Slack refused a member's copy. The card goes to the role's current
// members.
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
