package workflow

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// SentMessage is one version of an outbox message as it was sent to Slack.
type SentMessage struct {
	Body  []byte        // text and blocks as JSON
	Shows []store.Shown // the requests that it shows; Since is set when the delivery is recorded
}

// Delivered records that Slack shows an outbox message. s is the message as it was read, with Channel and TS set. Every
// posted version is kept.
func (w *Outbox) Delivered(ctx context.Context, s store.OutboxMessage, p SentMessage) error {
	hash := view.HashOf(p.Body)
	w.slack.saw(s.TS)
	return w.record(ctx, "delivered", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return err
		}
		lost := cur.Round != s.Round // the message has been lost since it was posted
		posted := !lost && cur.TS != s.TS
		if !lost {
			cur.Channel, cur.TS, cur.ShownRevision, cur.Hash, cur.LastError, cur.RepostIfLost, cur.ReplacedTS = s.Channel, s.TS, s.Revision, hash, "", false, ""
			cur.Drafted, cur.Refusals, cur.RefusedSince = false, 0, time.Time{}
			cur.Step = s.Step // for OutboxHead, Step is the number of the head
			cur.Steps = s.Steps
			if err := errors.Join(t.outbox.toldOf(cur), t.outbox.countAnswer(cur)); err != nil {
				return err
			}
		}
		shows, err := t.outbox.since(cur, p.Shows)
		if err != nil {
			return err
		}
		cur.Posts++
		switch {
		case lost:
		case cur.Revision == s.Revision:
			cur.State = store.OutboxShown
			err = t.outbox.shownAsWanted(cur)
		default: // the state changed while it was sent, so it is sent again
			cur.State = store.OutboxWanted
			err = t.outbox.showNow(cur)
		}
		if err != nil {
			return err
		}
		if err := t.PutOutboxMessage(cur); err != nil {
			return err
		}
		if !lost {
			if err := t.cards.updateUnreached(cur); err != nil {
				return err
			}
		}
		shown := store.Rendering{OutboxMessage: s.ID, Post: cur.Posts, Hash: hash, Shows: shows, Body: p.Body, At: t.now}
		if err := t.PutRendering(shown); err != nil {
			return err
		}
		for _, one := range p.Shows {
			if one.Request == "" {
				continue // an execution without a request has no card
			}
			facts := map[string]string{
				approvers.FactShownAs: string(s.Kind), "to": s.To, "channel": s.Channel, "message": s.TS, "rendering": hash, "digest": one.Digest,
			}
			if err := t.audit(one.Request, approvers.AuditShown, "", facts, p.Body); err != nil {
				return err
			}
			if !posted {
				continue
			}
			if err := t.cards.linkCard(one.Request); err != nil { // the requester's thread and notices link to the card
				return err
			}
		}
		if posted {
			if err := t.channels.postedIn(cur); err != nil {
				return err
			}
		}
		return t.outbox.goneBefore(s.Channel, s.TS)
	})
}

// goneBefore marks a message as lost if Slack reported its deletion before its delivery was recorded.
func (t outboxTx) goneBefore(channel, ts string) error {
	gone, err := t.turns.deleted(channel, ts)
	if err != nil || !gone {
		return err
	}
	return t.reposts.lost(channel, ts)
}

// Same reports whether Slack already shows exactly this body. For a message with buttons it always returns false,
// because the buttons contain the version's number.
func Same(s store.OutboxMessage, body []byte) bool {
	return s.Hash != "" && s.Hash == view.HashOf(body)
}

// Unchanged records that an outbox message needs no edit, because it would look the same. s is the message as it was
// read.
func (w *Outbox) Unchanged(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "unchanged", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return err
		}
		if cur.Round != s.Round {
			return nil // the message has been lost since
		}
		cur.ShownRevision = s.Revision
		return t.homes.settled(cur, s.Revision)
	})
}

// linkCard refreshes the messages with a pending request's step and notices, so that they link to the request's card.
func (t cardsTx) linkCard(request string) error {
	r, err := t.Request(request)
	if err != nil || r.State != approvers.Pending {
		return err
	}
	messages, err := t.OutboxMessagesOf(request)
	if err != nil {
		return err
	}
	for _, s := range messages {
		if s.Kind != store.OutboxNotice {
			continue
		}
		if err := t.outbox.changed(s); err != nil {
			return err
		}
	}
	if err := t.runs.changedEarlier(r); err != nil {
		return err
	}
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	return t.outbox.changedTurn(r.Turn, store.OutboxStep, call.Step)
}

// Expand replaces an outbox message to a role or a group by one message to each member who is not away or, if all are
// away, to each member. If there are no members, the message is marked unreachable.
func (w *Outbox) Expand(ctx context.Context, message string, users []string) error {
	if len(users) == 0 {
		return w.Unreachable(ctx, message, "nobody there can be written to", "")
	}
	return w.update(ctx, "expand", func(t *tx) error {
		s, err := t.OutboxMessage(message)
		if err != nil {
			return err
		}
		if s.State == store.OutboxExpanded {
			return t.outbox.shownAsWanted(s)
		}
		told := users
		if s.Note != store.NoteBreakGlass { // people who are away are told of break glass, too
			if told, err = t.people.present(users); err != nil {
				return err
			}
		}
		for _, user := range told {
			if err := t.outbox.copyFor(s, user); err != nil {
				return err
			}
		}
		s.State = store.OutboxExpanded
		if err := t.PutOutboxMessage(s); err != nil {
			return err
		}
		return t.outbox.shownAsWanted(s)
	})
}

// copyFor creates one person's copy of an outbox message. A person who holds several roles of a stage gets only one
// card.
func (t outboxTx) copyFor(s store.OutboxMessage, user string) error {
	one := store.OutboxMessage{Kind: s.Kind, Ref: s.Ref, Step: s.Step, Request: s.Request, To: store.ToUser + user, Role: s.Role, Bundle: s.Bundle, Note: s.Note}
	messages, err := t.OutboxMessagesOf(s.Ref)
	if err != nil {
		return err
	}
	for _, o := range messages {
		if o.To == one.To && o.Kind == s.Kind && o.Step == s.Step && o.Bundle == s.Bundle && o.Note == s.Note && !o.CreatedAt.Before(s.CreatedAt) {
			if o.State == store.OutboxUnreachable {
				return t.cards.tryAgain(o)
			}
			return nil
		}
	}
	return t.add(one)
}

// Removed records that an expired outbox message was deleted in Slack. s is the message as it was read. If the message
// has changed since then, it is posted again.
func (w *Outbox) Removed(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "removed", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return err
		}
		if cur.State == store.OutboxRemoved {
			return t.outbox.shownAsWanted(cur)
		}
		cur.TS = ""
		if cur.Revision != s.Revision {
			if err := t.PutOutboxMessage(cur); err != nil {
				return err
			}
			return t.outbox.showNow(cur)
		}
		cur.State = store.OutboxRemoved
		if err := t.PutOutboxMessage(cur); err != nil {
			return err
		}
		return t.outbox.shownAsWanted(cur)
	})
}

// Unreachable gives up an outbox message that Slack refused permanently. It sends the message to other addresses if
// there are any, and notifies the operator. The parameter lost is the channel if the bot can't write in it any more,
// and otherwise empty. The operator is notified of a lost channel only once, until the bot is back in it.
func (w *Outbox) Unreachable(ctx context.Context, message, cause, lost string) error {
	return w.update(ctx, "unreachable", func(t *tx) error {
		s, err := t.OutboxMessage(message)
		if errors.Is(err, store.ErrNotFound) {
			for _, kind := range store.ShowTimers {
				if err := t.ClearTimer(kind, message); err != nil {
					return err
				}
			}
			return nil
		}
		if err != nil {
			return err
		}
		if s.State == store.OutboxUnreachable {
			if s.ReplacedTS == "" {
				return t.outbox.shownAsWanted(s)
			}
			s.ReplacedTS = "" // the bot has already tried to delete the replaced message
			return errors.Join(t.PutOutboxMessage(s), t.outbox.shownAsWanted(s))
		}
		if lost != "" {
			return errors.Join(t.channels.channelLost(lost, cause, true), t.channels.moveAway(lost, s, cause))
		}
		t.note(slog.LevelError, "Slack refused a message permanently; correct the cause in Slack or in the policy", "message", string(s.Kind), "to", s.To, "request", s.Request, "cause", cause)
		return t.channels.giveUp(s, cause)
	})
}
