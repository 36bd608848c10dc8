package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// maxRefusals is the number of Slack's refusals that the store keeps.
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
	firstQuestionRetry = time.Minute // shorter, because a question has a deadline
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

// retryLater schedules another attempt for a refused answer or question that has no other address. If the message is
// too old, or the question does not need an answer any more, retryLater schedules nothing.
func (t outboxTx) retryLater(s store.OutboxMessage) error {
	first := firstAnswerRetry
	switch {
	case isQuestion(s):
		if life, err := t.reposts.relevance(s); err != nil || !life.relevant {
			return err
		}
		first = firstQuestionRetry
	case !isAnswer(s) || t.now.Sub(s.CreatedAt) > answersKept:
		return nil
	}
	if places, err := t.otherPlaces(s); err != nil || len(places) > 0 {
		return err
	}
	pause := lastAnswerRetry
	if s.Refusals < 8 {
		pause = min(pause, first<<max(0, s.Refusals-1))
	}
	t.note(slog.LevelWarn, "Slack refuses a message everywhere; it is kept and tried again", "message", string(s.Kind), "to", s.To, "cause", s.LastError, "after", pause)
	return t.SetTimer(store.Timer{Kind: store.TimerRepost, Ref: s.ID, Due: t.now.Add(pause)})
}

// retryAnswer tries a refused answer or question again. If the question has ended, retryAnswer only clears the timer.
func (t cardsTx) retryAnswer(s store.OutboxMessage) error {
	if isQuestion(s) {
		if life, err := t.reposts.relevance(s); err != nil || !life.relevant {
			return errors.Join(err, t.ClearTimer(store.TimerRepost, s.ID))
		}
	}
	return t.tryAgain(s)
}

// maxRetried is the maximum number of timers that retryAnswers reads.
const maxRetried = 10_000

// retryAnswers tries all refused answers and questions immediately, because the cause of the refusals may be corrected.
// If Slack refuses a message again, the delay to the next attempt does not grow. A longer delay could postpone an
// answer for hours after the cause is corrected.
func (t cardsTx) retryAnswers() error {
	timers, err := t.Timers(store.TimerRepost, maxRetried)
	if err != nil {
		return err
	}
	for _, timer := range timers {
		s, err := t.OutboxMessage(timer.Ref)
		if errors.Is(err, store.ErrNotFound) || err == nil && (s.State != store.OutboxUnreachable || !isAnswer(s) && !isQuestion(s)) {
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
