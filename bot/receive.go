package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"countersign/bot/directory"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/transport"
	"countersign/store"
)

// Receiver stores Slack's deliveries before they are acknowledged. Receiver also does urgent work: it opens loading
// views, validates submitted forms, and removes outdated answers from the caches. Inbox does everything else.
type Receiver struct {
	*core
	ephemeral       *ephemeral
	modals          *modals
	submissions     *submissionHandler
	viewedChannels  *viewedChannels
	diskFullNotices diskFullNotices
}

// Receive makes a delivery durable. If err is nil, the delivery may be acknowledged with answer. In this case, the
// delivery is stored, or needs no storage, or answer says that it was refused. If err is not nil, the delivery must not
// be acknowledged. If the delivery is an event, Slack then sends it again.
func (b *Receiver) Receive(ctx context.Context, d transport.Delivery) (answer any, err error) {
	answer, err = b.store(ctx, d)
	if store.Refused(err) {
		return b.refuseFull(d, err)
	}
	return answer, err
}

func (b *Receiver) store(ctx context.Context, d transport.Delivery) (answer any, err error) {
	switch d.Kind {
	case store.InboxEvent:
		return nil, b.receiveEvent(ctx, d)
	case store.InboxInteraction:
		return b.receiveInteraction(ctx, d)
	}
	return nil, b.receiveCommand(ctx, d)
}

// inboxRow returns the row under which a delivery is stored.
func inboxRow(id string, d transport.Delivery) store.Inbox {
	return store.Inbox{ID: id, Kind: d.Kind, ReceivedAt: d.ReceivedAt, Payload: d.Payload}
}

func (b *Receiver) receiveCommand(ctx context.Context, d transport.Delivery) error {
	c, err := readCommand(d.Payload)
	if err != nil {
		return b.receiveUnreadable(ctx, d, err)
	}
	_, err = b.Intake.Receive(ctx, inboxRow(deliveryID(store.InboxCommand, string(d.Payload)), d), c.lane())
	return err
}

func (b *Receiver) receiveEvent(ctx context.Context, d transport.Delivery) error {
	e, err := readEnvelope(d.Payload)
	if err != nil {
		return b.receiveUnreadable(ctx, d, err)
	}
	if e.Type == eventsLimited {
		b.Log.ErrorContext(ctx, "Slack holds back events for an hour, because more than 30,000 came: messages sent meanwhile are not received", "since", e.LimitedSince)
		return nil
	}
	who := e.Event.account()
	people := who.news(b.users, b.Views.Policy()) || e.Event.aboutGroup() && slices.ContainsFunc(groupsOf(b.Views.Policy()), e.Event.Group.is)
	b.users.Invalidate(e.Event.Type, e.Event.userID())
	b.channels.Invalidate(e.Event.Type, e.Event.channelID())
	b.viewedChannels.update(e.Event, b.Now())
	if (!e.Event.forUs() || b.chatter(e.Event)) && !b.aboutChannel(e.Event) && !e.Event.aboutAgent() && !e.Event.homeOpened() && !people {
		return nil
	}
	if err := e.shaped(); err != nil {
		return b.receiveUnreadable(ctx, d, err)
	}
	id := e.EventID
	if id != "" && !idShape.MatchString(id) { // this id becomes part of the delivery's id
		id = deliveryID(store.InboxEvent, id)
	}
	if message, ok := e.Event.messageID(&b.self); ok {
		id = message
	}
	if id == "" {
		id = deliveryID(store.InboxEvent, e.Event.channelID(), e.Event.TS, e.Event.Type, e.Event.Edited.TS, e.Event.At)
	}
	if _, err = b.Intake.Receive(ctx, inboxRow(id, d), e.lane()); err != nil {
		return err
	}
	if who.ID != "" {
		b.users.NoteGuest(who.ID, who.guest())
	}
	return nil
}

// receiveUnreadable stores a delivery that can't be parsed, so that the operator sees it. The delivery is acknowledged,
// because a redelivery would not help.
func (b *Receiver) receiveUnreadable(ctx context.Context, d transport.Delivery, cause error) error {
	b.Log.ErrorContext(ctx, "Slack sent a delivery that can't be read; it was set aside", "kind", string(d.Kind), "bytes", len(d.Payload), "error", cause)
	_, err := b.Intake.Receive(ctx, inboxRow(deliveryID(d.Kind, string(d.Payload)), d), "")
	return err
}

func (b *Receiver) receiveInteraction(ctx context.Context, d transport.Delivery) (answer any, err error) {
	i, err := readInteraction(d.Payload)
	if err != nil {
		return nil, b.receiveUnreadable(ctx, d, err)
	}
	id := i.id(d.Payload)
	switch i.Type {
	case interactionForm:
		before, err := b.Views.Inbox(ctx, id)
		if err == nil && before.Note != formRefused {
			return nil, nil // a duplicate of a stored delivery
		}
		refused := err == nil
		against, err := b.submissions.examine(ctx, i)
		if err != nil {
			return nil, fmt.Errorf("examine form: %w", err)
		}
		open := against.answer()
		if refused && open == nil {
			return refuseForm(i, block.Say("Nothing was decided: this was refused before. Please close it and begin again."), "This was refused before. Please send it again."), nil
		}
		if open != nil { // nothing was decided, so the form stays open
			if err := b.Intake.Remember(ctx, store.Inbox{ID: id, Kind: d.Kind, ReceivedAt: d.ReceivedAt, Note: formRefused}); err != nil {
				b.Log.WarnContext(ctx, "the refusal of a form could not be stored", "inbox", id, "error", err)
			}
			return open, nil
		}
	case interactionSuggestion: // the bot has no menu with external options
		return map[string]any{"options": []any{}}, nil
	case interactionShortcut:
		if i.Callback != control.ExplainShortcut {
			return nil, nil
		}
	case "block_actions":
		if len(i.Actions) == 0 || i.Actions[0].linkOnly() {
			return nil, nil
		}
	default:
		return nil, nil // other interactions, such as closing a form, change nothing
	}
	if form, wants := formOf(i); wants { // the trigger id expires after 3 s, so the form is opened while the row is stored, not afterwards
		b.modals.openLoading(id, i.TriggerID, form)
	}
	if d.Payload, err = i.slim(d.Payload); err != nil {
		return nil, err
	}
	_, err = b.Intake.Receive(ctx, inboxRow(id, d), i.lane())
	return nil, err
}

// formRefused is the note of a form that was rejected with errors. The bot never accepts a duplicate of such a form,
// even if the form has become valid.
const formRefused = "the form was refused"

// linkOnly reports whether the only effect of a click was to open a link.
func (a action) linkOnly() bool { return a.ActionID == control.ActLink }

// slim removes unused fields from a large payload. For example, the payload has a copy of the clicked message, which is
// already stored.
func (i interaction) slim(payload []byte) ([]byte, error) {
	if len(payload) < 8<<10 {
		return payload, nil
	}
	out, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("encode interaction: %w", err)
	}
	return out, nil
}

// chatter reports whether an event is a message between people in a channel, outside of threads and without a mention
// of the bot. Such a message can't start or continue a conversation with the bot, so the bot does not store it.
func (b *core) chatter(e event) bool {
	me, known := b.self.known()
	if !known || e.Type != "message" || e.dm() || e.ThreadTS != "" || mentions(e.Text, me.User) {
		return false
	}
	if e.deletion() && e.userID() == "" || e.userID() == me.User {
		return false // the event does not say whose message was deleted, or the message is the bot's
	}
	return e.Previous == nil || !mentions(e.Previous.Text, me.User)
}

// readable lists the subtypes of messages that people write. Other subtypes belong to events about messages, or to
// messages by bots.
var readable = map[string]bool{"": true, "thread_broadcast": true, "file_share": true}

// forUs reports whether an event is a person's new or edited message, or the deletion of a message.
func (e event) forUs() bool {
	if e.Type != "message" && e.Type != "app_mention" {
		return false
	}
	if e.deletion() {
		return true
	}
	return readable[e.Subtype] && e.BotID == "" && e.userID() != "" && e.userID() != directory.Slackbot && e.TS != "" && e.channelID() != "" && !e.sameText()
}
