package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/store"
)

// ack is what the transport tells Slack once a delivery is durable. A nil payload acknowledges it and says nothing more.
type ack struct {
	payload any
}

// receive takes in one delivery, whatever it came through. When it returns nil the delivery is durable, or there is nothing in it
// to remember, and Slack may be told so; with an error it may not, and comes again.
func (b *Bot) receive(ctx context.Context, kind store.InboxKind, payload []byte, at time.Time) (ack, error) {
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
	b.people.heed(e.Event)
	b.places.heed(e.Event)
	if !e.Event.forUs() || b.chatter(e.Event) {
		return nil
	}
	id := e.EventID
	if id == "" {
		id = deliveryID(store.InboxEvent, e.Event.channelID(), e.Event.TS, e.Event.Type)
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
	var answer ack
	switch i.Type {
	case "view_submission":
		faults, reply, err := b.examine(ctx, i)
		if err != nil {
			return ack{}, fmt.Errorf("examine form: %w", err)
		}
		if len(faults) > 0 { // nothing was decided: the form stays open, and says what to mend
			return ack{map[string]any{"response_action": "errors", "errors": faults}}, nil
		}
		answer = reply
	case "block_actions":
		if len(i.Actions) == 0 || i.Actions[0].linkOnly() {
			return ack{}, nil
		}
	default:
		return ack{}, nil // closed forms and the like change nothing
	}
	id := i.id(payload)
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
	return known && e.Type == "message" && !e.dm() && e.ThreadTS == "" && !mentions(e.Text, me.User)
}

// readable subtypes of messages: what a person said. Everything else is about messages, or by bots.
var readable = map[string]bool{"": true, "thread_broadcast": true, "file_share": true}

// forUs reports whether an event is something that a person said.
func (e event) forUs() bool {
	if e.Type != "message" && e.Type != "app_mention" {
		return false
	}
	return readable[e.Subtype] && e.BotID == "" && e.userID() != "" && e.TS != "" && e.channelID() != ""
}
