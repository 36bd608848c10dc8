package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/store"
)

// ack is what the transport tells Slack once a delivery is durable. A nil payload acknowledges it and says nothing more.
type ack struct {
	payload any
}

// Receive takes in one delivery that came by another way than the bot's own sockets. When it returns nil the delivery is durable, or there is nothing
// in it to remember, and Slack may be told so, with answer as the payload of the acknowledgement (nil: none). With an error it may not.
func (b *Bot) Receive(ctx context.Context, kind store.InboxKind, payload []byte) (answer any, err error) {
	a, err := b.receive(ctx, kind, payload, b.inOrder.next(b.Now()))
	return a.payload, err
}

// receive takes in one delivery, whatever it came through. When it returns nil the delivery is durable, or there is nothing in it
// to remember, or the acknowledgement says that it was refused, and Slack may be told so; with an error it may not, and comes again.
func (b *Bot) receive(ctx context.Context, kind store.InboxKind, payload []byte, at time.Time) (ack, error) {
	answer, err := b.store(ctx, kind, payload, at)
	if errors.Is(err, store.ErrFull) {
		return b.refuseFull(kind, payload, err)
	}
	return answer, err
}

// store makes one delivery durable.
func (b *Bot) store(ctx context.Context, kind store.InboxKind, payload []byte, at time.Time) (ack, error) {
	switch kind {
	case store.InboxEvent:
		return ack{}, b.receiveEvent(ctx, payload, at)
	case store.InboxInteraction:
		return b.receiveInteraction(ctx, payload, at)
	}
	return ack{}, b.receiveCommand(ctx, payload, at)
}

func (b *Bot) receiveCommand(ctx context.Context, payload []byte, at time.Time) error {
	c, err := readCommand(payload)
	if err != nil {
		return b.receiveUnreadable(ctx, store.InboxCommand, payload, at, err)
	}
	row := store.Inbox{ID: deliveryID(store.InboxCommand, string(payload)), Kind: store.InboxCommand, ReceivedAt: at, Payload: payload}
	_, err = b.Desk.Receive(ctx, row, c.lane())
	return err
}

func (b *Bot) receiveEvent(ctx context.Context, payload []byte, at time.Time) error {
	e, err := readEnvelope(payload)
	if err != nil {
		return b.receiveUnreadable(ctx, store.InboxEvent, payload, at, err)
	}
	if e.Type == eventsLimited {
		b.Log.Error("Slack holds back events for an hour, as more than 30,000 came: what people write meanwhile is not heard", "since", e.LimitedSince)
		return nil
	}
	b.people.heed(e.Event)
	b.places.heed(e.Event)
	b.looks.heed(e.Event, b.Now())
	if (!e.Event.forUs() || b.chatter(e.Event)) && !b.aboutPlace(e.Event) && !e.Event.aboutAgent() && !e.Event.homeOpened() {
		return nil
	}
	id := e.EventID
	if gone, named := e.Event.deletionID(); named && e.Event.deletion() {
		id = gone
	}
	if id == "" {
		id = deliveryID(store.InboxEvent, e.Event.channelID(), e.Event.TS, e.Event.Type, e.Event.Edited.TS, e.Event.At)
	}
	_, err = b.Desk.Receive(ctx, store.Inbox{ID: id, Kind: store.InboxEvent, ReceivedAt: at, Payload: payload}, e.lane())
	return err
}

// receiveUnreadable remembers a delivery that can't be read, so that the operator sees it; sending it again would not help.
func (b *Bot) receiveUnreadable(ctx context.Context, kind store.InboxKind, payload []byte, at time.Time, cause error) error {
	b.Log.Error("Slack sent something unreadable; it was set aside", "kind", string(kind), "bytes", len(payload), "error", cause)
	_, err := b.Desk.Receive(ctx, store.Inbox{ID: deliveryID(kind, string(payload)), Kind: kind, ReceivedAt: at, Payload: payload}, "")
	return err
}

func (b *Bot) receiveInteraction(ctx context.Context, payload []byte, at time.Time) (ack, error) {
	i, err := readInteraction(payload)
	if err != nil {
		return ack{}, b.receiveUnreadable(ctx, store.InboxInteraction, payload, at, err)
	}
	id := i.id(payload)
	var answer ack
	switch i.Type {
	case interactionForm:
		before, err := b.Desk.Inbox(ctx, id)
		if err == nil && before.Note != formRefused {
			return ack{}, nil // it came before, and was taken in
		}
		refused := err == nil
		faults, reply, err := b.examine(ctx, i)
		if err != nil {
			return ack{}, fmt.Errorf("examine form: %w", err)
		}
		if refused && len(faults) == 0 {
			return refuseForm(i, say("Nothing was decided: this was refused before. Please close it and begin again."), "This was refused before. Please send it again."), nil
		}
		if len(faults) > 0 { // nothing was decided: the form stays open, and says what to mend
			if err := b.Desk.Remember(ctx, store.Inbox{ID: id, Kind: store.InboxInteraction, ReceivedAt: at, Note: formRefused}); err != nil {
				b.Log.Warn("a form that was refused could not be remembered", "inbox", id, "error", err)
			}
			return ack{map[string]any{"response_action": "errors", "errors": faultsThatFit(faults)}}, nil
		}
		answer = reply
	case interactionSuggestion: // the bot has no menu that asks for its options
		return ack{map[string]any{"options": []any{}}}, nil
	case interactionShortcut:
		if i.Callback != explainShortcut {
			return ack{}, nil
		}
	case "block_actions":
		if len(i.Actions) == 0 || i.Actions[0].linkOnly() {
			return ack{}, nil
		}
	default:
		return ack{}, nil // closed forms and the like change nothing
	}
	if form, wants := formOf(i); wants { // its trigger lives 3 s: beside the inbox row, not behind it
		b.openLoading(id, i.TriggerID, form)
	}
	slim, err := i.slim(payload)
	if err != nil {
		return ack{}, err
	}
	if _, err := b.Desk.Receive(ctx, store.Inbox{ID: id, Kind: store.InboxInteraction, ReceivedAt: at, Payload: slim}, i.lane()); err != nil {
		return ack{}, err
	}
	return answer, nil
}

// formRefused is the note of a form that was answered with what is wrong with it. The same one is never taken in, whatever has changed since.
const formRefused = "the form was refused"

// linkOnly reports whether a click only opened a link.
func (a action) linkOnly() bool { return a.ActionID == actLink }

// slim drops what is in the payload but never read: it holds the clicked message whole, a copy of what is stored already.
func (i interaction) slim(payload []byte) ([]byte, error) {
	if len(payload) < 8<<10 {
		return payload, nil
	}
	out, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("keep interaction: %w", err)
	}
	return out, nil
}

// chatter is what people of a channel say to one another: outside of threads and without a mention it can neither begin nor
// continue a conversation with the bot, so it isn't even remembered.
func (b *Bot) chatter(e event) bool {
	me, known := b.self.known()
	if !known || e.Type != "message" || e.dm() || e.ThreadTS != "" || mentions(e.Text, me.User) {
		return false
	}
	if e.deletion() && e.userID() == "" || e.userID() == me.User {
		return false // of what was deleted Slack says no more, or it is one of the bot's own messages
	}
	return e.Previous == nil || !mentions(e.Previous.Text, me.User)
}

// readable subtypes of messages: what a person said. Everything else is about messages, or by bots.
var readable = map[string]bool{"": true, "thread_broadcast": true, "file_share": true}

// forUs reports whether an event is something that a person said, now or in other words than before, or that a message is gone.
func (e event) forUs() bool {
	if e.Type != "message" && e.Type != "app_mention" {
		return false
	}
	if e.deletion() {
		return true
	}
	return readable[e.Subtype] && e.BotID == "" && e.userID() != "" && e.userID() != slackbot && e.TS != "" && e.channelID() != "" && !e.sameWords()
}
