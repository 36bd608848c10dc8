package bot

import (
	"context"
	"regexp"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/directory"
	"countersign/bot/render/block"
	"countersign/bot/render/form"
	"countersign/bot/render/thread"
	"countersign/bot/slackapi"
	"countersign/internal/tracing"
	"countersign/store"
)

// messageHandler passes people's messages to the workflow: new, edited and deleted messages. messageHandler also
// handles the events of the agent's own area in Slack. If Slack can't say who wrote a message, the message waits, and
// is not passed on.
type messageHandler struct {
	*core
	identities     *Identities
	ephemeral      *ephemeral
	attachments    *attachments
	statuses       *Statuses
	viewedChannels *viewedChannels
}

// handle passes a person's message to the workflow.
func (b *messageHandler) handle(ctx context.Context, row store.Inbox, e envelope) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	user := e.Event.userID()
	if user == me.User {
		return b.Intake.Done(ctx, row.ID, "the bot's own message")
	}
	who, err := b.users.Who(ctx, user, false)
	if isLookupRefused(err) {
		return unknownWriter{b, row, e}.deferMessage(ctx, err)
	}
	if err != nil {
		return err
	}
	if who.Bot {
		return b.Intake.Done(ctx, row.ID, "another bot's message")
	}
	taken, err := b.isTaken(ctx, me, e.Event)
	if err != nil {
		return err
	}
	u, err := b.incoming(ctx, me, row, e, taken)
	var unnamed error
	if isUnpermitted(err) {
		unnamed = err
		b.Log.ErrorContext(ctx, "the bot token lacks a scope, so the name of a channel is unknown", "inbox", row.ID, "channel", e.Event.channelID(), "cause", slackapi.Explain(err))
	} else if err != nil {
		return err
	}
	u.Who = who
	if taken {
		u.Attached = strings.TrimSpace(b.attachments.read(ctx, row.ID, nameFor(who), e.Event.Files) + "\n\n" + b.viewedChannelNote(ctx, e.Event))
	}
	here := ephemeralReply{user: user, channel: e.Event.channelID(), thread: e.Event.ThreadTS}
	if u.Text == "" && u.Edited == "" {
		if err := b.Intake.Done(ctx, row.ID, "no words in it"); err != nil {
			return err
		}
		if u.Start {
			b.ephemeral.reply(ctx, here, block.Say("There was nothing in your message for me to work on. Write what you need in the same message as the mention, for example: “refund order ORD-123”."))
		}
		return nil
	}
	result, err := b.Intake.ReceiveMessage(ctx, u)
	if err != nil {
		return err
	}
	tracing.Belongs(ctx, tracing.Subject{Turn: result.Turn, Name: tracing.SpanMessage})
	b.reply(ctx, here, u, result, unnamed)
	return nil
}

// reply tells the author of a message how the workflow took the message. The error unnamed is Slack's refusal to name
// the channel, or nil.
func (b *messageHandler) reply(ctx context.Context, here ephemeralReply, u workflow.IncomingMessage, result workflow.MessageResult, unnamed error) {
	if result.Denied != nil && !result.Ignored && u.Start {
		words := form.DeniedAskerText(result.Denied, u.Channel)
		if result.Denied.Code == approvers.DeniedChannel && unnamed != nil { // the policy may allow the channel by its name, and Slack does not give this name to the bot
			words = form.UnpermittedText()
		}
		b.ephemeral.reply(ctx, here, words)
	}
	if result.Passed != "" {
		b.ephemeral.reply(ctx, here, thread.PassedOn(result.Passed))
	}
	if result.Turn != "" && !result.Stopped && !result.Queued && !result.Paused && !result.Duplicate {
		b.statuses.show(ctx, result.Turn, false)
	}
}

// isTaken reports whether the workflow may take a message: the message may begin a conversation, or there is a
// conversation in its thread. Only for such a message, the bot asks Slack for the names of mentioned people and for
// files. isTaken reads the store only if the message has mentions or files.
func (b *messageHandler) isTaken(ctx context.Context, me directory.Self, ev event) (bool, error) {
	if ev.starts(me.User) || !strings.Contains(ev.Text, "<@") && len(ev.Files) == 0 {
		return true, nil
	}
	return b.Views.HasConversation(ctx, me.Team, ev.channelID(), ev.thread())
}

// starts reports whether a message may begin a conversation: it is a direct message, or mentions the bot.
func (e event) starts(me string) bool {
	return e.dm() || e.Type == "app_mention" || mentions(e.Text, me)
}

// incoming converts an event to the type that the workflow takes. If taken is not set, the text has user ids in place
// of people's names. If the bot can't read the channel's name, the result lacks the name, and incoming also returns
// Slack's refusal.
func (b *messageHandler) incoming(ctx context.Context, me directory.Self, row store.Inbox, e envelope, taken bool) (workflow.IncomingMessage, error) {
	ev := e.Event
	place := approvers.ChannelRef{Channel: ev.channelID(), DM: ev.dm()}
	var unnamed error
	if !place.DM {
		name, err := b.channels.Name(ctx, place.Channel)
		if isUnpermitted(err) {
			unnamed = err
		} else if err != nil {
			return workflow.IncomingMessage{}, err
		}
		place.Name = name
	}
	called := func(user string) string { return user }
	if taken {
		called = b.identities.namer(ctx)
	}
	text := readableText(ev.Text, me.User, called)
	u := workflow.IncomingMessage{
		Inbox: row.ID, At: row.ReceivedAt, Channel: place, Team: me.Team, Thread: ev.thread(), TS: ev.TS, Edited: ev.Edited.TS,
		Text:            withFiles(text, ev.Files),
		Start:           ev.starts(me.User),
		Stop:            saysStop(text),
		NewConversation: place.DM && ev.ThreadTS == "" && startsNewConversation(text),
		Gap:             e.Gap,
	}
	return u, unnamed
}

func mentions(text, user string) bool {
	return strings.Contains(text, "<@"+user+">") || strings.Contains(text, "<@"+user+"|")
}

// nameFor returns the name that the model uses for a person.
func nameFor(who approvers.Identity) string {
	if who.Name != "" {
		return block.Name(who.Name)
	}
	return who.ID.User()
}

// markup matches Slack's markup.
var markup = regexp.MustCompile(`<([@#!][^<>]*|[a-z]+:[^<>]*)>`)

// readableText converts Slack's markup to plain text. readableText drops the bot's own mention. Each other mention
// becomes an @ and a name. The name comes from Slack's markup. If the markup has no name for a person, the parameter
// called returns the name. readableText keeps the addresses of links, and unescapes the text.
func readableText(text, me string, called func(user string) string) string {
	text = markup.ReplaceAllStringFunc(text, func(token string) string {
		return plainToken(token[1:len(token)-1], me, called)
	})
	return strings.TrimSpace(unescape.Replace(text))
}

var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

func plainToken(token, me string, called func(string) string) string {
	target, label, labelled := strings.Cut(token, "|")
	switch {
	case strings.HasPrefix(target, "@"):
		if target == "@"+me {
			return ""
		}
		if labelled && label != "" {
			return "@" + label
		}
		return "@" + called(target[1:])
	case strings.HasPrefix(target, "#"):
		if labelled && label != "" {
			return "#" + label
		}
		return target
	case strings.HasPrefix(target, "!subteam^"):
		if labelled && label != "" {
			return "@" + strings.TrimPrefix(label, "@")
		}
		return "@" + strings.TrimPrefix(target, "!subteam^")
	case strings.HasPrefix(target, "!date^"):
		return label
	case strings.HasPrefix(target, "!"):
		return "@" + target[1:]
	case strings.HasPrefix(target, "mailto:"), strings.HasPrefix(target, "tel:"):
		_, address, _ := strings.Cut(target, ":")
		return address
	case !labelled || label == target || strings.HasSuffix(target, "://"+label) || strings.HasSuffix(target, "://"+label+"/"):
		return target
	}
	return label + " (" + target + ")"
}

// saysStop reports whether a message only tells the agent to stop.
func saysStop(text string) bool {
	switch strings.ToLower(strings.Trim(text, " .!")) {
	case "stop", "stop it", "stop that", "stop this", "please stop", "stop please", "stop now":
		return true
	}
	return false
}

// startsNewConversation reports whether a message asks for a new conversation.
func startsNewConversation(text string) bool {
	switch strings.ToLower(strings.Trim(text, " .!")) {
	case "start over", "new conversation", "start a new conversation", "reset":
		return true
	}
	return false
}

// unwrapped turns an event about an edit or a deletion into an event with the fields of the message itself. After an
// edit, these are the fields of the current version. After a deletion, they are the fields of the last version. The
// field Edited marks edits, and Subtype marks deletions.
func (e event) unwrapped() event {
	if e.Type != "message" {
		return e
	}
	out := e
	switch {
	case e.Subtype == subtypeChanged && e.Message != nil && e.Message.Subtype == subtypeTombstone: // a thread's first message was deleted, and replies remain
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

// These are the subtypes of message events that the bot distinguishes.
const (
	subtypeChanged   = "message_changed"
	subtypeDeleted   = "message_deleted"
	subtypeTombstone = "tombstone" // the placeholder of a thread's deleted first message; a subtype of messages, not of events
)

// deletion reports whether an event says that a message was deleted.
func (e event) deletion() bool {
	return e.Type == "message" && (e.Subtype == subtypeDeleted || e.Subtype == subtypeTombstone) && e.TS != "" && e.channelID() != ""
}

// deletionID returns an id for a deletion. The second result is false if there is no id. If the first message of a
// thread is deleted, Slack keeps a placeholder until the last reply is deleted, too. Slack reports the removal of the
// placeholder as another deletion. That deletion gets no id.
func (e event) deletionID() (id string, named bool) {
	if e.Previous != nil && e.Previous.Subtype == subtypeTombstone {
		return "", false
	}
	return workflow.DeletionID(e.channelID(), e.TS), true
}

// sameText reports whether a change left a message's text unchanged. The text is unchanged if, for example, a link
// preview appeared, or the number of replies changed.
func (e event) sameText() bool {
	return e.Previous != nil && e.Edited.TS != "" && e.Previous.Text == e.Text
}

// deleted tells the workflow that a message was deleted.
func (b *messageHandler) deleted(ctx context.Context, row store.Inbox, e envelope) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	ev := e.Event
	return b.Intake.Deleted(ctx, workflow.Deletion{
		Inbox: row.ID, At: row.ReceivedAt, Team: me.Team, Channel: approvers.ChannelRef{Channel: ev.channelID(), DM: ev.dm()}, Thread: ev.thread(),
		TS: ev.TS, Rest: ev.Subtype == subtypeTombstone,
	})
}

// thread returns the timestamp that identifies a message's thread. For a message outside of a thread, the result is the
// message's own timestamp, because replies to the message would form a thread. At the top level of a direct message,
// the result is empty.
func (e event) thread() string {
	switch {
	case e.dm() && e.ThreadTS == e.TS:
		return ""
	case e.ThreadTS == "" && !e.dm():
		return e.TS
	}
	return e.ThreadTS
}
