package bot

import (
	"context"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// slackbot is a person to Slack's API, and none.
const slackbot = "USLACKBOT"

// plain is an event on a message with the message itself in its place: an edited one as it reads now, a deleted one as it last was. Edits are told
// apart by Edited, deletions by Subtype.
func (e event) plain() event {
	if e.Type != "message" {
		return e
	}
	out := e
	switch {
	case e.Subtype == subtypeChanged && e.Message != nil && e.Message.Subtype == subtypeTombstone: // the first message of a thread that goes on
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

// Subtypes of events on messages.
const (
	subtypeChanged   = "message_changed"
	subtypeDeleted   = "message_deleted"
	subtypeTombstone = "tombstone" // what a thread's first message leaves when it is deleted: no subtype of an event in Slack, but of the message
)

// deletion reports whether an event says that a message is gone.
func (e event) deletion() bool {
	return e.Type == "message" && (e.Subtype == subtypeDeleted || e.Subtype == subtypeTombstone) && e.TS != "" && e.channelID() != ""
}

// deletionID names a deletion. What is left of a thread's first message goes with the last reply, and is another one's.
func (e event) deletionID() (id string, named bool) {
	if e.Previous != nil && e.Previous.Subtype == subtypeTombstone {
		return "", false
	}
	return desk.DeletionID(e.channelID(), e.TS), true
}

// sameWords reports whether a change left a message's words as they were: a preview appeared, or Slack counted its replies.
func (e event) sameWords() bool {
	return e.Previous != nil && e.Edited.TS != "" && e.Previous.Text == e.Text
}

// deleted tells the desk that a message is gone.
func (b *Bot) deleted(ctx context.Context, row store.Inbox, e envelope) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	ev := e.Event
	return b.Desk.Deleted(ctx, desk.Deletion{
		Inbox: row.ID, At: row.ReceivedAt, Team: me.Team, Place: approvers.Place{Channel: ev.channelID(), DM: ev.dm()}, Thread: ev.thread(),
		TS: ev.TS, Rest: ev.Subtype == subtypeTombstone,
	})
}

// thread names the thread that a message belongs to, its own if it began one; the top level of a direct message is none.
func (e event) thread() string {
	switch {
	case e.dm() && e.ThreadTS == e.TS:
		return ""
	case e.ThreadTS == "" && !e.dm():
		return e.TS
	}
	return e.ThreadTS
}
