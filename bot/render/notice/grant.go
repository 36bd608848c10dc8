package notice

import (
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/bot/slackapi"
	"countersign/store"
)

// grantMessage is the message about a grant, with the buttons to end or accept the grant.
type grantMessage struct {
	wording.Titles
	wording.Version
	grant        approvers.Grant
	stalled      string // why no call can run under the grant now
	conversation store.Conversation
	now          time.Time
}

// Grant draws the message about a grant.
func Grant(v wording.View) *block.Builder { return newGrantMessage(v).draw() }

func newGrantMessage(v wording.View) grantMessage {
	return grantMessage{Titles: wording.Titles{Policy: v.Policy}, Version: v.Version(), grant: *v.Grant, stalled: v.Stalled, conversation: v.Conversation, now: v.Now}
}

// draw draws a grant: which calls may run without approval, who gave the grant, how many calls are left, and how to
// end the grant.
func (m grantMessage) draw() *block.Builder {
	p := new(block.Builder)
	g := m.grant
	if g.State == approvers.GrantLive && !m.now.Before(g.Until) {
		g.State, g.ClosedAt = approvers.GrantExpired, g.Until // the grant has just ended, and the workflow has not recorded it yet
	}
	switch {
	case g.State == approvers.GrantLive:
		p.Para(m.grantLine(g), wording.Bounds(g), wording.Left(g), stallReason(m.stalled))
		p.Buttons("", m.Revoke(g))
		p.Small("All other calls still wait for approval, and so do calls that the person who allowed this asks for.")
	case g.State == approvers.GrantOffered && m.now.Before(g.Until):
		m.offer(p, g)
	case g.OfferedTo != "" && g.By == "":
		p.Para(proved(g), grantEnd(g))
	default:
		p.Para(m.grantLine(g), grantEnd(g))
	}
	return p
}

// grantLine returns one line that says who allowed the calls, how many, and for how long.
func (m grantMessage) grantLine(g approvers.Grant) *block.RichText {
	p := block.Say("🎟️ ").Person(g.By, g.Name).Say(" (" + m.Title(g.Role) + ") allowed ").Strong(block.Plural(g.Uses, "more call") + " of " + block.Name(g.Tool)).
		Say(" to run without asking, ")
	if approvers.IsCallerScope(g.Conversation) {
		p.Say("for " + wording.GrantedTo(g))
	} else if g.Conversation == "" {
		p.Say("for everybody who asks the agent " + block.Name(g.Agent) + ", in all of its conversations")
	} else {
		p.Say("for everybody who asks in this conversation").Add(m.grantConversation(g))
	}
	return p.Say(", until ").At(g.Until, block.DayTime).Say(".")
}

// grantConversation names the grant's conversation, for readers who see the grant in another place.
func (m grantMessage) grantConversation(g approvers.Grant) *block.RichText {
	p := new(block.RichText)
	if !m.OwnCopy() || m.conversation.DM || m.conversation.Name == "" {
		return p
	}
	return p.Say(" in ").Strong("#" + block.Name(m.conversation.Name))
}

// stallReason explains why no call can run under a grant that is in force.
func stallReason(why string) *block.RichText {
	if why == "" {
		return new(block.RichText)
	}
	return block.Say("⚠️ No call can use it now: " + block.Clip(block.Visible(why), block.MaxNote) + ".")
}

// grantEnd describes how the grant ended.
func grantEnd(g approvers.Grant) *block.RichText {
	used := g.Uses - g.Left
	ran := map[bool]string{true: "It was not used.", false: block.Plural(used, "call") + " ran under it."}[used == 0]
	by := func(sign, did string) *block.RichText {
		return block.Say(sign+" ").Strong(did).Say(" by ").Person(g.ClosedBy, g.ClosedName).Say(", ").At(g.ClosedAt, block.DayTime).Say(". ")
	}
	switch g.State {
	case approvers.GrantUsed:
		return block.Say("✔️ ").Strong("Used up").Say(", ").At(g.ClosedAt, block.DayTime).Say(". Such calls wait for approval again.")
	case approvers.GrantRevoked:
		return by("↩️", "Revoked").Say(ran + " Such calls wait for approval again.")
	case approvers.GrantReplaced:
		return by("🔁", "Replaced by a newer grant").Say(ran)
	case approvers.GrantDeclined:
		return by("✋", "Declined").Say("Such calls wait for approval, as before.")
	}
	if g.By == "" {
		return block.Say("⌛ ").Strong("Nobody accepted").Say(" by ").At(g.Until, block.DayTime).Say(". Such calls wait for approval, as before.")
	}
	return block.Say("⌛ ").Strong("Expired").Say(", ").At(g.ClosedAt, block.DayTime).Say(". " + ran + " Such calls wait for approval again.")
}

// proved describes which earlier approvals led to an offer.
func proved(g approvers.Grant) *block.RichText {
	p := block.Say("🎟️ ").Strong(block.Name(g.Tool) + " was approved " + times(g.Row) + " in a row").Say(" without changes, and succeeded each time. Approved by ")
	for i, who := range g.Approved {
		if i == block.MaxPeopleTold {
			p.Say(fmt.Sprintf(" and %d more", len(g.Approved)-i))
			break
		}
		if i > 0 {
			p.Say(", ")
		}
		p.Person(who.ID, who.Name)
	}
	return p.Say(".")
}

// offer asks whether calls to the grant's tool may run without approval for a while.
func (m grantMessage) offer(p *block.Builder, g approvers.Grant) {
	what := fmt.Sprintf("Allow up to %s to run without asking, for %s?", block.Plural(g.Uses, "such call"), block.Period(g.Within))
	p.Para(proved(g), new(block.RichText).Strong(what), wording.Bounds(g),
		block.Say("For everybody who asks the agent "+block.Name(g.Agent)+", in all of its conversations. The grant can be revoked at any time."),
		block.Say("⏳ Nothing changes unless ").Strong(m.Title(g.OfferedTo)).Say(" accepts by ").At(g.Until, block.DayTime).Say("."))
	again := block.Confirm("Allow this?", block.Clip(what, slackapi.MaxConfirm-100)+"\n\nThis starts now, in your name.", "Accept", "Not yet", slack.StylePrimary)
	accept := block.Button(control.ActAccept, "Accept", m.Token(g.ID), slack.StyleDefault).WithConfirm(again)
	p.Buttons("", accept, block.Button(control.ActDecline, "Decline", m.Token(g.ID), slack.StyleDefault))
	p.Small("All other calls still wait for approval, and so do calls that the person who accepts asks for.")
}
