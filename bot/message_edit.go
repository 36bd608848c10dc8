package bot

import (
	"context"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// plain returns an event about a message as if the message itself were the event: an edited message in its current
// version, a deleted one in its last. Edited marks edits, and Subtype marks deletions.
func (e event) plain() event {
	if e.Type != "message" {
		return e
	}
	out := e
	switch {
	case e.Subtype == subtypeChanged && e.Message != nil && e.Message.Subtype == subtypeTombstone: // first message of a thread that still has replies
		out = was(e.Previous)
		out.TS, out.ThreadTS, out.Subtype = e.Message.TS, e.Message.TS, subtypeTombstone
	case e.Subtype == subtypeChanged && e.Message != nil:
		out = *e.Message
		if out.Edited.TS == "" {
			out.Edited.TS = e.TS
		}
		out.Previous = e.Previous
	case e.Subtype == subtypeDeleted:
		out = was(e.Previous)
		out.TS, out.Subtype = e.DeletedTS, subtypeDeleted
	}
	out.Type, out.Channel, out.ChannelType = e.Type, e.Channel, e.ChannelType
	return out
}

func was(previous *event) event {
	if previous == nil {
		return event{}
	}
	out := *previous
	out.Previous = previous
	return out
}

// Subtypes of message events.
const (
	subtypeChanged   = "message_changed"
	subtypeDeleted   = "message_deleted"
	subtypeTombstone = "tombstone" // the placeholder of a deleted first message of a thread; in Slack a subtype of messages, not of events
)

// deletion reports whether an event says that a message was deleted.
func (e event) deletion() bool {
	return e.Type == "message" && (e.Subtype == subtypeDeleted || e.Subtype == subtypeTombstone) && e.TS != "" && e.channelID() != ""
}

// deletionID returns an id for a deletion. The removal of a thread's placeholder with its last reply is a separate
// deletion and has none.
func (e event) deletionID() (id string, named bool) {
	if e.Previous != nil && e.Previous.Subtype == subtypeTombstone {
		return "", false
	}
	return workflow.DeletionID(e.channelID(), e.TS), true
}

// sameWords reports whether a change left a message's text unchanged: a link preview appeared, or Slack counted
// replies.
func (e event) sameWords() bool {
	return e.Previous != nil && e.Edited.TS != "" && e.Previous.Text == e.Text
}

// deleted tells the workflow that a message was deleted.
func (b *Bot) deleted(ctx context.Context, row store.Inbox, e envelope) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	ev := e.Event
	return b.Workflow.Deleted(ctx, workflow.Deletion{
		Inbox: row.ID, At: row.ReceivedAt, Team: me.Team, Channel: approvers.ChannelRef{Channel: ev.channelID(), DM: ev.dm()}, Thread: ev.thread(),
		TS: ev.TS, Rest: ev.Subtype == subtypeTombstone,
	})
}

// thread returns the thread of a message, which is its own if it started one. The top level of a direct message has
// none.
func (e event) thread() string {
	switch {
	case e.dm() && e.ThreadTS == e.TS:
		return ""
	case e.ThreadTS == "" && !e.dm():
		return e.TS
	}
	return e.ThreadTS
}
