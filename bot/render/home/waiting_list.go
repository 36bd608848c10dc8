package home

import (
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
	"countersign/bot/render/wording"
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
func (l *WaitingList) DecideLine(u view.PendingItem, conv store.Conversation, messages []store.OutboxMessage) *block.RichText {
	var line *block.RichText
	switch {
	case u.Execution != nil:
		line = block.Say("❓ Did this happen? ").Strong(block.Clip(wording.WhatHappens(u.Call.Preview, u.Call.Tool), block.MaxCallText))
	case u.Request == nil:
		q := u.Call.ModelQuestion
		line = block.Say("💬 The agent asks you: ").Strong(block.Clip(block.OneLine(q.Question), block.MaxCallText)).Say(", until ").At(q.ExpiresAt, block.DayTime)
		return l.withLink(line, conv, messages, store.ToConversation)
	default:
		line = block.Say("✋ ").Strong(block.Clip(wording.WhatHappens(u.Request.Preview, u.Request.Tool), block.MaxCallText)).Say(", asked for by ").
			Person(u.Request.Facts.Asker, u.Request.Facts.AskerName).Say(", until ").At(u.Request.ExpiresAt, block.DayTime)
	}
	return l.withLink(line, conv, messages, store.ToUser, store.ToChannel, store.ToConversation)
}

// AskedLine returns the line about the person's own request.
func (l *WaitingList) AskedLine(u view.PendingItem, conv store.Conversation, messages []store.OutboxMessage) *block.RichText {
	r := *u.Request
	line := block.Say("✋ ").Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxCallText))
	if r.State == approvers.Approved {
		return l.withLink(line.Say(", approved and about to run"), conv, messages, store.ToConversation, store.ToUser)
	}
	line.Say(", waits for "+wording.Titles{Policy: l.Policy}.WaitsFor(r)+" until ").At(r.ExpiresAt, block.DayTime)
	return l.withLink(line, conv, messages, store.ToConversation, store.ToUser)
}

// withLink adds a link to the message in Slack.
func (l *WaitingList) withLink(line *block.RichText, conv store.Conversation, messages []store.OutboxMessage, places ...string) *block.RichText {
	if link := l.link(conv, messages, places...); link != "" {
		return line.Say(" · ").Link(link, "See it")
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
			if link := wording.Workspace(l.WorkspaceURL).Permalink(s.Channel, s.TS, thread); link != "" {
				return link
			}
		}
	}
	return ""
}

// UnreadNotes returns the note that some items were not examined, if more is set.
func (l *WaitingList) UnreadNotes(more bool) []*block.RichText {
	if !more {
		return nil
	}
	return []*block.RichText{block.Say("There are too many to list them all. These are the oldest.")}
}

// GrantLine returns one line of a list of grants. The parameter mine says whether the reader can revoke the grant.
func GrantLine(g view.ListedGrant, policy *approvers.Policy, workspaceURL string, mine bool) *block.RichText {
	p := block.Say("🎟️ ").Strong(block.Name(g.Grant.Tool))
	switch {
	case approvers.IsCallerScope(g.Grant.Conversation):
		p.Say(" for " + wording.GrantedTo(g.Grant))
	case g.Grant.Conversation == "":
		p.Say(" for everybody who asks the agent " + block.Name(g.Grant.Agent))
	case g.Conversation.DM:
		p.Say(" in a direct message to the bot")
	default:
		p.Say(" in ").Strong("#" + block.Name(g.Conversation.Name))
	}
	p.Say(": allowed by ").Person(g.Grant.By, g.Grant.Name).Say(" ("+wording.Titles{Policy: policy}.Title(g.Grant.Role)+"), ").Add(wording.Left(g.Grant)).
		Say(" Until ").At(g.Grant.Until, block.DayTime).Say(". ").Add(wording.Bounds(g.Grant))
	if mine && g.Own != nil {
		if link := wording.Workspace(workspaceURL).Permalink(g.Own.Channel, g.Own.TS, ""); link != "" {
			p.Say(" ").Link(link, "Revoke it here")
		}
	}
	return p
}
