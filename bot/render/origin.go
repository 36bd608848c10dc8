package render

import (
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// workspace is the address of a Slack workspace. It is empty if the address is not known.
type workspace string

// permalink returns the address of a message, or "" if the workspace's address is not known.
func (w workspace) permalink(channel, ts, thread string) string {
	if w == "" || channel == "" || ts == "" {
		return ""
	}
	link := string(w) + "archives/" + channel + "/p" + strings.ReplaceAll(ts, ".", "")
	if thread != "" && thread != ts {
		link += "?thread_ts=" + thread + "&cid=" + channel
	}
	return link
}

// cardFor returns the address of one of the cards that the person can open. This is the person's own copy or, without
// one, a card in a channel.
func (w workspace) cardFor(user string, cards []store.OutboxMessage) string {
	link := ""
	for _, card := range cards {
		switch {
		case card.To == store.ToUser+user:
			return w.permalink(card.Channel, card.TS, "")
		case strings.HasPrefix(card.To, store.ToChannel):
			link = w.permalink(card.Channel, card.TS, "")
		}
	}
	return link
}

// cardLink returns the address of the first card in a channel. A card in a direct message has no such address, because
// only its owner can open the card.
func (w workspace) cardLink(cards []store.OutboxMessage) string {
	for _, card := range cards {
		if (card.Kind == store.OutboxCard || card.Kind == store.OutboxBundle) && strings.HasPrefix(card.To, store.ToChannel) {
			return w.permalink(card.Channel, card.TS, "")
		}
	}
	return ""
}

// origin is the conversation in which somebody asked for a call.
type origin struct {
	workspace
	conversation store.Conversation
}

// newOrigin returns the origin of calls in a conversation.
func newOrigin(workspaceURL string, c store.Conversation) origin {
	return origin{workspace: workspace(workspaceURL), conversation: c}
}

// requester draws who asked, where, and in which words. The parameter most is the maximum length of the quotation, in
// characters.
func (o origin) requester(p *BlockBuilder, r approvers.Request, most int) {
	said := maskSecrets(r.Facts.Quote, r.Args, r.Secrets)
	if most < maxQuote {
		said = OneLine(said)
	} else {
		said = Visible(said)
	}
	if r.Facts.Caller != nil {
		askedByCaller(p, r, said, most)
		return
	}
	line := Say("💬 ").Person(r.Facts.Asker, r.Facts.AskerName)
	if n := len(r.Facts.Requesters) - 1; n == 1 {
		line.Say(" and 1 other person")
	} else if n > 1 {
		line.Say(fmt.Sprintf(" and %d other people", n))
	}
	switch {
	case o.conversation.DM:
		line.Say(" in a direct message")
	case o.conversation.Name != "":
		line.Say(" in ").link(o.permalink(o.conversation.Channel, r.Facts.MessageTS, o.conversation.Thread), "#"+Name(o.conversation.Name))
	}
	p.Para(line.Say(":"))
	p.quote(Clip(said, most))
	messageChange(p, r)
}

// askedShort returns one line that says who asked, where, and in which words.
func (o origin) askedShort(r approvers.Request) *RichText {
	line := Say("💬 ").Person(r.Facts.Asker, r.Facts.AskerName)
	if r.Facts.Caller != nil {
		line = callerLine(*r.Facts.Caller).Say(". ").add(runsItself(r.Facts.Caller))
	}
	switch {
	case o.conversation.DM:
		line.Say(" in a direct message")
	case o.conversation.Name != "":
		line.Say(" in #" + Name(o.conversation.Name))
	}
	if quote := Clip(OneLine(maskSecrets(r.Facts.Quote, r.Args, r.Secrets)), maxBundleNote); quote != "" {
		line.Say(": ").soft("“" + quote + "”")
	}
	return line
}

// earlierLink returns the address of the question about the earlier run. earlierLink prefers the question with the same
// recipient as this card, then a question in a channel, then the question in the thread.
func (o origin) earlierLink(to string, earlier []store.OutboxMessage) string {
	link := ""
	for _, m := range earlier {
		switch {
		case m.To == to:
			return o.permalink(m.Channel, m.TS, "")
		case strings.HasPrefix(m.To, store.ToChannel):
			link = o.permalink(m.Channel, m.TS, "")
		case strings.HasPrefix(m.To, store.ToConversation) && !o.conversation.DM && link == "":
			link = o.permalink(m.Channel, m.TS, o.conversation.Thread)
		}
	}
	return link
}

// messageChange draws, on a card, how a person changed the message that led to the call, after the agent had read it.
// The arguments did not change with the message.
func messageChange(p *BlockBuilder, r approvers.Request) {
	w := r.Facts.MessageEdit
	switch {
	case w == nil:
	case w.Deleted:
		p.Para(Say("🗑️ ").Strong("Deleted since").Say(", ").At(w.At, DayTime).Say(". The call is as it was, and waits until it is decided or withdrawn."))
	default:
		p.Para(Say("✏️ ").Strong("Edited since").Say(", ").At(w.At, DayTime).Say(". The call was made from the words above; they now read:"))
		p.quote(Clip(Visible(maskSecrets(w.Text, r.Args, r.Secrets)), maxQuote/2)) // the words before and after the edit must both fit on the largest card
	}
}
