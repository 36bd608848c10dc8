package render

import (
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/slackapi"
	"countersign/store"
)

// unknownRun is the message about a run whose outcome is unknown.
type unknownRun struct {
	runWords
	version
	from    origin
	request *approvers.Request // nil: the call ran without approval
	turn    approvers.Turn
	leaveAt time.Time // when the model is told that the outcome is unknown; zero: it was already told, or is never told
}

// drawUnknownRun draws the message about a run whose outcome is unknown.
func drawUnknownRun(v View) Rendered { return newUnknownRun(v).draw() }

func newUnknownRun(v View) unknownRun {
	return unknownRun{runWords: newRunWords(v), version: v.version(), from: v.origin(), request: v.Request, turn: v.Turn, leaveAt: v.LeaveAt}
}

// draw asks people to report the unknown outcome of a run. After the report, the message has two lines.
func (u unknownRun) draw() Rendered {
	e := *u.execution
	p := new(BlockBuilder)
	what := whatHappens(u.call.Preview, e.Tool)
	text := maskedText(e.Args, u.call.Secrets)
	whole := fitsCard(text)
	shows := []store.Shown{{Request: e.Request, Digest: e.Digest, Whole: whole}}
	if sign, over := found[e.State]; over {
		p.Para(Say(sign+" ").Strong(what), u.runOutcome().add(u.onceMoreToo()))
		return Rendered{Messages: []Message{p.Message()}, Shows: shows}
	}
	p.headline("Did this happen?")
	p.Para(new(RichText).Strong(what))
	p.Para(Say("❓ ").add(u.unknownReason(e)))
	readsAll := "" // a run without a request has no Details…
	if u.request != nil {
		readsAll = " Details… shows all."
	}
	arguments(p, text, whole, readsAll)
	if u.request != nil && !strings.HasPrefix(u.message.To, store.ToConversation) {
		u.from.requester(p, *u.request, maxQuote)
	}
	p.Para(u.reportsWanted(), u.toldAlready())
	p.Para(u.onceMore())
	u.findings(p, e, what)
	if !whole && u.request != nil {
		p.buttons("details", button(ActArguments, "Details…", u.token(e.ID), slack.StyleDefault))
	}
	return Rendered{Messages: []Message{p.Message()}, Shows: shows}
}

// unknownReason explains why the outcome of a run is unknown.
func (u unknownRun) unknownReason(e approvers.Execution) *RichText {
	words := lossWords(e)
	undone := ""
	if u.request != nil && !canBeUndone(u.request.Plan.Risk, u.request.Effect) {
		undone = "; that can't be undone"
	}
	return new(RichText).Strong(strings.ToUpper(words[:1])+words[1:]).Say(", started ").At(e.StartedAt, DayTime).
		Say(". It may have acted" + undone + ".")
}

// reportsWanted names the people who should report the outcome, and says until when the agent waits for a report. The
// text is empty if the agent does not wait.
func (u unknownRun) reportsWanted() *RichText {
	if u.call.Outcome != "" || u.later != nil {
		return new(RichText)
	}
	asked := slices.DeleteFunc(slices.Clone(u.turn.Requesters), func(p approvers.PersonID) bool { return p.Caller() != "" })
	line, or := Say("✋ Waits for "), ""
	if r := u.request; r != nil {
		line.Strong(u.stageTitle(r.CurrentStage()) + u.escalatedRoles(*r))
		if or = " or "; len(asked) == 0 {
			asked = []approvers.PersonID{r.Facts.Asker}
		}
	}
	for i, who := range asked {
		if i == maxPeopleTold {
			line.Say(" or " + Plural(len(asked)-i, "other person"))
			break
		}
		line.Say(or).Person(who, "")
		or = " or "
	}
	user, own := strings.CutPrefix(u.message.To, store.ToUser)
	if own && u.request == nil && !slices.ContainsFunc(asked, func(p approvers.PersonID) bool { return p.User() == user }) {
		line.Say(" or you") // the reader gave the grant under which the call ran
	}
	if !u.leaveAt.IsZero() {
		line.Say(" until ").At(u.leaveAt, DayTime).Say("; then it stays unknown")
	}
	return line.Say(".")
}

// If the agent was already told that the outcome is unknown, toldAlready returns a note that says so.
func (u unknownRun) toldAlready() *RichText {
	if u.call.Outcome == "" || u.later != nil {
		return new(RichText)
	}
	line := Say("The agent was told that the outcome is unknown")
	if by := u.execution.LeftBy; by != "" {
		line.Say(": ").Person(by, "").Say(" left it so")
	}
	if u.execution.Caller != "" {
		return line.Say(". You can still report it.")
	}
	return line.Say(". You can still report it. To have it done after all, ask the agent again in the thread.")
}

// findings draws the blocks with which people report an unknown outcome. The blocks say where to look, and have the
// buttons that report the outcome or request the call again. A few words describe the effect of each button, and its
// confirmation dialog says more.
func (u unknownRun) findings(p *BlockBuilder, e approvers.Execution, what string) {
	value := u.token(e.ID)
	does := func(label, words string) *RichText { return new(RichText).Strong(label).Say(" " + words) }
	happened, did, didNot := "tells the agent, with your result.", "tells the agent, which may ask again.",
		"The agent is told that it was not done. It may then ask for it again, as a new request."
	switch {
	case u.later != nil && u.later.State == approvers.Pending:
		did, didNot = "tells those who decide about the new request.", "Those who decide about the new request see it."
	case u.call.Outcome != "":
		happened, did, didNot = "keeps what you write in the history.", "is kept in the history.", "It is kept in the history."
	}
	help := []*RichText{
		Say("🔎 Look first in the system behind ").Code(Name(e.Tool)).Say("."),
		does("It happened…", happened), does("It did not", did),
	}
	didNot = "\n\n" + didNot
	sure := confirm("It did not happen?", Clip(what, slackapi.MaxConfirm-Width(didNot))+didNot, "It did not happen", "Cancel", slack.StyleDanger)
	row := []slack.BlockElement{
		button(ActHappened, "It happened…", value, slack.StyleDefault),
		button(ActDidNot, "It did not", value, slack.StyleDefault).WithConfirm(sure),
	}
	if u.call.Outcome == "" && u.later == nil {
		const twice = "\n\nIf it did happen, it would happen a second time. It is a new request: everybody who has to approve it is asked again."
		again := confirm("Ask again?", Clip(what, slackapi.MaxConfirm-Width(twice))+twice, "Ask again", "Cancel", slack.StyleDanger)
		help = append(help, does("Leave it", "tells the agent “unknown” now."), does("Ask again", "requests a new run: it could act twice."))
		row = append(row, button(ActLeave, "Leave it", value, slack.StyleDefault),
			button(ActAskAgain, "Ask again", value, slack.StyleDefault).WithConfirm(again))
	}
	p.Para(help...)
	p.buttons("", row...)
	if u.later != nil && u.later.State.Open() {
		p.Small("If you report that it happened, the new request ends, unless it has run.")
	}
}
