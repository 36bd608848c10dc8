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

// A message is lost if it was deleted in Slack, for example by an admin or a retention rule. The bot does not post a
// lost message again immediately, because a person may have deleted it on purpose. If the message is still relevant,
// the bot posts it again in three cases. First, if a person writes in the message's thread, or lists the open requests
// with /countersign pending. Second, if the request needs attention because of a reminder, an escalation, other
// approvers or new arguments. Third, when the message's deadline is near.

// reposts determines when a lost message is posted again before its deadline. A message is relevant for a period that
// ends with the deadline. The bot posts it again when 1/4, 1/8 or 1/16 of the period is left.
var reposts = []time.Duration{4, 8, 16}

// MarkLost records that an outbox message was deleted in Slack. s is the outbox message that the bot had read before it
// noticed the deletion.
func (w *Outbox) MarkLost(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "mark lost", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil || cur.Round != s.Round || cur.TS != s.TS {
			return err // the loss is already recorded, or the outbox message has a newer Slack message
		}
		return t.reposts.markLost(cur)
	})
}

// Replace posts an outbox message as a new Slack message, because Slack does not let the bot edit the old one. s is the
// outbox message that the bot tried to edit. When Slack shows the new message, the bot deletes the old message. The
// buttons of the old message have no effect.
func (w *Outbox) Replace(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "replace", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil || cur.Round != s.Round || cur.TS != s.TS {
			return err
		}
		if len(cur.Parts) > 0 { // all Slack messages of the answer are posted again
			old := store.Leftover{Channel: cur.Channel, TS: cur.Parts[0], Parts: cur.Parts[1:], Since: t.now, Next: t.now, Cause: "the answer is posted again"}
			if err := t.outbox.addLeftover(cur, old); err != nil {
				return err
			}
			if cur, err = t.OutboxMessage(s.ID); err != nil {
				return err
			}
		}
		cur.Round++
		cur.ReplacedTS = cur.TS
		return t.reposts.repostLost(cur)
	})
}

// markLost handles the loss of a message. If the message is not relevant, it is marked as removed. A relevant message
// with RepostIfLost is posted again immediately. Every other relevant message is posted again later; see reposts.
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
	case s.Drafted && s.Kind != store.OutboxDraft: // the deleted Slack message showed only the draft, and nobody has seen the step's outcome
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
	s.State, s.TS, s.Parts, s.Hash, s.RepostIfLost, s.Drafted = store.OutboxWanted, "", nil, "", false, false
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

// repost posts lost messages again if they are relevant. If insist is set, repost also marks messages that wait for an
// edit in Slack. If the edit of a marked message fails because the message was deleted, the bot posts the message again
// immediately.
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

// cardsAgain posts the lost cards of a request again if they are relevant.
func (t repostsTx) cardsAgain(r approvers.Request) error {
	messages, err := t.cardsOf(r)
	if err != nil {
		return err
	}
	return t.repost(messages, true)
}

// cardsOf returns the outbox messages that ask people to decide a request.
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

// turnAgain posts the lost messages of a waiting turn again if they are relevant. turnAgain is called when a person
// writes in the turn's thread.
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

// spokenUnder posts a lost message again after a person wrote in the message's thread. Slack keeps the thread of a
// deleted message.
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

// Repost is the handler of store.TimerRepost. Repost posts a lost message again when the message's deadline is near,
// and tries a refused message again.
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
		case t.now.Before(life.first()): // the deadline was postponed after the timer was set
			return t.SetTimer(store.Timer{Kind: store.TimerRepost, Ref: s.ID, Due: life.first()})
		}
		return t.reposts.repostLost(s)
	})
}

// relevance describes whether an outbox message is relevant, and in which period.
type relevance struct {
	relevant    bool
	from, until time.Time // the period in which the message is relevant; until is zero if there is no deadline
}

// l.first returns the first of the times at which the message is posted again; see reposts.
func (l relevance) first() time.Time { return l.at(reposts[0]) }

func (l relevance) at(share time.Duration) time.Time {
	return l.until.Add(-l.until.Sub(l.from) / share)
}

// l.next returns the first time after now at which the message is posted again; see reposts. If all times have passed,
// the result is zero.
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

// relevance determines whether a message is relevant. A message is relevant if it is about an open request, an open
// question, an unknown outcome, or a step that still waits.
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
		// If the timer is missing, the model was told that the outcome is unknown. People may still report the outcome,
		// so the message is relevant without a deadline.
		timer, err := t.Timer(store.TimerLeave, e.ID)
		return relevance{relevant: true, from: e.FinishedAt, until: timer.Due}, store.IgnoreNotFound(err)
	}
	return relevance{}, nil
}

func (t repostsTx) relevanceOf(request string) (relevance, error) {
	r, err := t.Request(request)
	return shortest([]approvers.Request{r}), err
}

// relevanceOfStep returns the relevance of a message about a step. The message is relevant while the step waits for
// requests.
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

// shortest returns the relevance of a message about several requests. The message's deadline is the earliest deadline
// of the open requests.
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

// RepostLost posts lost outbox messages again if they are relevant. RepostLost returns the number of messages that it
// posted.
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
