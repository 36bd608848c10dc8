package workflow

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"countersign/store"
)

// What a requester waits for is never given up at once. If Slack refuses it everywhere, it is tried again after growing
// pauses, and when the bot starts: somebody may have corrected the cause.
const (
	firstAnswerRetry = 10 * time.Minute
	lastAnswerRetry  = 24 * time.Hour
	answersKept      = 7 * 24 * time.Hour
)

// isAnswer reports whether a requester waits for an outbox message.
func isAnswer(s store.OutboxMessage) bool {
	switch s.Kind {
	case store.OutboxAnswer, store.OutboxFile, store.OutboxProblem, store.OutboxAttachment:
		return true
	}
	return false
}

// retryLater schedules another try of an answer that Slack refuses. It reports false if the message is given up.
func (t outboxTx) retryLater(s store.OutboxMessage, cause string) (bool, error) {
	if !isAnswer(s) || t.now.Sub(s.CreatedAt) > answersKept {
		return false, nil
	}
	pause := lastAnswerRetry
	if s.Refusals < 8 {
		pause = min(pause, firstAnswerRetry<<s.Refusals)
	}
	s.State, s.LastError = store.OutboxWanted, cause
	s.Refusals++
	if err := t.PutOutboxMessage(s); err != nil {
		return false, err
	}
	t.note(slog.LevelWarn, "Slack refuses an answer everywhere; it is kept and tried again", "message", string(s.Kind), "to", s.To, "cause", cause, "after", pause)
	return true, t.SetTimer(store.Timer{Kind: s.Rank.Timer(), Ref: s.ID, Due: t.now.Add(pause), Lane: s.To})
}

// maxRetried bounds the outbox messages that are examined at a start.
const maxRetried = 10_000

// RetryRefused tries the answers again that Slack refused. It is called at a start.
func (w *Outbox) RetryRefused(ctx context.Context) error {
	return w.update(ctx, "retry refused", func(t *tx) error {
		for _, kind := range store.ShowTimers {
			timers, err := t.Timers(kind, maxRetried)
			if err != nil {
				return err
			}
			for _, timer := range timers {
				if !timer.Due.After(t.now) {
					continue
				}
				s, err := t.OutboxMessage(timer.Ref)
				if errors.Is(err, store.ErrNotFound) || err == nil && s.Refusals == 0 {
					continue
				}
				if err != nil {
					return err
				}
				if err := t.outbox.showNow(s); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
