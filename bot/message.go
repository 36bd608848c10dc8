package bot

import (
	"context"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/directory"
	"countersign/bot/render"
	"countersign/store"
)

// receiveMessage passes a person's message to the workflow.
func (b *Bot) receiveMessage(ctx context.Context, row store.Inbox, e envelope) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	user := e.Event.userID()
	if user == me.User {
		return b.Workflow.Done(ctx, row.ID, "the bot's own message")
	}
	who, err := b.users.Who(ctx, user, false)
	if err != nil {
		return err
	}
	if who.Bot {
		return b.Workflow.Done(ctx, row.ID, "another bot's message")
	}
	u, err := b.incomingMessage(ctx, me, row, e)
	if err != nil {
		return err
	}
	u.Who = who
	u.Attached = strings.TrimSpace(b.attached(ctx, nameFor(who), e.Event.Files) + "\n\n" + b.beside(ctx, e.Event))
	here := ephemeralReply{user: user, channel: e.Event.channelID(), thread: e.Event.ThreadTS}
	// A mention is delivered twice, as a mention and as a message of the channel. A notice is sent for one of them only.
	told := u.Channel.DM || e.Event.Type == "app_mention"
	if u.Text == "" && u.Edited == "" {
		if err := b.Workflow.Done(ctx, row.ID, "no words in it"); err != nil {
			return err
		}
		if told {
			b.replyEphemeral(ctx, here, render.Say("There was nothing in your message for me to work on. Write what you need in the same message as the mention, for example: “refund order ORD-123”."))
		}
		return nil
	}
	heard, err := b.Workflow.ReceiveMessage(ctx, u)
	if err != nil {
		return err
	}
	if heard.Denied != nil && !heard.Ignored && told {
		b.replyEphemeral(ctx, here, render.DeniedAsker(heard.Denied, u.Channel))
	}
	if heard.Turn != "" && !heard.Halted && !heard.Queued && !heard.Paused && !heard.Duplicate {
		b.showStatus(ctx, heard.Turn, false)
	}
	return nil
}

// incomingMessage converts an event to the workflow's form.
func (b *Bot) incomingMessage(ctx context.Context, me directory.Self, row store.Inbox, e envelope) (workflow.IncomingMessage, error) {
	ev := e.Event
	place := approvers.ChannelRef{Channel: ev.channelID(), DM: ev.dm()}
	if !place.DM {
		name, err := b.channels.Name(ctx, place.Channel)
		if err != nil {
			return workflow.IncomingMessage{}, err
		}
		place.Name = name
	}
	text := readableText(ev.Text, me.User, func(user string) string { return b.calledName(ctx, user) })
	u := workflow.IncomingMessage{
		Inbox: row.ID, At: row.ReceivedAt, Channel: place, Team: me.Team, Thread: ev.thread(), TS: ev.TS, Edited: ev.Edited.TS,
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

// nameFor returns the name that the model uses for a person.
func nameFor(who approvers.Identity) string {
	if who.Name != "" {
		return render.Name(who.Name)
	}
	return who.ID.User()
}

// calledName returns the name of a mentioned person. A mention that can't be resolved does not lose the message.
func (b *Bot) calledName(ctx context.Context, user string) string {
	who, err := b.users.Who(ctx, user, false)
	if err != nil || who.Name == "" {
		return user
	}
	return who.Name
}
