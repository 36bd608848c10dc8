package workflow

import (
	"context"
	"errors"

	"countersign/approvers"
	"countersign/store"
)

// Draft returns the outbox message in which Slack may show a step while the model still writes it, and creates this
// message if necessary. A draft has no timer, nothing waits for it, and its text has no effect. It is stored before
// anything is posted, so that the Slack message is found again after a crash. The step's outcome (the answer, the
// calls, or the sentence with which the turn stops) later replaces the draft in the same Slack message. ErrNotDue means
// that the turn is no longer at this step.
func (w *Turns) Draft(ctx context.Context, turn string, step int) (s store.OutboxMessage, conv store.Conversation, who approvers.PersonID, err error) {
	err = w.onStep(ctx, "draft", turn, step, func(t *tx, tn approvers.Turn, c store.Conversation) error {
		conv = c
		if n := len(tn.Requesters); n > 0 {
			who = tn.Requesters[n-1]
		}
		var there bool
		var err error
		if s, there, err = t.outbox.draftOf(turn); there || err != nil {
			return err
		}
		s = store.OutboxMessage{Kind: store.OutboxDraft, Ref: turn, Step: step + 1, To: store.ToConversation + c.ID}
		if s.Rank, err = t.outbox.rank(s); err != nil {
			return err
		}
		s.ID, s.State, s.Revision, s.ShownRevision, s.CreatedAt = t.newID("s"), store.OutboxShown, 1, 1, t.now
		s.Process, s.After, s.Drafted = t.w.owner, t.w.slack.time(), true
		if err := t.PutOutboxMessage(s); err != nil {
			return err
		}
		s.Version++
		return nil
	})
	return s, conv, who, err
}

// Drafted records where Slack shows a draft, and the text that it shows. s is the message as it was read, with Channel
// and TS set.
func (w *Turns) Drafted(ctx context.Context, s store.OutboxMessage, said string) error {
	w.slack.saw(s.TS)
	return w.update(ctx, "drafted", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil || cur.Round != s.Round || !cur.Drafted || cur.TS != "" && cur.TS != s.TS {
			return err
		}
		posted := cur.TS == ""
		cur.Channel, cur.TS = s.Channel, s.TS
		if cur.DraftText = said; cur.Kind == store.OutboxAnswer || cur.Kind == store.OutboxStep {
			cur.DraftText = "" // Slack's message has the text now
		}
		if err := t.PutOutboxMessage(cur); err != nil || !posted {
			return err
		}
		return errors.Join(t.channels.postedIn(cur), t.outbox.goneBefore(s.Channel, s.TS))
	})
}

// draftOf finds the draft of a turn, if Slack may show one.
func (t outboxTx) draftOf(turn string) (store.OutboxMessage, bool, error) {
	messages, err := t.OutboxMessagesOf(turn)
	for _, s := range messages {
		if s.Kind == store.OutboxDraft && s.State == store.OutboxShown {
			return s, true, err
		}
	}
	return store.OutboxMessage{}, false, err
}

// wantDrafted shows the outcome of a step, in place of the step's draft if there is one.
func (t outboxTx) wantDrafted(s store.OutboxMessage) error {
	draft, there, err := t.draftOf(s.Ref)
	if err != nil {
		return err
	}
	if !there {
		return t.add(s)
	}
	draft.Kind, draft.Step, draft.State = s.Kind, s.Step, store.OutboxWanted
	draft.Revision++
	if draft.Rank, err = t.rank(draft); err != nil {
		return err
	}
	if s.Kind != store.OutboxProblem {
		draft.DraftText = ""
	}
	if err := t.PutOutboxMessage(draft); err != nil {
		return err
	}
	t.refreshed[refresh{ref: draft.ID}] = true
	return t.showNow(draft)
}
