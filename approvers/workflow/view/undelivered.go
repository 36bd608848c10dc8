package view

import (
	"context"
	"errors"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Undelivered lists work that the bot can't do because Slack refuses a call. Refused has answers, questions and notices
// for the operators that Slack refuses at all addresses. Leftovers has messages that the bot must still delete.
// Deferred counts deliveries whose sender Slack does not name. Each list has a limited length, and begins with the item
// that is due first. See Unreached for refused cards.
type Undelivered struct {
	Refused   []RefusedMessage
	Leftovers []LeftoverMessage
	Deferred  Deferred
}

// RefusedMessage is an answer, a question or a notice for the operators that Slack refuses at all its addresses.
type RefusedMessage struct {
	Message      store.OutboxMessage
	Conversation store.Conversation // the message's conversation; zero: it was erased
	Since        time.Time
	Next         time.Time // when the bot tries the message again
}

// LeftoverMessage is a Slack message that the bot must still delete.
type LeftoverMessage struct {
	Message store.OutboxMessage
	store.Leftover
}

// Deferred counts the deliveries that wait because the bot can't look up their senders in Slack. Deferred also counts
// later deliveries that wait for these deliveries, because deliveries must be handled in order.
type Deferred struct {
	Count int
	Since time.Time // when the oldest of these deliveries was deferred
	Cause string    // Slack's reason for the oldest of these deliveries
}

// maxUndelivered is the maximum number of timers of each kind that Undelivered reads.
const maxUndelivered = 1000

// Undelivered reads the work that the bot can't do because Slack refuses a call.
func (v *Reader) Undelivered(ctx context.Context) (u Undelivered, err error) {
	err = v.store.View(ctx, func(r store.Reader) (err error) {
		u = Undelivered{}
		if u.Refused, err = refusedMessages(r); err != nil {
			return err
		}
		if u.Leftovers, err = leftovers(r); err != nil {
			return err
		}
		u.Deferred, err = deferred(r)
		return err
	})
	return u, err
}

// eachTimer runs a callback for each timer of a kind. The callback gets the timer and the timer's outbox message.
func eachTimer(r store.Reader, kind store.TimerKind, do func(store.Timer, store.OutboxMessage) error) error {
	timers, err := r.Timers(kind, maxUndelivered)
	if err != nil {
		return err
	}
	for _, t := range timers {
		s, err := r.OutboxMessage(t.Ref)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err == nil {
			err = do(t, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func refusedMessages(r store.Reader) (list []RefusedMessage, err error) {
	err = eachTimer(r, store.TimerRepost, func(t store.Timer, s store.OutboxMessage) error {
		if s.State != store.OutboxUnreachable || IsCard(s.Kind) || s.Kind == store.OutboxBundle {
			return nil
		}
		one := RefusedMessage{Message: s, Since: s.RefusedSince, Next: t.Due}
		if one.Since.IsZero() { // Slack refused the message under an earlier version of the bot, which did not store the time
			one.Since = s.CreatedAt
		}
		turn, err := TurnOf(r, s)
		if err == nil {
			var of approvers.Turn
			if of, err = r.Turn(turn); err == nil {
				one.Conversation, err = r.Conversation(of.Conversation)
			}
		}
		list = append(list, one)
		return store.IgnoreNotFound(err)
	})
	return list, err
}

// TurnOf returns the turn to which an outbox message in a conversation belongs.
func TurnOf(r store.Reader, s store.OutboxMessage) (string, error) {
	switch s.Kind {
	case store.OutboxUnknown, store.OutboxAttachment:
		e, err := r.Execution(s.Ref)
		return e.Turn, err
	case store.OutboxModelQuestion:
		call, err := r.Call(s.Ref)
		return call.Turn, err
	case store.OutboxElicitation:
		q, err := r.Elicitation(s.Ref)
		return q.Turn, err
	case store.OutboxQuestion:
		q, err := r.Request(s.Ref)
		return q.Turn, err
	}
	return s.Ref, nil
}

func leftovers(r store.Reader) (list []LeftoverMessage, err error) {
	err = eachTimer(r, store.TimerLeftover, func(_ store.Timer, s store.OutboxMessage) error {
		for _, l := range s.Leftovers {
			list = append(list, LeftoverMessage{s, l})
		}
		return nil
	})
	return list, err
}

// Deletion is a leftover with the ts of its Slack messages that must be deleted.
type Deletion struct {
	store.Leftover
	Delete []string
}

// Leftovers lists the Slack messages that must be deleted for an outbox message.
func (v *Reader) Leftovers(ctx context.Context, message string) (list []Deletion, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		list = nil
		s, err := r.OutboxMessage(message)
		for _, l := range s.Leftovers {
			if ts := s.ToDelete(l); len(ts) > 0 {
				list = append(list, Deletion{l, ts})
			}
		}
		return store.IgnoreNotFound(err)
	})
	return list, err
}

func deferred(r store.Reader) (d Deferred, err error) {
	timers, err := r.Timers(store.TimerInbox, maxUndelivered)
	if err != nil {
		return d, err
	}
	lanes := map[string]bool{}
	waits := map[string]bool{}
	for _, t := range timers {
		if t.PutOff.IsZero() {
			continue
		}
		row, err := r.Inbox(t.Ref)
		if store.IgnoreNotFound(err) != nil {
			return d, err
		}
		if err != nil || row.Deferred == nil {
			continue
		}
		lanes[t.Lane], waits[t.Ref] = true, true
		if d.Since.IsZero() || row.Deferred.Since.Before(d.Since) {
			d.Since, d.Cause = row.Deferred.Since, row.Deferred.Cause
		}
	}
	for _, t := range timers {
		if waits[t.Ref] || t.Lane != "" && lanes[t.Lane] {
			d.Count++
		}
	}
	return d, nil
}
