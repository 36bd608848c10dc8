package wording

import (
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/store"
)

// Workspace is the address of a Slack workspace. It is empty if the address is not known.
type Workspace string

// Permalink returns the address of a message, or "" if the workspace's address is not known.
func (w Workspace) Permalink(channel, ts, thread string) string {
	if w == "" || channel == "" || ts == "" {
		return ""
	}
	link := string(w) + "archives/" + channel + "/p" + strings.ReplaceAll(ts, ".", "")
	if thread != "" && thread != ts {
		link += "?thread_ts=" + thread + "&cid=" + channel
	}
	return link
}

// CardFor returns the address of one of the cards that the person can open. This is the person's own copy or, without
// one, a card in a channel.
func (w Workspace) CardFor(user string, cards []store.OutboxMessage) string {
	link := ""
	for _, card := range cards {
		switch {
		case card.To == store.ToUser+user:
			return w.Permalink(card.Channel, card.TS, "")
		case strings.HasPrefix(card.To, store.ToChannel):
			link = w.Permalink(card.Channel, card.TS, "")
		}
	}
	return link
}

// CardLink returns the address of the first card in a channel. A card in a direct message has no such address, because
// only its owner can open the card.
func (w Workspace) CardLink(cards []store.OutboxMessage) string {
	for _, card := range cards {
		if (card.Kind == store.OutboxCard || card.Kind == store.OutboxBundle) && strings.HasPrefix(card.To, store.ToChannel) {
			return w.Permalink(card.Channel, card.TS, "")
		}
	}
	return ""
}

// Origin is the conversation in which somebody asked for a call.
type Origin struct {
	Workspace
	conversation store.Conversation
}

// NewOrigin returns the origin of calls in a conversation.
func NewOrigin(workspaceURL string, c store.Conversation) Origin {
	return Origin{Workspace: Workspace(workspaceURL), conversation: c}
}

// Requester draws who asked, where, and in which words. The parameter most is the maximum length of the quotation, in
// characters.
func (o Origin) Requester(p *block.Builder, r approvers.Request, most int) {
	said := argument.MaskSecrets(r.Facts.Quote, r.Args, r.Secrets)
	if most < block.MaxQuote {
		said = block.OneLine(said)
	} else {
		said = block.Visible(said)
	}
	if r.Facts.Caller != nil {
		askedByCaller(p, r, said, most)
		return
	}
	line := block.Say("💬 ").Person(r.Facts.Asker, r.Facts.AskerName)
	if n := len(r.Facts.Requesters) - 1; n == 1 {
		line.Say(" and 1 other person")
	} else if n > 1 {
		line.Say(fmt.Sprintf(" and %d other people", n))
	}
	switch {
	case o.conversation.DM:
		line.Say(" in a direct message")
	case o.conversation.Name != "":
		line.Say(" in ").Link(o.Permalink(o.conversation.Channel, r.Facts.MessageTS, o.conversation.Thread), "#"+block.Name(o.conversation.Name))
	}
	p.Para(line.Say(":"))
	p.Quote(block.Clip(said, most))
	messageChange(p, r)
}

// AskedShort returns one line that says who asked, where, and in which words.
func (o Origin) AskedShort(r approvers.Request) *block.RichText {
	line := block.Say("💬 ").Person(r.Facts.Asker, r.Facts.AskerName)
	if r.Facts.Caller != nil {
		line = callerLine(*r.Facts.Caller).Say(". ").Add(runsItself(r.Facts.Caller))
	}
	switch {
	case o.conversation.DM:
		line.Say(" in a direct message")
	case o.conversation.Name != "":
		line.Say(" in #" + block.Name(o.conversation.Name))
	}
	if quote := block.Clip(block.OneLine(argument.MaskSecrets(r.Facts.Quote, r.Args, r.Secrets)), block.MaxBundleNote); quote != "" {
		line.Say(": ").Soft("“" + quote + "”")
	}
	return line
}

// EarlierLink returns the address of the question about the earlier run. EarlierLink prefers the question with the same
// recipient as this card, then a question in a channel, then the question in the thread.
func (o Origin) EarlierLink(to string, earlier []store.OutboxMessage) string {
	link := ""
	for _, m := range earlier {
		switch {
		case m.To == to:
			return o.Permalink(m.Channel, m.TS, "")
		case strings.HasPrefix(m.To, store.ToChannel):
			link = o.Permalink(m.Channel, m.TS, "")
		case strings.HasPrefix(m.To, store.ToConversation) && !o.conversation.DM && link == "":
			link = o.Permalink(m.Channel, m.TS, o.conversation.Thread)
		}
	}
	return link
}

// messageChange draws, on a card, how a person changed the message that led to the call, after the agent had read it.
// The arguments did not change with the message.
func messageChange(p *block.Builder, r approvers.Request) {
	w := r.Facts.MessageEdit
	switch {
	case w == nil:
	case w.Deleted:
		p.Para(block.Say("🗑️ ").Strong("Deleted later").Say(", ").At(w.At, block.DayTime).Say(". The call did not change, and waits until it is decided or withdrawn."))
	default:
		p.Para(block.Say("✏️ ").Strong("Edited later").Say(", ").At(w.At, block.DayTime).Say(". The call is based on the text above, which now reads:"))
		p.Quote(block.Clip(block.Visible(argument.MaskSecrets(w.Text, r.Args, r.Secrets)), block.MaxQuote/2)) // the words before and after the edit must both fit on the largest card
	}
}
