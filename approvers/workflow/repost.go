package workflow

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// The bot's messages can disappear from Slack, because an admin or a retention rule deletes them. The bot posts a lost
// message again, if it is still relevant, in three cases. Somebody asks, by a message in its thread or by /countersign
// pending. People are notified again (a reminder, an escalation, other people or other arguments). Its deadline is
// near. The bot does not post the message again immediately, because somebody may have deleted it on purpose.

// reposts lists the times at which a lost message is posted again because its deadline is near. At these times, 1/4,
// 1/8 or 1/16 of the message's time is left.
var reposts = []time.Duration{4, 8, 16}

// MarkLost records that Slack no longer shows an outbox message. s is the message as it was read.
func (w *Outbox) MarkLost(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "mark lost", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil || cur.Round != s.Round || cur.TS != s.TS {
			return err // the message was posted again since
		}
		return t.reposts.markLost(cur)
	})
}

// Replace posts an outbox message again, because Slack no longer lets the bot edit it. s is the message as it was read.
// When the new message is shown, the bot deletes the old message, whose buttons no longer work.
func (w *Outbox) Replace(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "replace", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil || cur.Round != s.Round || cur.TS != s.TS {
			return err
		}
		cur.Round++
		cur.ReplacedTS = cur.TS
		return t.reposts.repostLost(cur)
	})
}

// markLost handles the loss of a message. A message with RepostIfLost is posted again immediately.
func (t repostsTx) markLost(s store.OutboxMessage) error {
	if s.State != store.OutboxShown && s.State != store.OutboxWanted || s.TS == "" {
		return nil
	}
	life, err := t.relevance(s)
	if err != nil {
		return err
	}
	t.note(slog.LevelWarn, "a message was deleted in Slack", "message", string(s.Kind), "to", s.To, "request", s.Request, "relevant", life.relevant)
	if err := t.outbox.shownAsWanted(s); err != nil {
		return err
	}
	s.Round++
	switch {
	case s.Drafted && s.Kind != store.OutboxDraft: // only the draft was deleted; nobody has seen the step's outcome
		return t.repostLost(s)
	case !life.relevant:
		s.State, s.TS = store.OutboxRemoved, ""
		return t.PutOutboxMessage(s)
	case s.RepostIfLost:
		return t.repostLost(s)
	}
	s.State = store.OutboxLost
	if err := t.PutOutboxMessage(s); err != nil {
		return err
	}
	return t.timers.setOrClear(store.TimerRepost, s.ID, life.next(t.now))
}

// repostLost schedules a lost message to be posted again.
func (t repostsTx) repostLost(s store.OutboxMessage) error {
	s.State, s.TS, s.Hash, s.RepostIfLost, s.Drafted = store.OutboxWanted, "", "", false, false
	s.Revision++
	if err := t.PutOutboxMessage(s); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerRepost, s.ID); err != nil {
		return err
	}
	return t.outbox.showNow(s)
}

// postNext schedules the next round of an outbox message, which is a new Slack message.
func (t repostsTx) postNext(s store.OutboxMessage, to string) error {
	if _, err := t.EraseRenderings(s.ID, 0); err != nil {
		return err
	}
	s.To, s.Channel, s.LastError = to, "", ""
	s.CreatedAt, s.Process, s.After = t.now, t.w.owner, t.w.slack.time()
	s.Round++
	return t.repostLost(s)
}

// repost posts relevant lost messages again. insist also covers messages that wait for an edit in Slack. If such an
// edit fails because the message is gone, the message is posted again immediately.
func (t repostsTx) repost(messages []store.OutboxMessage, insist bool) error {
	for _, s := range messages {
		cur, err := t.OutboxMessage(s.ID) // the message may have changed in this transaction
		if err != nil {
			return err
		}
		back, err := t.repostIfRelevant(cur)
		if err != nil {
			return err
		}
		if !back && insist && cur.State == store.OutboxWanted && cur.TS != "" && !cur.RepostIfLost {
			cur.RepostIfLost = true
			if err := t.PutOutboxMessage(cur); err != nil {
				return err
			}
		}
	}
	return nil
}

// repostIfRelevant posts a lost message again if it is still relevant. repostIfRelevant reports whether it has
// scheduled the post.
func (t repostsTx) repostIfRelevant(s store.OutboxMessage) (bool, error) {
	if s.State != store.OutboxLost {
		return false, nil
	}
	life, err := t.relevance(s)
	if err != nil || !life.relevant {
		return false, err
	}
	return true, t.repostLost(s)
}

// cardsAgain posts the lost cards of a request again.
func (t repostsTx) cardsAgain(r approvers.Request) error {
	messages, err := t.cardsOf(r)
	if err != nil {
		return err
	}
	return t.repost(messages, true)
}

// cardsOf returns the outbox messages that ask people about a request.
func (t repostsTx) cardsOf(r approvers.Request) (cards []store.OutboxMessage, err error) {
	own, err := t.OutboxMessagesOf(r.ID)
	if err != nil {
		return nil, err
	}
	shared, err := t.OutboxMessagesOf(r.Turn)
	if err != nil {
		return nil, err
	}
	for _, s := range append(own, shared...) {
		if view.IsCard(s.Kind) || s.Kind == store.OutboxBundle && s.Bundle == r.Bundle && r.Bundled() {
			cards = append(cards, s)
		}
	}
	return cards, nil
}

// turnAgain posts the lost and relevant messages of a waiting turn again, because somebody wrote in the turn's thread.
func (t repostsTx) turnAgain(turn approvers.Turn) error {
	if turn.State != approvers.TurnWaiting {
		return nil
	}
	calls, err := t.Calls(turn.ID)
	if err != nil {
		return err
	}
	refs := []string{turn.ID}
	for _, c := range calls {
		if c.Step == turn.Step {
			refs = append(refs, c.ID, c.Request, c.Execution)
		}
	}
	for _, ref := range refs {
		if ref == "" {
			continue
		}
		messages, err := t.OutboxMessagesOf(ref)
		if err != nil {
			return err
		}
		if err := t.repost(messages, false); err != nil {
			return err
		}
	}
	return nil
}

// spokenUnder posts a lost message again, because somebody wrote in the message's thread. Slack keeps a thread even if
// its first message was deleted.
func (t repostsTx) spokenUnder(channel, thread string) error {
	if thread == "" {
		return nil
	}
	s, err := t.OutboxMessageAt(channel, thread)
	if err != nil {
		return store.IgnoreNotFound(err)
	}
	return t.repost([]store.OutboxMessage{s}, false)
}

// Repost posts a lost message again, because its deadline is near.
func (w *Outbox) Repost(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "repost", func(t *tx) error {
		s, err := t.OutboxMessage(timer.Ref)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return t.ClearTimer(store.TimerRepost, timer.Ref)
		case err != nil:
			return err
		case s.State == store.OutboxUnreachable, s.State == store.OutboxExpanded:
			return t.cards.retryCard(s)
		case s.State != store.OutboxLost:
			return t.ClearTimer(store.TimerRepost, timer.Ref)
		}
		life, err := t.reposts.relevance(s)
		switch {
		case err != nil:
			return err
		case !life.relevant:
			s.State, s.TS = store.OutboxRemoved, ""
			return errors.Join(t.PutOutboxMessage(s), t.ClearTimer(store.TimerRepost, s.ID))
		case t.now.Before(life.first()): // the deadline was postponed meanwhile
			return t.SetTimer(store.Timer{Kind: store.TimerRepost, Ref: s.ID, Due: life.first()})
		}
		return t.reposts.repostLost(s)
	})
}

// relevance describes whether, and until when, an outbox message is relevant.
type relevance struct {
	relevant    bool
	from, until time.Time // the period in which the message is relevant; until is zero if there is no deadline
}

// first returns the earliest time at which the near deadline requires a repost.
func (l relevance) first() time.Time { return l.at(reposts[0]) }

func (l relevance) at(share time.Duration) time.Time {
	return l.until.Add(-l.until.Sub(l.from) / share)
}

// next returns the next time after now at which the near deadline requires a repost. If there is no such time, next
// returns zero.
func (l relevance) next(now time.Time) time.Time {
	if l.until.IsZero() {
		return time.Time{}
	}
	for _, share := range reposts {
		if at := l.at(share); at.After(now) {
			return at
		}
	}
	return time.Time{}
}

// relevance determines whether a message is relevant. A message is relevant if it asks people a question, or has a
// button to undo an action.
func (t repostsTx) relevance(s store.OutboxMessage) (relevance, error) {
	switch s.Kind {
	case store.OutboxCard, store.OutboxEscalation:
		return t.relevanceOf(s.Ref)
	case store.OutboxQuestion:
		r, err := t.Request(s.Ref)
		if err != nil || slices.ContainsFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == s.Step }) {
			return relevance{}, err
		}
		return t.relevanceOf(s.Ref)
	case store.OutboxBundle:
		requests, err := t.cards.bundled(s)
		return shortest(requests), err
	case store.OutboxStep:
		return t.relevanceOfStep(s)
	case store.OutboxModelQuestion:
		call, err := t.Call(s.Ref)
		if err != nil || call.Outcome != "" || call.ModelQuestion == nil {
			return relevance{}, err
		}
		return relevance{relevant: true, from: call.CreatedAt, until: call.ModelQuestion.ExpiresAt}, nil
	case store.OutboxElicitation:
		q, err := t.Elicitation(s.Ref)
		if err != nil || q.State != approvers.ElicitationOpen {
			return relevance{}, err
		}
		return relevance{relevant: true, from: q.CreatedAt, until: q.ExpiresAt}, nil
	case store.OutboxUnknown:
		e, err := t.Execution(s.Ref)
		if err != nil || e.State != approvers.ExecutionUnknown {
			return relevance{}, err
		}
		timer, err := t.Timer(store.TimerLeave, e.ID) // if the timer is missing, the model was told that the outcome is unknown, and people may still report it
		return relevance{relevant: true, from: e.FinishedAt, until: timer.Due}, store.IgnoreNotFound(err)
	}
	return relevance{}, nil
}

func (t repostsTx) relevanceOf(request string) (relevance, error) {
	r, err := t.Request(request)
	return shortest([]approvers.Request{r}), err
}

// relevanceOfStep returns the relevance of a step. It depends on the requests for which the step waits.
func (t repostsTx) relevanceOfStep(s store.OutboxMessage) (relevance, error) {
	calls, err := t.Calls(s.Ref)
	if err != nil {
		return relevance{}, err
	}
	var open []approvers.Request
	waits := false
	for _, c := range calls {
		if c.Step != s.Step || c.Outcome != "" {
			continue
		}
		waits = true
		if c.Request == "" {
			continue
		}
		r, err := t.Request(c.Request)
		if err != nil {
			return relevance{}, err
		}
		open = append(open, r)
	}
	l := shortest(open)
	l.relevant = waits
	return l, nil
}

// shortest returns the relevance of a message with several requests. The relevance ends at the earliest deadline of an
// open request.
func shortest(requests []approvers.Request) (l relevance) {
	for _, r := range requests {
		from, until := r.StageAt, r.ExpiresAt
		switch {
		case !r.State.Open():
			continue
		case r.State == approvers.Approved:
			from, until = r.ClosedAt, r.RunBy
		}
		if !l.relevant || until.Before(l.until) {
			l = relevance{relevant: true, from: from, until: until}
		}
	}
	return l
}

// RepostLost posts lost outbox messages again if they are still relevant. RepostLost returns the number of posted
// messages.
func (w *Outbox) RepostLost(ctx context.Context, messages []store.OutboxMessage) (n int, err error) {
	err = w.update(ctx, "repost lost", func(t *tx) error {
		n = 0
		for _, s := range messages {
			cur, err := t.OutboxMessage(s.ID)
			if err != nil {
				return err
			}
			back, err := t.reposts.repostIfRelevant(cur)
			if err != nil {
				return err
			}
			if back {
				n++
			}
		}
		return nil
	})
	return n, err
}
