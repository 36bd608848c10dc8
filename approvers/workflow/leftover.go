package workflow

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"countersign/store"
)

// Slack may refuse to delete a message that must go: a card that was posted again because Slack refused to edit it, or
// a card that must not stay in its channel. The buttons of such a message have no effect. The outbox message lists it
// in Leftovers, and the deletion is tried again.
const (
	firstDeletion = time.Minute
	lastDeletion  = 6 * time.Hour
	leftoversKept = 3 * 24 * time.Hour
	maxLeftovers  = 100 // leftovers of one outbox message
)

// LeftOver records that Slack refused to delete a Slack message that showed an outbox message.
func (w *Outbox) LeftOver(ctx context.Context, message, channel, ts, cause string) error {
	return w.update(ctx, "left over", func(t *tx) error {
		s, err := t.OutboxMessage(message)
		if err != nil {
			return store.IgnoreNotFound(err)
		}
		if s.ReplacedTS == ts {
			s.ReplacedTS = ""
		}
		if !slices.ContainsFunc(s.Leftovers, func(l store.Leftover) bool { return l.Channel == channel && l.TS == ts }) {
			s.Leftovers = append(s.Leftovers, store.Leftover{Channel: channel, TS: ts, Since: t.now, Next: t.now.Add(firstDeletion), Cause: cause})
		}
		if more := len(s.Leftovers) - maxLeftovers; more > 0 {
			t.outbox.noteLeft(s, s.Leftovers[0])
			s.Leftovers = slices.Delete(s.Leftovers, 0, more)
		}
		return t.outbox.putLeftovers(s)
	})
}

// TriedDeletion is the outcome of one try to delete a leftover.
type TriedDeletion struct {
	store.Leftover
	Refused string // Slack's reason; empty: the message is gone
}

// TriedLeftovers records the outcomes of deletions. After Slack has refused a deletion for days, it is given up.
func (w *Outbox) TriedLeftovers(ctx context.Context, message string, tried []TriedDeletion) error {
	return w.update(ctx, "tried leftovers", func(t *tx) error {
		s, err := t.OutboxMessage(message)
		if errors.Is(err, store.ErrNotFound) {
			return t.ClearTimer(store.TimerLeftover, message)
		}
		if err != nil {
			return err
		}
		var left []store.Leftover
		for _, l := range s.Leftovers {
			i := slices.IndexFunc(tried, func(d TriedDeletion) bool { return d.Channel == l.Channel && d.TS == l.TS })
			switch {
			case i < 0:
			case tried[i].Refused == "":
				t.note(slog.LevelInfo, "a message that Slack would not delete is deleted", "message", string(s.Kind), "request", s.Request, "channel", l.Channel, "since", l.Since)
				continue
			case t.now.Sub(l.Since) >= leftoversKept:
				l.Cause = tried[i].Refused
				t.outbox.noteLeft(s, l)
				continue
			default:
				l.Cause = tried[i].Refused
				l.Next = t.now.Add(min(lastDeletion, t.now.Sub(l.Since)+firstDeletion))
				if end := l.Since.Add(leftoversKept); l.Next.After(end) {
					l.Next = end
				}
			}
			left = append(left, l)
		}
		s.Leftovers = left
		return t.outbox.putLeftovers(s)
	})
}

// noteLeft logs that a message stays in Slack.
func (t outboxTx) noteLeft(s store.OutboxMessage, l store.Leftover) {
	t.note(slog.LevelError, "Slack does not let the bot delete a message; it stays, and its buttons do nothing. Delete it in Slack", "message", string(s.Kind),
		"request", s.Request, "channel", l.Channel, "ts", l.TS, "since", l.Since, "cause", l.Cause)
}

// putLeftovers stores an outbox message, and sets the timer for the leftover that is due first.
func (t outboxTx) putLeftovers(s store.OutboxMessage) error {
	if err := t.PutOutboxMessage(s); err != nil {
		return err
	}
	if len(s.Leftovers) == 0 {
		return t.ClearTimer(store.TimerLeftover, s.ID)
	}
	first := slices.MinFunc(s.Leftovers, func(a, b store.Leftover) int { return a.Next.Compare(b.Next) })
	return t.SetTimer(store.Timer{Kind: store.TimerLeftover, Ref: s.ID, Due: first.Next})
}
