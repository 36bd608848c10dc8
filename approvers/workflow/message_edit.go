package workflow

import (
	"context"
	"errors"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// lateEdit limits a message's age if the workflow learns of the message by an edit first. The message's own event is
// then late or lost. The edit of an older message starts no turn.
const lateEdit = time.Hour

// DeletionID returns the id of the inbox row for a message's deletion. A message has only one such row, even if Slack
// reports the deletion several times. When other events of the message arrive later, this row shows that the message is
// gone.
func DeletionID(channel, ts string) string { return "deleted:" + channel + "/" + ts }

// Deletion is a message of a person or of the bot that was deleted in Slack.
type Deletion struct {
	Inbox   string // id of the delivery, which is closed in the same transaction
	At      time.Time
	Team    string
	Channel approvers.ChannelRef
	Thread  string // ts of the thread's root; empty at the top level of a direct message
	TS      string // the message's own ts
	Rest    bool   // it was the root of a thread whose replies remain
}

// Deleted handles the deletion of a message by its author or an admin. A message that the model has not read is
// dropped. If the model has read the message, nothing is withdrawn. Instead, the requesters are told about the
// deletion. The workflow also tells the people who decide pending requests to which the message led.
func (w *Intake) Deleted(ctx context.Context, x Deletion) error {
	err := w.update(ctx, "deleted", func(t *tx) error {
		if err := t.settle(x.Inbox, ""); err != nil {
			return err
		}
		if err := t.reposts.lost(x.Channel.Channel, x.TS); err != nil {
			return err
		}
		u := IncomingMessage{At: x.At, Team: x.Team, Channel: x.Channel, Thread: x.Thread, TS: x.TS}
		if _, err := t.turns.editMessage(u, approvers.MessageEdit{At: x.At, Deleted: true}); err != nil {
			return err
		}
		return t.turns.threadGone(x)
	})
	if errors.Is(err, ErrHandled) {
		return nil
	}
	return err
}

// If the deleted Slack message showed an outbox message, lost marks the outbox message as lost.
func (t repostsTx) lost(channel, ts string) error {
	s, err := t.OutboxMessageAt(channel, ts)
	if err != nil {
		return store.IgnoreNotFound(err)
	}
	return t.markLost(s)
}

// If a thread disappears with its only message, threadGone marks the thread's conversation.
func (t turnsTx) threadGone(x Deletion) error {
	if x.Rest || x.Thread != x.TS {
		return nil
	}
	conv, err := t.ConversationAt(store.Place(x.Team, x.Channel.Channel, x.Thread))
	if err != nil {
		return store.IgnoreNotFound(err)
	}
	return t.noThread(conv)
}

func (t turnsTx) noThread(conv store.Conversation) error {
	if conv.Gone {
		return nil
	}
	conv.Gone = true
	return t.PutConversation(conv)
}

// ThreadGone records that nobody can write in a conversation's thread any more.
func (w *Intake) ThreadGone(ctx context.Context, conversation string) error {
	return w.update(ctx, "thread gone", func(t *tx) error {
		conv, err := t.Conversation(conversation)
		if err != nil {
			return err
		}
		return t.turns.noThread(conv)
	})
}

// deleted reports whether Slack has reported the deletion of a message.
func (t turnsTx) deleted(channel, ts string) (bool, error) {
	_, err := t.Inbox(DeletionID(channel, ts))
	return err == nil, store.IgnoreNotFound(err)
}

// editMessage applies an edit or a deletion to a stored message. editMessage reports whether the message is stored.
func (t turnsTx) editMessage(u IncomingMessage, w approvers.MessageEdit) (known bool, err error) {
	conv, err := t.ConversationAt(store.Place(u.Team, u.Channel.Channel, u.Thread))
	if err != nil {
		return false, store.IgnoreNotFound(err)
	}
	messages, err := t.Messages(conv.ID, 0)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(messages, func(m store.Message) bool { return m.Role == store.RoleUser && m.TS == u.TS })
	if i < 0 {
		return false, nil
	}
	m := messages[i]
	if m.State == store.MessageGone || !w.Deleted && (w.Edit <= m.Edited || w.Text == m.Text && m.MessageEdit == nil) {
		return true, nil
	}
	turn, err := t.Turn(m.Turn)
	if store.IgnoreNotFound(err) != nil {
		return true, err
	}
	if m.State == store.MessageQueued || m.State == store.MessageTaken && turn.State == approvers.TurnQueued {
		return true, t.editUnreadMessage(conv, m, w)
	}
	return true, t.editReadMessage(turn, m, w)
}

// If the model has not read a message, editUnreadMessage replaces its text or drops it.
func (t turnsTx) editUnreadMessage(conv store.Conversation, m store.Message, w approvers.MessageEdit) error {
	if !w.Deleted && w.Text != "" {
		m.Text, m.Edited = w.Text, w.Edit
		return t.PutMessage(m)
	}
	was := m.Turn
	m.State, m.Turn, m.Text = store.MessageGone, "", ""
	if err := t.PutMessage(m); err != nil {
		return err
	}
	if was == "" { // the message waited for the current turn to end
		return t.outbox.changedTurn(conv.Turn, store.OutboxQueued, 0)
	}
	return t.endUnasked(conv, was)
}

// endUnasked ends a turn that has no messages left to answer.
func (t turnsTx) endUnasked(conv store.Conversation, id string) error {
	messages, err := t.Messages(conv.ID, 0)
	if err != nil || slices.ContainsFunc(messages, func(m store.Message) bool { return m.Turn == id && m.Role == store.RoleUser }) {
		return err
	}
	turn, err := t.Turn(id)
	if err != nil {
		return err
	}
	if turn, err = turn.Stop("The message was deleted before the agent read it.", false, t.now); err != nil {
		return err
	}
	return t.end(turn, conv)
}

// editReadMessage records the edit of a message that the model has read, or that answered a question. editReadMessage
// notifies the people who decide the pending requests to which the message led, and the person who asked the question.
func (t turnsTx) editReadMessage(turn approvers.Turn, m store.Message, w approvers.MessageEdit) error {
	if !w.After(m.MessageEdit) {
		return nil
	}
	if w.Text == "" {
		w.Deleted = true // an edit to an empty text counts as a deletion
	}
	m.MessageEdit = &w
	if err := t.PutMessage(m); err != nil {
		return err
	}
	calls, err := t.Calls(turn.ID)
	if err != nil {
		return err
	}
	waits := false
	for _, c := range calls {
		if c.Request == "" || c.Outcome != "" {
			continue
		}
		r, err := t.Request(c.Request)
		if err != nil {
			return err
		}
		after, events, answer := approvers.RecordAnswerEdit(r, m.TS, w)
		if !answer && r.Facts.MessageTS == m.TS {
			news := false
			after, events, news = r.RecordMessageEdit(w)
			waits = waits || news
		}
		if len(events) == 0 {
			continue
		}
		if err := t.apply(after, events); err != nil {
			return err
		}
	}
	if !waits {
		return nil
	}
	return t.tellMessageEdit(turn)
}

// tellMessageEdit tells the requesters about an edited or deleted message: their request still waits unchanged.
// tellMessageEdit also tells them how to withdraw the request.
func (t turnsTx) tellMessageEdit(turn approvers.Turn) error {
	return t.outbox.wantCurrent(store.OutboxMessage{Kind: store.OutboxMessageEdit, Ref: turn.ID, Step: turn.Step, To: store.ToConversation + turn.Conversation})
}
