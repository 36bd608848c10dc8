package card

import (
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/bot/slackapi"
	"countersign/store"
)

// unknownRun is the message about a run whose outcome is unknown.
type unknownRun struct {
	runWords
	wording.Version
	from    wording.Origin
	request *approvers.Request // nil: the call ran without approval
	turn    approvers.Turn
	leaveAt time.Time // when the model is told that the outcome is unknown; zero: the model already knows, or is never told
}

// DrawUnknownRun draws the message about a run whose outcome is unknown.
func DrawUnknownRun(v wording.View) block.Rendered { return newUnknownRun(v).draw() }

func newUnknownRun(v wording.View) unknownRun {
	return unknownRun{runWords: newRunWords(v), Version: v.Version(), from: v.Origin(), request: v.Request, turn: v.Turn, leaveAt: v.LeaveAt}
}

// draw asks people to report the unknown outcome of a run. After the report, the message has two lines.
func (u unknownRun) draw() block.Rendered {
	e := *u.execution
	p := new(block.Builder)
	what := wording.WhatHappens(u.call.Preview, e.Tool)
	text := argument.MaskedText(e.Args, u.call.Secrets)
	whole := argument.FitsCard(text)
	shows := []store.Shown{{Request: e.Request, Digest: e.Digest, Whole: whole}}
	if sign, over := found[e.State]; over {
		p.Para(block.Say(sign+" ").Strong(what), u.runOutcome().Add(u.onceMoreToo()))
		return block.Rendered{Messages: []block.Message{p.Message()}, Shows: shows}
	}
	p.Headline("Did this happen?")
	p.Para(new(block.RichText).Strong(what))
	p.Para(block.Say("❓ ").Add(u.unknownReason(e)))
	readsAll := "" // a run without a request has no Details…
	if u.request != nil {
		readsAll = " Details… shows all."
	}
	arguments(p, text, whole, readsAll)
	if u.request != nil && !strings.HasPrefix(u.Message.To, store.ToConversation) {
		u.from.Requester(p, *u.request, block.MaxQuote)
	}
	p.Para(u.reportsWanted(), u.toldAlready())
	p.Para(u.onceMore())
	u.findings(p, e, what)
	if !whole && u.request != nil {
		p.Buttons("details", block.Button(control.ActArguments, "Details…", u.Token(e.ID), slack.StyleDefault))
	}
	return block.Rendered{Messages: []block.Message{p.Message()}, Shows: shows}
}

// unknownReason explains why the outcome of a run is unknown.
func (u unknownRun) unknownReason(e approvers.Execution) *block.RichText {
	words := lossWords(e)
	undone := ""
	if u.request != nil && !wording.CanBeUndone(u.request.Plan.Risk, u.request.Effect) {
		undone = "; that can't be undone"
	}
	line := new(block.RichText).Strong(strings.ToUpper(words[:1]) + words[1:])
	if e.Loss != approvers.LossDamaged { // otherwise the time may be lost, too
		line.Say(", started ").At(e.StartedAt, block.DayTime)
	}
	return line.Say(". It may have acted" + undone + ".")
}

// reportsWanted names the people who should report the outcome, and says until when the agent waits for a report. The
// text is empty if the agent does not wait.
func (u unknownRun) reportsWanted() *block.RichText {
	if u.call.Outcome != "" || u.later != nil {
		return new(block.RichText)
	}
	asked := slices.DeleteFunc(slices.Clone(u.turn.Requesters), func(p approvers.PersonID) bool { return p.Caller() != "" })
	line, or := block.Say("✋ Waits for "), ""
	if r := u.request; r != nil {
		line.Strong(u.StageTitle(r.CurrentStage()) + u.EscalatedRoles(*r))
		if or = " or "; len(asked) == 0 {
			asked = []approvers.PersonID{r.Facts.Asker}
		}
	}
	for i, who := range asked {
		if i == block.MaxPeopleTold {
			line.Say(" or " + block.Plural(len(asked)-i, "other person"))
			break
		}
		line.Say(or).Person(who, "")
		or = " or "
	}
	user, own := strings.CutPrefix(u.Message.To, store.ToUser)
	if own && u.request == nil && !slices.ContainsFunc(asked, func(p approvers.PersonID) bool { return p.User() == user }) {
		line.Say(" or you") // the reader gave the grant under which the call ran
	}
	if !u.leaveAt.IsZero() {
		line.Say(" until ").At(u.leaveAt, block.DayTime).Say("; then it stays unknown")
	}
	return line.Say(".")
}

// If the agent was already told that the outcome is unknown, toldAlready returns a note that says so.
func (u unknownRun) toldAlready() *block.RichText {
	if u.call.Outcome == "" || u.later != nil {
		return new(block.RichText)
	}
	line := block.Say("The agent was told that the outcome is unknown")
	if by := u.execution.LeftBy; by != "" {
		line.Say(": ").Person(by, "").Say(" chose Leave it")
	}
	if u.execution.Caller != "" {
		return line.Say(". You can still report what happened.")
	}
	return line.Say(". You can still report what happened. To have it done after all, ask the agent again in the thread.")
}

// findings draws the blocks with which people report an unknown outcome. The blocks say where to look, and have the
// buttons that report the outcome or request the call again. A few words describe the effect of each button, and its
// confirmation dialog says more.
func (u unknownRun) findings(p *block.Builder, e approvers.Execution, what string) {
	value := u.Token(e.ID)
	does := func(label, words string) *block.RichText { return new(block.RichText).Strong(label).Say(" " + words) }
	happened, did, didNot := "tells the agent, with your result.", "tells the agent, which may ask again.",
		"The agent is told that it was not done. It may then ask for it again, as a new request."
	switch {
	case u.later != nil && u.later.State == approvers.Pending:
		did, didNot = "tells those who decide about the new request.", "Those who decide about the new request see it."
	case u.call.Outcome != "":
		happened, did, didNot = "keeps what you write in the history.", "is kept in the history.", "It is kept in the history."
	}
	help := []*block.RichText{
		block.Say("🔎 First look in the system behind ").Code(block.Name(e.Tool)).Say("."),
		does("It happened…", happened), does("It did not", did),
	}
	didNot = "\n\n" + didNot
	sure := block.Confirm("It did not happen?", block.Clip(what, slackapi.MaxConfirm-block.Width(didNot))+didNot, "It did not happen", "Cancel", slack.StyleDanger)
	row := []slack.BlockElement{
		block.Button(control.ActHappened, "It happened…", value, slack.StyleDefault),
		block.Button(control.ActDidNot, "It did not", value, slack.StyleDefault).WithConfirm(sure),
	}
	if u.call.Outcome == "" && u.later == nil {
		const twice = "\n\nIf it did happen, it would happen a second time. It is a new request: everybody who has to approve it is asked again."
		again := block.Confirm("Ask again?", block.Clip(what, slackapi.MaxConfirm-block.Width(twice))+twice, "Ask again", "Cancel", slack.StyleDanger)
		help = append(help, does("Leave it", "tells the agent “unknown” now."), does("Ask again", "requests a new run: it could act twice."))
		row = append(row, block.Button(control.ActLeave, "Leave it", value, slack.StyleDefault),
			block.Button(control.ActAskAgain, "Ask again", value, slack.StyleDefault).WithConfirm(again))
	}
	p.Para(help...)
	p.Buttons("", row...)
	if u.later != nil && u.later.State.Open() {
		p.Small("If you report that it happened, the new request ends, unless it has run.")
	}
}
