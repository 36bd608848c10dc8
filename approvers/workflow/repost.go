package workflow

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Messages of the bot go: an admin deletes one, retention takes one away. What still matters is posted again when
// somebody asks (a word in its thread, /countersign pending), when people are told again (a reminder, an escalation,
// other people or other arguments), and in any case before its deadline. The rest stays away. Whoever deleted it did
// not want it there: it does not come back at once.

// reposts are the shares of its time that are left when what vanished is posted again by itself: at the first of them
// that is still to come.
var reposts = []time.Duration{4, 8, 16}

// MarkLost records that Slack does not show an outbox message any more: s as it was read.
func (w *Workflow) MarkLost(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "mark lost", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil || cur.Round != s.Round || cur.TS != s.TS {
			return err // it was posted again since
		}
		return t.markLost(cur)
	})
}

// Replace has an outbox message posted anew whose message Slack does not let the bot change any more: s as it was read.
// Until the new one is shown it is remembered that the old one is to be deleted, as its buttons do nothing any more.
func (w *Workflow) Replace(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "replace", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil || cur.Round != s.Round || cur.TS != s.TS {
			return err
		}
		cur.Round++
		cur.ReplacedTS = cur.TS
		return t.repostLost(cur)
	})
}

// markLost takes in that the message of an outbox message is gone. What was to be posted again if it is, is so at once.
func (t *tx) markLost(s store.OutboxMessage) error {
	if s.State != store.OutboxShown && s.State != store.OutboxWanted || s.TS == "" {
		return nil
	}
	life, err := t.relevance(s)
	if err != nil {
		return err
	}
	t.note(slog.LevelWarn, "Slack does not show this any more", "message", string(s.Kind), "to", s.To, "request", s.Request, "relevant", life.relevant)
	if err := t.shownAsWanted(s); err != nil {
		return err
	}
	s.Round++
	switch {
	case s.Drafted && s.Kind != store.OutboxDraft: // only the draft was taken away: what became of it was not seen yet
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
	return t.setOrClear(store.TimerRepost, s.ID, life.next(t.now))
}

// repostLost has what vanished posted again.
func (t *tx) repostLost(s store.OutboxMessage) error {
	s.State, s.TS, s.Hash, s.RepostIfLost, s.Drafted = store.OutboxWanted, "", "", false, false
	s.Revision++
	if err := t.PutOutboxMessage(s); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerRepost, s.ID); err != nil {
		return err
	}
	return t.showNow(s)
}

// repost has outbox messages posted again that vanished and still matter. Of those that Slack is believed to show,
// insist has it found out: they are shown anew in any case, and one that turns out to be gone then is posted again at
// once.
func (t *tx) repost(messages []store.OutboxMessage, insist bool) error {
	for _, s := range messages {
		cur, err := t.OutboxMessage(s.ID) // it may have changed in this transaction
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

// repostIfRelevant has an outbox message posted again if it vanished and still matters. It reports whether it did.
func (t *tx) repostIfRelevant(s store.OutboxMessage) (bool, error) {
	if s.State != store.OutboxLost {
		return false, nil
	}
	life, err := t.relevance(s)
	if err != nil || !life.relevant {
		return false, err
	}
	return true, t.repostLost(s)
}

// cardsAgain has the cards of a request posted again that Slack does not show any more.
func (t *tx) cardsAgain(r approvers.Request) error {
	messages, err := t.cardsOf(r)
	if err != nil {
		return err
	}
	return t.repost(messages, true)
}

// cardsOf are the outbox messages on which a request is put before people.
func (t *tx) cardsOf(r approvers.Request) (cards []store.OutboxMessage, err error) {
	own, err := t.OutboxMessagesOf(r.ID)
	if err != nil {
		return nil, err
	}
	shared, err := t.OutboxMessagesOf(r.Turn)
	if err != nil {
		return nil, err
	}
	for _, s := range append(own, shared...) {
		if isCard(s.Kind) || s.Kind == store.OutboxBundle && s.Bundle == r.Bundle && r.Bundled() {
			cards = append(cards, s)
		}
	}
	return cards, nil
}

// turnAgain has everything posted again that a waiting turn shows to anybody and that vanished: somebody wrote in its
// thread.
func (t *tx) turnAgain(turn approvers.Turn) error {
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

// spokenUnder has an outbox message posted again in whose thread somebody wrote: Slack keeps a thread whose first
// message was deleted.
func (t *tx) spokenUnder(channel, thread string) error {
	if thread == "" {
		return nil
	}
	s, err := t.OutboxMessageAt(channel, thread)
	if err != nil {
		return ignoreNotFound(err)
	}
	return t.repost([]store.OutboxMessage{s}, false)
}

// Repost posts again what vanished, because its deadline is near.
func (w *Workflow) Repost(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "repost", func(t *tx) error {
		s, err := t.OutboxMessage(timer.Ref)
		if errors.Is(err, store.ErrNotFound) || err == nil && s.State != store.OutboxLost {
			return t.ClearTimer(store.TimerRepost, timer.Ref)
		}
		if err != nil {
			return err
		}
		life, err := t.relevance(s)
		switch {
		case err != nil:
			return err
		case !life.relevant:
			s.State, s.TS = store.OutboxRemoved, ""
			return errors.Join(t.PutOutboxMessage(s), t.ClearTimer(store.TimerRepost, s.ID))
		case t.now.Before(life.first()): // the deadline was put off since
			return t.SetTimer(store.Timer{Kind: store.TimerRepost, Ref: s.ID, Due: life.first()})
		}
		return t.repostLost(s)
	})
}

// relevance says whether an outbox message still matters to anybody, and how long it will.
type relevance struct {
	relevant    bool
	from, until time.Time // until when; zero: until somebody does something
}

// first is when it is posted again by itself at the earliest.
func (l relevance) first() time.Time { return l.at(reposts[0]) }

func (l relevance) at(share time.Duration) time.Time {
	return l.until.Add(-l.until.Sub(l.from) / share)
}

// next is when it is posted again by itself after now; zero: not any more.
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

// relevance looks up whether an outbox message still matters: people are asked something on it, or could take something
// back.
func (t *tx) relevance(s store.OutboxMessage) (relevance, error) {
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
		requests, err := t.bundled(s)
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
		timer, err := t.Timer(store.TimerLeave, e.ID) // none: the model was told that nobody knows, and people may still report
		return relevance{relevant: true, from: e.FinishedAt, until: timer.Due}, ignoreNotFound(err)
	}
	return relevance{}, nil
}

func (t *tx) relevanceOf(request string) (relevance, error) {
	r, err := t.Request(request)
	return shortest([]approvers.Request{r}), err
}

// relevanceOfStep is that of what the step waits for.
func (t *tx) relevanceOfStep(s store.OutboxMessage) (relevance, error) {
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

// shortest is the life of what shows several requests: until the first of those that are open falls due.
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
