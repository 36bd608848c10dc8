package bot

import (
	"countersign/bot/transport"
	"countersign/store"
)

// Lane returns the lane of a delivery: deliveries of one lane are received and handled in order. It is empty if the
// delivery can't be read.
func (b *Bot) Lane(d transport.Delivery) string {
	switch d.Kind {
	case store.InboxEvent:
		if e, err := readEnvelope(d.Payload); err == nil {
			return e.lane()
		}
	case store.InboxInteraction:
		if i, err := readInteraction(d.Payload); err == nil {
			return i.lane()
		}
	case store.InboxCommand:
		if c, err := readCommand(d.Payload); err == nil {
			return c.lane()
		}
	}
	return ""
}

// lane keeps the messages of one thread in order.
func (e envelope) lane() string {
	if e.Event.homeOpened() {
		return personLane(e.Event.userID())
	}
	return "thread:" + e.Event.channelID() + "/" + e.Event.thread()
}

func (i interaction) lane() string { return personLane(i.User.ID) }

func (c command) lane() string { return personLane(c.User) }

// personLane keeps a person's clicks and commands in order.
func personLane(user string) string { return "person:" + user }
