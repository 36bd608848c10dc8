package workflow

import (
	"context"
	"errors"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// lateEdit is the maximum age of a message that the bot receives only by an edit, because the message's own event is
// late or lost. The bot handles the edited message as a new message. The bot ignores the edit of an older message.
const lateEdit = time.Hour

// DeletionID returns the id of the inbox row for a message's deletion. The id contains only the message's address, so
// several events about the same deletion have one row. If other events about the message arrive later, the row shows
// that the message was deleted.
func DeletionID(channel, ts string) string { return "deleted:" + channel + "/" + ts }

// Deletion is the deletion of a message in Slack. The message is from a person or from the bot.
type Deletion struct {
	Inbox   string // id of the delivery, which is closed in the same transaction
	At      time.Time
	Team    string
	Channel approvers.ChannelRef
	Thread  string // ts of the thread's root; empty at the top level of a direct message
	TS      string // ts of the deleted message
	Rest    bool   // the message was the root of a thread whose replies remain
}

// Deleted handles the deletion of a message by its author or an admin. If the model has not read the message, Deleted
// drops the message. If the model has read the message, the requests that the message caused remain, and Deleted
// notifies their requesters and approvers.
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

// t.lost finds the outbox message of a deleted Slack message, and marks the outbox message as lost.
func (t repostsTx) lost(channel, ts string) error {
	s, err := t.OutboxMessageAt(channel, ts)
	if err != nil {
		return store.IgnoreNotFound(err)
	}
	return t.markLost(s)
}

// threadGone marks the conversation of a thread that disappeared, because the thread's only message was deleted.
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

// ThreadGone records that a conversation's thread does not exist any more.
func (w *Intake) ThreadGone(ctx context.Context, conversation string) error {
	return w.update(ctx, "thread gone", func(t *tx) error {
		conv, err := t.Conversation(conversation)
		if err != nil {
			return err
		}
		return t.turns.noThread(conv)
	})
}

// t.deleted reports whether Slack has reported the deletion of a message.
func (t turnsTx) deleted(channel, ts string) (bool, error) {
	_, err := t.Inbox(DeletionID(channel, ts))
	return err == nil, store.IgnoreNotFound(err)
}

// editMessage applies an edit or a deletion to a stored message. If the message is not stored, known is false.
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

// editUnreadMessage handles the edit or the deletion of a message that the model has not read. editUnreadMessage
// replaces the text of the message, or drops a deleted message.
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
// notifies the approvers of pending requests to which the message led. If the message answered a question,
// editReadMessage notifies the person who asked the question.
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

// tellMessageEdit tells the requesters that the edit or deletion of a message has not changed their waiting request.
// tellMessageEdit also tells the requesters how to withdraw the request.
func (t turnsTx) tellMessageEdit(turn approvers.Turn) error {
	return t.outbox.wantCurrent(store.OutboxMessage{Kind: store.OutboxMessageEdit, Ref: turn.ID, Step: turn.Step, To: store.ToConversation + turn.Conversation})
}
