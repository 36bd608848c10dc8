package bot

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// grant draws a permission for later calls: what may run without asking, by whose leave, how much is left of it, and how to end it.
func (s scene) grant() *page {
	p := new(page)
	g := *s.Grant
	if g.State == approvers.GrantLive && !s.Now.Before(g.Until) {
		g.State, g.ClosedAt = approvers.GrantExpired, g.Until // its end is recorded in a moment
	}
	switch {
	case g.State == approvers.GrantLive:
		p.para(s.grantLine(g), s.bounds(g), left(g), s.stalled())
		p.buttons("", s.revoke(g))
		p.small("What goes beyond this waits for approval as before, and so does what is riskier, needs more than one person, or is asked for by whoever allowed it.")
	case g.State == approvers.GrantOffered && s.Now.Before(g.Until):
		s.offer(p, g)
	case g.OfferedTo != "" && g.By == "":
		p.para(s.proved(g), s.grantEnd(g))
	default:
		p.para(s.grantLine(g), s.grantEnd(g))
	}
	return p
}

// revoke is the button that takes a permission back.
func (s scene) revoke(g approvers.Grant) slack.BlockElement {
	again := confirm("Take it back?", "From now on such calls wait for approval again. What is running already is not stopped.", "Revoke", "Keep it", slack.StyleDanger)
	return button(actRevoke, "Revoke", s.mark(g.ID), slack.StyleDefault).WithConfirm(again)
}

// grantLine says who allowed what, and for how long.
func (s scene) grantLine(g approvers.Grant) *prose {
	p := say("🎟️ ").person(g.By, g.Name).say(" (" + s.title(g.Role) + ") allowed ").strong(plural(g.Uses, "more call") + " of " + name(g.Tool)).
		say(" to run without asking, ")
	if g.Conversation == "" {
		p.say("for everybody who asks the agent " + name(g.Agent) + ", in all of its conversations")
	} else {
		p.say("for everybody who asks in this conversation").also(s.where(g))
	}
	return p.say(", until ").at(g.Until, dayTime).say(".")
}

// where names the conversation for those who see the grant elsewhere.
func (s scene) where(g approvers.Grant) *prose {
	p := new(prose)
	if !s.ownCopy() || s.Conversation.DM || s.Conversation.Name == "" {
		return p
	}
	return p.say(" in ").strong("#" + name(s.Conversation.Name))
}

// bounds says which calls it is for.
func (s scene) bounds(g approvers.Grant) *prose {
	var parts []string
	for i, b := range g.Bounds {
		switch {
		case i == maxBoundsTold:
			parts = append(parts, fmt.Sprintf("and %d more", len(g.Bounds)-i))
		case i > maxBoundsTold:
		case b.AtMost != nil:
			parts = append(parts, name(b.Arg)+" from 0 to "+name(string(b.AtMost)))
		case len(b.Equal) == 0:
			parts = append(parts, "no "+name(b.Arg))
		default:
			parts = append(parts, name(b.Arg)+" "+boundShown(b, g.Secrets))
		}
	}
	p := new(prose)
	if len(parts) > 0 {
		p.say("Only with ").strong(strings.Join(parts, ", ")).say(". ")
	}
	if free := g.Free(); len(free) > 0 {
		p.say(argumentList(free) + " may be anything.")
	}
	return p
}

// boundShown is a value that a grant fixes, as it is shown.
func boundShown(b approvers.Bound, secrets []string) string {
	if approvers.HoldsSecret(secrets, b.Arg) {
		return masked(b.Equal)
	}
	return short(Visible(string(b.Equal)), maxBoundShown)
}

// argumentList names arguments, and counts what is too many.
func argumentList(args []string) string {
	shown := args[:min(len(args), maxBoundsTold)]
	text := make([]string, len(shown))
	for i, a := range shown {
		text[i] = name(a)
	}
	if rest := len(args) - len(shown); rest > 0 {
		text = append(text, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(text, ", ")
}

func left(g approvers.Grant) *prose {
	return new(prose).strong(fmt.Sprintf("%d of %d left.", g.Left, g.Uses))
}

// stalled says why nothing can run under it although it is in force.
func (s scene) stalled() *prose {
	if s.Stalled == "" {
		return new(prose)
	}
	return say("⚠️ Nothing can run under it as things are: " + clip(Visible(s.Stalled), maxNote) + ".")
}

// grantEnd says how it ended.
func (s scene) grantEnd(g approvers.Grant) *prose {
	used := g.Uses - g.Left
	ran := map[bool]string{true: "It was not used.", false: plural(used, "call") + " ran under it."}[used == 0]
	by := func(sign, did string) *prose {
		return say(sign+" ").strong(did).say(" by ").person(g.ClosedBy, g.ClosedName).say(", ").at(g.ClosedAt, dayTime).say(". ")
	}
	switch g.State {
	case approvers.GrantUsed:
		return say("✔️ ").strong("Used up").say(", ").at(g.ClosedAt, dayTime).say(". Such calls wait for approval again.")
	case approvers.GrantRevoked:
		return by("↩️", "Taken back").say(ran + " Such calls wait for approval again.")
	case approvers.GrantReplaced:
		return by("🔁", "Replaced by a newer permission").say(ran)
	case approvers.GrantDeclined:
		return by("✋", "Declined").say("Such calls wait for approval, as before.")
	}
	if g.By == "" {
		return say("⌛ ").strong("Nobody accepted").say(" by ").at(g.Until, dayTime).say(". Such calls wait for approval, as before.")
	}
	return say("⌛ ").strong("Its time is over").say(", ").at(g.ClosedAt, dayTime).say(". " + ran + " Such calls wait for approval again.")
}

// proved says what an offer comes from.
func (s scene) proved(g approvers.Grant) *prose {
	p := say("🎟️ ").strong(name(g.Tool) + " was approved " + times(g.Row) + " in a row").say(" as it was asked for, and went well each time. Approved by ")
	for i, who := range g.Approved {
		if i == maxPeopleTold {
			p.say(fmt.Sprintf(" and %d more", len(g.Approved)-i))
			break
		}
		if i > 0 {
			p.say(", ")
		}
		p.person(who.ID, who.Name)
	}
	return p.say(".")
}

// offer asks whether such calls may run without asking for a while.
func (s scene) offer(p *page, g approvers.Grant) {
	what := fmt.Sprintf("Allow up to %s of it to run without asking, for %s?", plural(g.Uses, "such call"), lasting(g.Within))
	p.para(s.proved(g), new(prose).strong(what), s.bounds(g),
		say("It would hold for everybody who asks the agent "+name(g.Agent)+", in all of its conversations, and can be taken back at any time."),
		say("⏳ Nothing changes unless somebody in the role ").strong(s.title(g.OfferedTo)).say(" accepts. This offer ends ").at(g.Until, dayTime).say("."))
	again := confirm("Allow this?", clip(what, maxConfirm-100)+"\n\nFrom the click on, in your name.", "Accept", "Not yet", slack.StylePrimary)
	p.buttons("", button(actAccept, "Accept", s.mark(g.ID), slack.StyleDefault).WithConfirm(again), button(actDecline, "Decline", s.mark(g.ID), slack.StyleDefault))
	p.small("What goes beyond this waits for approval as before, and so does what is riskier, needs more than one person, or is asked for by whoever accepts.")
}

// underGrant says by whose permission a call ran, and how much was left of it then.
func (s scene) underGrant(g approvers.Grant, e approvers.Execution) *prose {
	return say("Under the permission of ").person(g.By, g.Name).say(fmt.Sprintf(" (%s), %d of %d left. ", s.title(g.Role), g.Uses-e.GrantUse, g.Uses))
}

// allowsMore reports whether somebody who decides here may allow more calls like this.
func (s scene) allowsMore(r approvers.Request) bool {
	return r.Grantable(approvers.Deciding{Policy: s.Policy, Now: s.Now})
}

// andMore adds the button to allow more to others, where the whole call is before whoever clicks it.
func (s scene) andMore(r approvers.Request, whole bool, row ...slack.BlockElement) []slack.BlockElement {
	if !whole || !s.allowsMore(r) {
		return row
	}
	return append(slices.Clip(row), button(actAllow, "Allow more…", s.mark(r.ID), slack.StyleDefault))
}

// lasting is a length of time as people say it: "1 hour 30 minutes".
func lasting(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		long time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := d / unit.long; n > 0 {
			parts = append(parts, plural(int(n), unit.name))
			d -= n * unit.long
		}
	}
	return strings.Join(parts, " ")
}
