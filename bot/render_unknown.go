package bot

import (
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/store"
)

// unknown asks people whether a run happened of which nobody knows how it ended.
func (s scene) unknown() drawing {
	e := *s.Execution
	p := new(page)
	what := whatHappens(s.Call.Preview, e.Tool)
	text := maskedText(e.Args, s.Call.Secrets)
	whole := fitsCard(text)
	p.headline("Did this happen?" + found[e.State])
	p.para(new(prose).strong(what))
	if e.State != approvers.ExecutionUnknown {
		s.ran(p, e)
		p.para(s.onceMore())
		return drawing{messages: []message{p.message()}, shows: []store.Shown{{Request: e.Request, Digest: e.Digest, Whole: whole}}}
	}
	p.para(s.lost(e), say("It is not run again by itself. Please look where it would show, then say what you found."))
	s.arguments(p, text, whole)
	if s.Request != nil && !strings.HasPrefix(s.Surface.To, "conversation:") {
		s.asked(p, *s.Request)
	}
	p.para(s.untilTold())
	p.para(s.onceMore())
	s.findings(p, e, what)
	return drawing{messages: []message{p.message()}, shows: []store.Shown{{Request: e.Request, Digest: e.Digest, Whole: whole}}}
}

// found is what was found out about a run of which nobody knew how it ended.
var found = map[approvers.ExecutionState]string{approvers.ExecutionSucceeded: " It did.", approvers.ExecutionFailed: " It did not."}

// lost says why nobody knows how a run ended.
func (s scene) lost(e approvers.Execution) *prose {
	line := say("❓ ")
	switch e.Loss {
	case approvers.LossPaused:
		line.strong("Everything was paused while " + name(e.Tool) + " was running")
	case approvers.LossHalted:
		line.strong("The agent was stopped while " + name(e.Tool) + " was running")
	case approvers.LossUnclear:
		line.strong(name(e.Tool) + " could not tell whether it acted")
	case approvers.LossRestored:
		line.strong("The bot was put back to an earlier state while " + name(e.Tool) + " was running")
	default:
		line.strong("The bot stopped while " + name(e.Tool) + " was running")
	}
	return line.say(", started ").at(e.StartedAt, dayTime).say(". It may or may not have happened.")
}

// untilTold says until when the agent waits for the answer, or that it was told.
func (s scene) untilTold() *prose {
	switch {
	case s.Call.Outcome != "" && s.Later == nil:
		line := say("The agent was told that nobody knows")
		if by := s.Execution.LeftBy; by != "" {
			line.say(": ").person(by, "").say(" left it so")
		}
		return line.say(". You can still say what happened; it is kept in the history. To have it done after all, ask the agent anew in the thread.")
	case s.Call.Outcome == "" && s.Later == nil && !s.LeaveAt.IsZero():
		return say("⏳ If nobody says so by ").at(s.LeaveAt, dayTime).say(", the agent is told that nobody knows.")
	}
	return new(prose)
}

// onceMore says by whom a call was asked for again, and where that stands.
func (s scene) onceMore() *prose {
	if s.Later == nil {
		return new(prose)
	}
	r := *s.Later
	line := say("🔁 ").strong("Asked again").say(" by ").person(r.Again.By, r.Again.Name).say(", ").at(r.Again.At, dayTime).say(". ")
	if r.State == approvers.Pending {
		line.say("It waits for " + s.stageTitle(r.Plan.Stages[r.Stage]) + s.joined(r) + ".")
	} else {
		line.say(endSign[r.State] + " ").also(s.ending(r))
	}
	if link := s.cardFor(strings.TrimPrefix(s.Surface.To, "user:")); link != "" {
		line.say(" · ").link(link, "See the card")
	}
	return line
}

// findings are the buttons by which people say what they found out, and by which the call is asked for again.
func (s scene) findings(p *page, e approvers.Execution, what string) {
	value := s.mark(e.ID)
	didNot := "\n\nThe agent is told that it was not done. It may then ask for it again, as a new request."
	switch {
	case s.Later != nil && s.Later.State == approvers.Pending:
		didNot = "\n\nThose who decide about the new request see it."
	case s.Call.Outcome != "":
		didNot = "\n\nIt is kept in the history."
	}
	row := []slack.BlockElement{
		button(actHappened, "It happened…", value, slack.StyleDefault),
		button(actDidNot, "It did not", value, slack.StyleDefault).WithConfirm(confirm("It did not happen?", clip(what, maxConfirm-width(didNot))+didNot, "It did not happen", "Cancel", slack.StyleDanger)),
	}
	if s.Call.Outcome == "" && s.Later == nil {
		const twice = "\n\nIf it did happen, it would happen a second time. It is a new request: everybody who has to approve it is asked anew."
		row = append(row, button(actLeave, "Leave it, tell the agent", value, slack.StyleDefault),
			button(actAskAgain, "Ask again", value, slack.StyleDefault).WithConfirm(confirm("Ask again?", clip(what, maxConfirm-width(twice))+twice, "Ask again", "Cancel", slack.StyleDanger)))
	}
	p.buttons("", row...)
	if s.Later != nil && s.Later.State.Open() {
		p.small("What became of the earlier run is still worth knowing: if you report that it happened, the new request ends as long as it has not run.")
	}
}

// earlier says on the card of a request that asks again that the call may have happened already, and what was found out about that since.
func (s scene) earlier(r approvers.Request) *prose {
	a := r.Again
	if a == nil {
		return new(prose)
	}
	line := say("⚠️ ")
	switch a.Found {
	case approvers.ExecutionFailed:
		line = say("🔁 An earlier run of this call ended unknown, ").at(a.LostAt, dayTime).say(". ").person(a.FoundBy, "").say(" reported since: ").strong("it did not happen").say(".")
	case approvers.ExecutionSucceeded:
		line.strong("This has happened already").say(", as ").person(a.FoundBy, "").say(" reported: an earlier run of this call had ended unknown, ").at(a.LostAt, dayTime).say(".")
	default:
		line.strong("This may have happened already.").say(" An earlier run of this call ended unknown, ").at(a.LostAt, dayTime).say(": if it did act, approving this makes it happen twice.")
	}
	line.say(" Asked again by ").person(a.By, a.Name).say(", ").at(a.At, dayTime).say(".")
	if link := s.earlierLink(); link != "" {
		line.say(" ").link(link, "See the earlier run")
	}
	return line
}

// twice says to whoever is about to approve what may have happened already that it would happen again.
func twice(r approvers.Request) string {
	if r.Again == nil || r.Again.Found == approvers.ExecutionFailed {
		return ""
	}
	return "It may have happened already: if it did, it happens a second time."
}

// earlierLink leads to where people were asked about the earlier run: beside this card, in a channel, or in the thread.
func (s scene) earlierLink() string {
	link := ""
	for _, o := range s.Earlier {
		switch {
		case o.To == s.Surface.To:
			return s.permalink(o.Channel, o.TS, "")
		case strings.HasPrefix(o.To, "channel:"):
			link = s.permalink(o.Channel, o.TS, "")
		case strings.HasPrefix(o.To, "conversation:") && !s.Conversation.DM && link == "":
			link = s.permalink(o.Channel, o.TS, s.Conversation.Thread)
		}
	}
	return link
}

// againInStep says among a step's calls that a call is asked for again.
func againInStep(r *approvers.Request) *prose {
	if r == nil || r.Again == nil {
		return new(prose)
	}
	line := say(" Asked again by ").person(r.Again.By, r.Again.Name)
	if r.Again.Found == approvers.ExecutionFailed {
		return line.say(": an earlier run did not happen, as was reported.")
	}
	return line.say(": nobody knows whether an earlier run happened.")
}
