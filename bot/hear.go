package bot

import (
	"context"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

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
	here := whisper{user: user, channel: e.Event.channelID(), thread: e.Event.ThreadTS}
	// A mention comes twice, as a mention and as a message of the channel. Whoever has to be told something is told it once.
	told := u.Place.DM || e.Event.Type == "app_mention"
	if u.Text == "" {
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
	if heard.Turn != "" && !heard.Queued && !heard.Duplicate && u.Thread != "" {
		b.thinking(ctx, u)
	}
	return nil
}

// thinking shows in the thread that the agent works on it. Slack takes it away with the first reply, or after two minutes; where it can't be
// shown, nothing is lost.
func (b *Bot) thinking(ctx context.Context, u desk.Utterance) {
	err := b.api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
		ChannelID: u.Place.Channel, ThreadTS: u.Thread, Status: "is thinking…",
	})
	if err != nil {
		b.Log.Debug("no status could be shown", "error", err)
	}
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
	thread := ev.ThreadTS
	if thread == "" && !place.DM {
		thread = ev.TS
	}
	text := readableText(ev.Text, me.User, func(user string) string { return b.calledName(ctx, user) })
	u := desk.Utterance{
		Inbox: row.ID, At: row.ReceivedAt, Place: place, Team: me.Team, Thread: thread, TS: ev.TS,
		Text:  withFiles(text, ev),
		Start: place.DM || ev.Type == "app_mention" || mentions(ev.Text, me.User),
		Anew:  place.DM && ev.ThreadTS == "" && startsAnew(text),
	}
	return u, nil
}

func mentions(text, user string) bool {
	return strings.Contains(text, "<@"+user+">") || strings.Contains(text, "<@"+user+"|")
}

// withFiles says in words that files came along, which the agent can't read.
func withFiles(text string, e event) string {
	if len(e.Files) == 0 {
		return text
	}
	names := make([]string, len(e.Files))
	for i, f := range e.Files {
		names[i] = f.Name
	}
	return strings.TrimSpace(fmt.Sprintf("%s\n(attached, and not readable for you: %s)", text, strings.Join(names, ", ")))
}

// calledName is a mentioned person's name. A mention that can't be resolved is no reason to lose the message.
func (b *Bot) calledName(ctx context.Context, user string) string {
	who, err := b.who(ctx, user, false)
	if err != nil || who.Name == "" {
		return user
	}
	return who.Name
}
