package bot

import (
	"context"
	"strings"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// hear hands what a person said to the desk.
func (b *Bot) hear(ctx context.Context, row store.Inbox, e envelope) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	user := e.Event.userID()
	if user == me.User {
		return b.Desk.Done(ctx, row.ID, "the bot's own message")
	}
	who, err := b.who(ctx, user, false)
	if err != nil {
		return err
	}
	if who.Bot {
		return b.Desk.Done(ctx, row.ID, "another bot's message")
	}
	u, err := b.utterance(ctx, me, row, e)
	if err != nil {
		return err
	}
	u.Who = who
	u.Attached = strings.TrimSpace(b.attached(ctx, nameFor(who), e.Event.Files) + "\n\n" + b.beside(ctx, e.Event))
	here := whisper{user: user, channel: e.Event.channelID(), thread: e.Event.ThreadTS}
	// A mention comes twice, as a mention and as a message of the channel. Whoever has to be told something is told it once.
	told := u.Place.DM || e.Event.Type == "app_mention"
	if u.Text == "" && u.Edited == "" {
		if err := b.Desk.Done(ctx, row.ID, "no words in it"); err != nil {
			return err
		}
		if told {
			b.tell(ctx, here, say("There was nothing in your message for me to work on. Write what you need in the same message as the mention, for example: “refund order ORD-123”."))
		}
		return nil
	}
	heard, err := b.Desk.Hear(ctx, u)
	if err != nil {
		return err
	}
	if heard.Denied != nil && !heard.Ignored && told {
		b.tell(ctx, here, deniedAsker(heard.Denied, u.Place))
	}
	if heard.Turn != "" && !heard.Halted && !heard.Queued && !heard.Paused && !heard.Duplicate {
		b.showStatus(ctx, heard.Turn, false)
	}
	return nil
}

// utterance reads an event as the desk hears it.
func (b *Bot) utterance(ctx context.Context, me self, row store.Inbox, e envelope) (desk.Utterance, error) {
	ev := e.Event
	place := approvers.Place{Channel: ev.channelID(), DM: ev.dm()}
	if !place.DM {
		name, err := b.places.name(ctx, place.Channel)
		if err != nil {
			return desk.Utterance{}, err
		}
		place.Name = name
	}
	text := readableText(ev.Text, me.User, func(user string) string { return b.calledName(ctx, user) })
	u := desk.Utterance{
		Inbox: row.ID, At: row.ReceivedAt, Place: place, Team: me.Team, Thread: ev.thread(), TS: ev.TS, Edited: ev.Edited.TS,
		Text:  withFiles(text, ev.Files),
		Start: place.DM || ev.Type == "app_mention" || mentions(ev.Text, me.User),
		Halt:  saysStop(text),
		Anew:  place.DM && ev.ThreadTS == "" && startsAnew(text),
	}
	return u, nil
}

func mentions(text, user string) bool {
	return strings.Contains(text, "<@"+user+">") || strings.Contains(text, "<@"+user+"|")
}

// nameFor is what the model calls somebody.
func nameFor(who approvers.Identity) string {
	if who.Name != "" {
		return name(who.Name)
	}
	return who.ID.User()
}

// calledName is a mentioned person's name. A mention that can't be resolved is no reason to lose the message.
func (b *Bot) calledName(ctx context.Context, user string) string {
	who, err := b.who(ctx, user, false)
	if err != nil || who.Name == "" {
		return user
	}
	return who.Name
}
