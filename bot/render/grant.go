package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/slackapi"
)

// grant draws a grant: which calls may run without approval, who allowed it, how many are left, and how to end it.
func (v View) grant() *BlockBuilder {
	p := new(BlockBuilder)
	g := *v.Grant
	if g.State == approvers.GrantLive && !v.Now.Before(g.Until) {
		g.State, g.ClosedAt = approvers.GrantExpired, g.Until // the grant's end is recorded soon
	}
	switch {
	case g.State == approvers.GrantLive:
		p.Para(v.grantLine(g), v.bounds(g), left(g), v.stalled())
		p.buttons("", v.revoke(g))
		p.Small("What goes beyond this waits for approval as before, and so does what is riskier, needs more than one person, or is asked for by whoever allowed it.")
	case g.State == approvers.GrantOffered && v.Now.Before(g.Until):
		v.offer(p, g)
	case g.OfferedTo != "" && g.By == "":
		p.Para(v.proved(g), v.grantEnd(g))
	default:
		p.Para(v.grantLine(g), v.grantEnd(g))
	}
	return p
}

// revoke returns the button that revokes a grant.
func (v View) revoke(g approvers.Grant) slack.BlockElement {
	again := confirm("Take it back?", "From now on such calls wait for approval again. What is running already is not stopped.", "Revoke", "Keep it", slack.StyleDanger)
	return button(ActRevoke, "Revoke", v.token(g.ID), slack.StyleDefault).WithConfirm(again)
}

// grantLine says who allowed the calls, how many, and for how long.
func (v View) grantLine(g approvers.Grant) *RichText {
	p := Say("🎟️ ").Person(g.By, g.Name).Say(" (" + v.title(g.Role) + ") allowed ").Strong(Plural(g.Uses, "more call") + " of " + Name(g.Tool)).
		Say(" to run without asking, ")
	if g.Conversation == "" {
		p.Say("for everybody who asks the agent " + Name(g.Agent) + ", in all of its conversations")
	} else {
		p.Say("for everybody who asks in this conversation").also(v.where(g))
	}
	return p.Say(", until ").At(g.Until, DayTime).Say(".")
}

// where names the conversation to readers who see the grant elsewhere.
func (v View) where(g approvers.Grant) *RichText {
	p := new(RichText)
	if !v.ownCopy() || v.Conversation.DM || v.Conversation.Name == "" {
		return p
	}
	return p.Say(" in ").Strong("#" + Name(v.Conversation.Name))
}

// bounds says which calls the grant covers.
func (v View) bounds(g approvers.Grant) *RichText {
	var parts []string
	for i, b := range g.Bounds {
		switch {
		case i == maxBoundsTold:
			parts = append(parts, fmt.Sprintf("and %d more", len(g.Bounds)-i))
		case i > maxBoundsTold:
		case b.AtMost != nil:
			parts = append(parts, Name(b.Arg)+" from 0 to "+Name(string(b.AtMost)))
		case len(b.Equal) == 0:
			parts = append(parts, "no "+Name(b.Arg))
		default:
			parts = append(parts, Name(b.Arg)+" "+boundShown(b, g.Secrets))
		}
	}
	p := new(RichText)
	if len(parts) > 0 {
		p.Say("Only with ").Strong(strings.Join(parts, ", ")).Say(". ")
	}
	if free := g.Free(); len(free) > 0 {
		p.Say(ArgumentList(free) + " may be anything.")
	}
	return p
}

// boundShown returns the displayed form of a value that a grant fixes.
func boundShown(b approvers.Bound, secrets []string) string {
	if approvers.HoldsSecret(secrets, b.Arg) {
		return masked(b.Equal)
	}
	return short(Visible(string(b.Equal)), maxBoundShown)
}

// ArgumentList names arguments, and counts those beyond the limit.
func ArgumentList(args []string) string {
	shown := args[:min(len(args), maxBoundsTold)]
	text := make([]string, len(shown))
	for i, a := range shown {
		text[i] = Name(a)
	}
	if rest := len(args) - len(shown); rest > 0 {
		text = append(text, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(text, ", ")
}

func left(g approvers.Grant) *RichText {
	return new(RichText).Strong(fmt.Sprintf("%d of %d left.", g.Left, g.Uses))
}

// stalled says why nothing can run under a grant that is in force.
func (v View) stalled() *RichText {
	if v.Stalled == "" {
		return new(RichText)
	}
	return Say("⚠️ Nothing can run under it as things are: " + Clip(Visible(v.Stalled), MaxNote) + ".")
}

// grantEnd says how the grant ended.
func (v View) grantEnd(g approvers.Grant) *RichText {
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

// proved says which earlier approvals led to an offer.
func (v View) proved(g approvers.Grant) *RichText {
	p := Say("🎟️ ").Strong(Name(g.Tool) + " was approved " + times(g.Row) + " in a row").Say(" as it was asked for, and went well each time. Approved by ")
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

// offer asks whether such calls may run without approval for a while.
func (v View) offer(p *BlockBuilder, g approvers.Grant) {
	what := fmt.Sprintf("Allow up to %s of it to run without asking, for %s?", Plural(g.Uses, "such call"), lasting(g.Within))
	p.Para(v.proved(g), new(RichText).Strong(what), v.bounds(g),
		Say("It would hold for everybody who asks the agent "+Name(g.Agent)+", in all of its conversations, and can be taken back at any time."),
		Say("⏳ Nothing changes unless somebody in the role ").Strong(v.title(g.OfferedTo)).Say(" accepts. This offer ends ").At(g.Until, DayTime).Say("."))
	again := confirm("Allow this?", Clip(what, slackapi.MaxConfirm-100)+"\n\nFrom the click on, in your name.", "Accept", "Not yet", slack.StylePrimary)
	p.buttons("", button(ActAccept, "Accept", v.token(g.ID), slack.StyleDefault).WithConfirm(again), button(ActDecline, "Decline", v.token(g.ID), slack.StyleDefault))
	p.Small("What goes beyond this waits for approval as before, and so does what is riskier, needs more than one person, or is asked for by whoever accepts.")
}

// underGrant says whose grant a call ran under, and how many calls remained at that time.
func (v View) underGrant(g approvers.Grant, e approvers.Execution) *RichText {
	return Say("Under the permission of ").Person(g.By, g.Name).Say(fmt.Sprintf(" (%s), %d of %d left. ", v.title(g.Role), g.Uses-e.GrantUse, g.Uses))
}

// allowsMore reports whether an approver of this request may allow further calls like it.
func (v View) allowsMore(r approvers.Request) bool {
	return r.Grantable(approvers.DecisionContext{Policy: v.Policy, Now: v.Now})
}

// andMore adds the button that allows further calls, if the whole call is shown.
func (v View) andMore(r approvers.Request, whole bool, row ...slack.BlockElement) []slack.BlockElement {
	if !whole || !v.allowsMore(r) {
		return row
	}
	return append(slices.Clip(row), button(ActAllow, "Allow more…", v.token(r.ID), slack.StyleDefault))
}

// lasting formats a duration for people: "1 hour 30 minutes".
func lasting(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		long time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := d / unit.long; n > 0 {
			parts = append(parts, Plural(int(n), unit.name))
			d -= n * unit.long
		}
	}
	return strings.Join(parts, " ")
}

// GrantLine returns one line of a list of grants.
func (v View) GrantLine(g view.ListedGrant, mine bool) *RichText {
	v.Conversation = g.Conversation
	p := Say("🎟️ ").Strong(Name(g.Grant.Tool))
	switch {
	case g.Grant.Conversation == "":
		p.Say(" for everybody who asks the agent " + Name(g.Grant.Agent))
	case g.Conversation.DM:
		p.Say(" in a direct message to the bot")
	default:
		p.Say(" in ").Strong("#" + Name(g.Conversation.Name))
	}
	p.Say(": allowed by ").Person(g.Grant.By, g.Grant.Name).Say(" ("+v.title(g.Grant.Role)+"), ").also(left(g.Grant)).Say(" Until ").At(g.Grant.Until, DayTime).Say(". ").also(v.bounds(g.Grant))
	if mine && g.Own != nil {
		if link := v.permalink(g.Own.Channel, g.Own.TS, ""); link != "" {
			p.Say(" ").link(link, "Take it back here")
		}
	}
	return p
}
