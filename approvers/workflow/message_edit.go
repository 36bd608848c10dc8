package workflow

import (
	"context"
	"errors"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// lateEdit is how old a message may be that the workflow hears of first by its edit: the event on the message itself is
// late then, or was lost. An edit of an older one that never was for the bot begins nothing.
const lateEdit = time.Hour

// DeletionID names the delivery of a message's deletion. There is one for each message however often it is told, and
// its row in the inbox says that the message is gone to whoever hears of the message after it.
func DeletionID(channel, ts string) string { return "deleted:" + channel + "/" + ts }

// Deletion is a message that Slack does not show any more: a person's, or the bot's own.
type Deletion struct {
	Inbox   string // the delivery that it came in; closed in the same transaction
	At      time.Time
	Team    string
	Channel approvers.ChannelRef
	Thread  string // ts of the thread's root; empty at the top level of a direct message
	TS      string // the message's own ts
	Rest    bool   // it began a thread that goes on without it
}

// Deleted takes in that a message was deleted, by its author or by an admin. One that waited is dropped. What the model
// has read it has read: who decides on what waits because of it is told, and so are those who asked. A deletion
// withdraws nothing.
func (w *Workflow) Deleted(ctx context.Context, x Deletion) error {
	err := w.update(ctx, "deleted", func(t *tx) error {
		if err := t.settle(x.Inbox, ""); err != nil {
			return err
		}
		if err := t.lost(x.Channel.Channel, x.TS); err != nil {
			return err
		}
		u := IncomingMessage{At: x.At, Team: x.Team, Channel: x.Channel, Thread: x.Thread, TS: x.TS}
		if _, err := t.editMessage(u, approvers.MessageEdit{At: x.At, Deleted: true}); err != nil {
			return err
		}
		return t.threadGone(x)
	})
	if errors.Is(err, ErrHandled) {
		return nil
	}
	return err
}

// lost notes that a message is gone if it was one of the bot's own that showed an outbox message.
func (t *tx) lost(channel, ts string) error {
	s, err := t.OutboxMessageAt(channel, ts)
	if err != nil {
		return ignoreNotFound(err)
	}
	return t.markLost(s)
}

// threadGone notes that there is no thread any more to write in: it went with its only message.
func (t *tx) threadGone(x Deletion) error {
	if x.Rest || x.Thread != x.TS {
		return nil
	}
	conv, err := t.ConversationAt(channelOf(x.Team, x.Channel.Channel, x.Thread))
	if err != nil {
		return ignoreNotFound(err)
	}
	return t.noThread(conv)
}

func (t *tx) noThread(conv store.Conversation) error {
	if conv.Gone {
		return nil
	}
	conv.Gone = true
	return t.PutConversation(conv)
}

// ThreadGone records that nobody can write in a conversation's thread any more.
func (w *Workflow) ThreadGone(ctx context.Context, conversation string) error {
	return w.update(ctx, "thread gone", func(t *tx) error {
		conv, err := t.Conversation(conversation)
		if err != nil {
			return err
		}
		return t.noThread(conv)
	})
}

// deleted reports whether Slack has told that a message is gone.
func (t *tx) deleted(channel, ts string) (bool, error) {
	_, err := t.Inbox(DeletionID(channel, ts))
	return err == nil, ignoreNotFound(err)
}

// editMessage takes in what became of a message since it was heard. It reports whether the message was heard at all.
func (t *tx) editMessage(u IncomingMessage, w approvers.MessageEdit) (known bool, err error) {
	conv, err := t.ConversationAt(channelOf(u.Team, u.Channel.Channel, u.Thread))
	if err != nil {
		return false, ignoreNotFound(err)
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
	if ignoreNotFound(err) != nil {
		return true, err
	}
	if m.State == store.MessageQueued || m.State == store.MessageTaken && turn.State == approvers.TurnQueued {
		return true, t.editUnreadMessage(conv, m, w)
	}
	return true, t.editReadMessage(turn, m, w)
}

// editUnreadMessage puts the new words in place of those that the model was not given yet, or drops the message.
func (t *tx) editUnreadMessage(conv store.Conversation, m store.Message, w approvers.MessageEdit) error {
	if !w.Deleted && w.Text != "" {
		m.Text, m.Edited = w.Text, w.Edit
		return t.PutMessage(m)
	}
	was := m.Turn
	m.State, m.Turn, m.Text = store.MessageGone, "", ""
	if err := t.PutMessage(m); err != nil {
		return err
	}
	if was == "" { // it waited behind the turn under way
		return t.changedTurn(conv.Turn, store.OutboxQueued, 0)
	}
	return t.endUnasked(conv, was)
}

// endUnasked ends a turn that has nothing left to think about.
func (t *tx) endUnasked(conv store.Conversation, id string) error {
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

// editReadMessage notes what became of a message that the model was given, and tells those who decide on what waits
// because of it.
func (t *tx) editReadMessage(turn approvers.Turn, m store.Message, w approvers.MessageEdit) error {
	if !w.After(m.MessageEdit) {
		return nil
	}
	if w.Text == "" {
		w.Deleted = true // what is left of it are no words
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
		if r.Facts.MessageTS != m.TS {
			continue
		}
		after, events, news := r.RecordMessageEdit(w)
		if !news {
			continue
		}
		waits = true
		if err := t.apply(after, events); err != nil {
			return err
		}
	}
	if !waits {
		return nil
	}
	return t.tellMessageEdit(turn)
}

// tellMessageEdit tells those who asked that what they edited or deleted since still waits as it was, and how to take
// it back.
func (t *tx) tellMessageEdit(turn approvers.Turn) error {
	return t.wantCurrent(store.OutboxMessage{Kind: store.OutboxMessageEdit, Ref: turn.ID, Step: turn.Step, To: toConversation + turn.Conversation})
}
