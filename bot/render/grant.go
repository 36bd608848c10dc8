package render

import (
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/slackapi"
	"countersign/store"
)

// grantMessage is the message about a grant, with the buttons to end or accept the grant.
type grantMessage struct {
	titles
	version
	grant        approvers.Grant
	stalled      string // why no call can run under the grant now
	conversation store.Conversation
	now          time.Time
}

// grantNotice draws the message about a grant.
func grantNotice(v View) *BlockBuilder { return newGrantMessage(v).draw() }

func newGrantMessage(v View) grantMessage {
	return grantMessage{titles: titles{v.Policy}, version: v.version(), grant: *v.Grant, stalled: v.Stalled, conversation: v.Conversation, now: v.Now}
}

// draw draws a grant: which calls may run without approval, who gave the grant, how many calls are left, and how to
// end the grant.
func (m grantMessage) draw() *BlockBuilder {
	p := new(BlockBuilder)
	g := m.grant
	if g.State == approvers.GrantLive && !m.now.Before(g.Until) {
		g.State, g.ClosedAt = approvers.GrantExpired, g.Until // the grant has just ended, and the workflow has not recorded it yet
	}
	switch {
	case g.State == approvers.GrantLive:
		p.Para(m.grantLine(g), bounds(g), left(g), stallReason(m.stalled))
		p.buttons("", m.revoke(g))
		p.Small("Everything else still waits for approval, also what the person who allowed this asks for.")
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
func (m grantMessage) grantLine(g approvers.Grant) *RichText {
	p := Say("🎟️ ").Person(g.By, g.Name).Say(" (" + m.title(g.Role) + ") allowed ").Strong(Plural(g.Uses, "more call") + " of " + Name(g.Tool)).
		Say(" to run without asking, ")
	if approvers.IsCallerScope(g.Conversation) {
		p.Say("for " + grantedTo(g))
	} else if g.Conversation == "" {
		p.Say("for everybody who asks the agent " + Name(g.Agent) + ", in all of its conversations")
	} else {
		p.Say("for everybody who asks in this conversation").add(m.grantConversation(g))
	}
	return p.Say(", until ").At(g.Until, DayTime).Say(".")
}

// grantConversation names the grant's conversation, for readers who see the grant in another place.
func (m grantMessage) grantConversation(g approvers.Grant) *RichText {
	p := new(RichText)
	if !m.ownCopy() || m.conversation.DM || m.conversation.Name == "" {
		return p
	}
	return p.Say(" in ").Strong("#" + Name(m.conversation.Name))
}

// stallReason explains why no call can run under a grant that is in force.
func stallReason(why string) *RichText {
	if why == "" {
		return new(RichText)
	}
	return Say("⚠️ No call can use it now: " + Clip(Visible(why), MaxNote) + ".")
}

// grantEnd describes how the grant ended.
func grantEnd(g approvers.Grant) *RichText {
	used := g.Uses - g.Left
	ran := map[bool]string{true: "It was not used.", false: Plural(used, "call") + " ran under it."}[used == 0]
	by := func(sign, did string) *RichText {
		return Say(sign+" ").Strong(did).Say(" by ").Person(g.ClosedBy, g.ClosedName).Say(", ").At(g.ClosedAt, DayTime).Say(". ")
	}
	switch g.State {
	case approvers.GrantUsed:
		return Say("✔️ ").Strong("Used up").Say(", ").At(g.ClosedAt, DayTime).Say(". Such calls wait for approval again.")
	case approvers.GrantRevoked:
		return by("↩️", "Taken back").Say(ran + " Such calls wait for approval again.")
	case approvers.GrantReplaced:
		return by("🔁", "Replaced by a newer permission").Say(ran)
	case approvers.GrantDeclined:
		return by("✋", "Declined").Say("Such calls wait for approval, as before.")
	}
	if g.By == "" {
		return Say("⌛ ").Strong("Nobody accepted").Say(" by ").At(g.Until, DayTime).Say(". Such calls wait for approval, as before.")
	}
	return Say("⌛ ").Strong("Its time is over").Say(", ").At(g.ClosedAt, DayTime).Say(". " + ran + " Such calls wait for approval again.")
}

// proved describes which earlier approvals led to an offer.
func proved(g approvers.Grant) *RichText {
	p := Say("🎟️ ").Strong(Name(g.Tool) + " was approved " + times(g.Row) + " in a row").Say(" without changes, and succeeded each time. Approved by ")
	for i, who := range g.Approved {
		if i == maxPeopleTold {
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

// offer asks whether calls of the grant's tool may run without approval for a while.
func (m grantMessage) offer(p *BlockBuilder, g approvers.Grant) {
	what := fmt.Sprintf("Allow up to %s to run without asking, for %s?", Plural(g.Uses, "such call"), formatPeriod(g.Within))
	p.Para(proved(g), new(RichText).Strong(what), bounds(g),
		Say("For everybody who asks the agent "+Name(g.Agent)+", in all of its conversations. It can be taken back at any time."),
		Say("⏳ Nothing changes unless ").Strong(m.title(g.OfferedTo)).Say(" accepts by ").At(g.Until, DayTime).Say("."))
	again := confirm("Allow this?", Clip(what, slackapi.MaxConfirm-100)+"\n\nThis starts now, in your name.", "Accept", "Not yet", slack.StylePrimary)
	p.buttons("", button(ActAccept, "Accept", m.token(g.ID), slack.StyleDefault).WithConfirm(again), button(ActDecline, "Decline", m.token(g.ID), slack.StyleDefault))
	p.Small("Everything else still waits for approval, also what the person who accepts asks for.")
}
