package render

import (
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// WaitingList draws a person's list of waiting items.
type WaitingList struct {
	Policy       *approvers.Policy
	WorkspaceURL string
	Who          approvers.Identity
	Again        int // number of messages being reposted
}

// DecideLine returns the line about an item that needs the person's decision.
func (l *WaitingList) DecideLine(u view.PendingItem, conv store.Conversation, messages []store.OutboxMessage) *RichText {
	var line *RichText
	switch {
	case u.Execution != nil:
		line = Say("❓ Did this happen? ").Strong(Clip(whatHappens(u.Call.Preview, u.Call.Tool), maxCallText))
	case u.Request == nil:
		q := u.Call.ModelQuestion
		line = Say("💬 The agent asks you: ").Strong(Clip(OneLine(q.Question), maxCallText)).Say(", until ").At(q.ExpiresAt, DayTime)
		return l.withLink(line, conv, messages, store.ToConversation)
	default:
		line = Say("✋ ").Strong(Clip(whatHappens(u.Request.Preview, u.Request.Tool), maxCallText)).Say(", asked for by ").
			Person(u.Request.Facts.Asker, u.Request.Facts.AskerName).Say(", until ").At(u.Request.ExpiresAt, DayTime)
	}
	return l.withLink(line, conv, messages, store.ToUser, store.ToChannel, store.ToConversation)
}

// AskedLine returns the line about the person's own request.
func (l *WaitingList) AskedLine(u view.PendingItem, conv store.Conversation, messages []store.OutboxMessage) *RichText {
	r := *u.Request
	line := Say("✋ ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxCallText))
	if r.State == approvers.Approved {
		return l.withLink(line.Say(", approved and about to run"), conv, messages, store.ToConversation, store.ToUser)
	}
	line.Say(", waits for "+titles{l.Policy}.waitsFor(r)+" until ").At(r.ExpiresAt, DayTime)
	return l.withLink(line, conv, messages, store.ToConversation, store.ToUser)
}

// withLink adds a link to the message in Slack.
func (l *WaitingList) withLink(line *RichText, conv store.Conversation, messages []store.OutboxMessage, places ...string) *RichText {
	if link := l.link(conv, messages, places...); link != "" {
		return line.Say(" · ").link(link, "See it")
	}
	return line
}

// link returns the address of the first message that the person can open, in the order of places. If there is no such
// message, link returns "".
func (l *WaitingList) link(conv store.Conversation, messages []store.OutboxMessage, places ...string) string {
	for _, place := range places {
		for _, s := range messages {
			shown := s.TS != "" && (s.State == store.OutboxShown || s.State == store.OutboxWanted)
			if !shown || !strings.HasPrefix(s.To, place) || place == store.ToUser && s.To != place+l.Who.ID.User() {
				continue
			}
			thread := ""
			if place == store.ToConversation {
				thread = conv.Thread
			}
			if link := workspace(l.WorkspaceURL).permalink(s.Channel, s.TS, thread); link != "" {
				return link
			}
		}
	}
	return ""
}

// If more is set, UnreadNotes returns the note that some items were not examined.
func (l *WaitingList) UnreadNotes(more bool) []*RichText {
	if !more {
		return nil
	}
	return []*RichText{Say("Too much waits to list all of it. These are the oldest.")}
}

// GrantLine returns one line of a list of grants. The parameter mine says whether the reader can revoke the grant.
func GrantLine(g view.ListedGrant, policy *approvers.Policy, workspaceURL string, mine bool) *RichText {
	p := Say("🎟️ ").Strong(Name(g.Grant.Tool))
	switch {
	case approvers.IsCallerScope(g.Grant.Conversation):
		p.Say(" for " + grantedTo(g.Grant))
	case g.Grant.Conversation == "":
		p.Say(" for everybody who asks the agent " + Name(g.Grant.Agent))
	case g.Conversation.DM:
		p.Say(" in a direct message to the bot")
	default:
		p.Say(" in ").Strong("#" + Name(g.Conversation.Name))
	}
	p.Say(": allowed by ").Person(g.Grant.By, g.Grant.Name).Say(" ("+titles{policy}.title(g.Grant.Role)+"), ").add(left(g.Grant)).
		Say(" Until ").At(g.Grant.Until, DayTime).Say(". ").add(bounds(g.Grant))
	if mine && g.Own != nil {
		if link := workspace(workspaceURL).permalink(g.Own.Channel, g.Own.TS, ""); link != "" {
			p.Say(" ").link(link, "Take it back here")
		}
	}
	return p
}
