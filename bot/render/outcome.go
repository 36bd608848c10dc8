package render

import (
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/slackapi"
	"countersign/store"
)

// runWords describes what happened after the decision on a request: the run and its outcome.
type runWords struct {
	requestWords
	workspace
	to        string               // the recipient of the message
	execution *approvers.Execution // nil: the call has not run
	call      *store.Call
	later     *approvers.Request    // the request for a retry
	cards     []store.OutboxMessage // the cards of this request
	pause     settings.Pause
}

// aftermath describes in a few words what happened after the decision on a request. Details… has the whole result.
func (w runWords) aftermath(r approvers.Request) *RichText {
	switch {
	case r.State == approvers.Approved && w.pause.On:
		return Say(" Paused: it starts when the pause ends, or expires ").At(r.RunBy, DayTime).Say(".")
	case r.State == approvers.Approved && r.Facts.Caller.Decides():
		return Say(" "+Name(r.Facts.Caller.Title)+" may run it until ").At(r.RunBy, DayTime).Say(".")
	case r.State == approvers.Approved && r.Facts.Caller.Begins():
		return Say(" It runs once "+Name(r.Facts.Caller.Title)+" asks for the result, or expires ").At(r.RunBy, DayTime).Say(".")
	case r.State == approvers.Approved:
		return Say(" It is about to run.")
	case r.State == approvers.Consumed && w.execution != nil:
		return Say(" ").add(w.runOutcome())
	case r.Lost:
		return Say(" ").Strong("It is not known whether it ran").Say(".")
	}
	return Say(" It was not run.")
}

// runOutcome describes in a few words how a run ended.
func (w runWords) runOutcome() *RichText {
	e := *w.execution
	switch {
	case e.ReportedBy != "":
		return reportedBy(e).Say(", ").At(e.FinishedAt, clock).add(resultLine(maskedResult(e, w.call)))
	case e.Caller != "" && e.State == approvers.ExecutionSucceeded: // only the client observed the run
		return Say("The client "+Name(e.Caller)+" says: ").Strong("it ran").Say(", ").At(e.FinishedAt, clock).add(resultLine(maskedResult(e, w.call)))
	case e.Caller != "" && e.State == approvers.ExecutionFailed && !e.Unrun:
		return Say("The client "+Name(e.Caller)+" says: ").Strong("it failed").Say(", ").At(e.FinishedAt, clock).add(resultLine(maskedResult(e, w.call)))
	case e.State == approvers.ExecutionSucceeded:
		return new(RichText).Strong("It ran").Say(", ").At(e.FinishedAt, clock).add(resultLine(maskedResult(e, w.call)))
	case e.State == approvers.ExecutionFailed && e.Unrun:
		return new(RichText).Strong("It was not run after all").Say(", ").At(e.FinishedAt, clock).add(resultLine(maskedResult(e, w.call)))
	case e.State == approvers.ExecutionFailed:
		return new(RichText).Strong("It failed").Say(", ").At(e.FinishedAt, clock).add(resultLine(maskedResult(e, w.call)))
	case e.State == approvers.ExecutionUnknown:
		return new(RichText).Strong("It is not known whether it happened").Say(": ").Say(lossWords(e)).Say(", ").At(e.StartedAt, clock).Say(".").add(w.onceMoreToo())
	case e.Caller != "":
		return Say("The client " + Name(e.Caller) + " is running it.")
	case w.pause.On:
		return held(view.Call{Execution: &e})
	}
	return Say("It is running.")
}

// resultLine returns the result of a run in one sentence.
func resultLine(result string) *RichText {
	result = strings.TrimPrefix(strings.TrimPrefix(result, "it was not run, "), "it was not run: ")
	if result == "" {
		return Say(".")
	}
	text := approvers.Headline(result)
	if text == "" {
		text = onOneLine([]byte(result), nil)
	}
	return Say(": ").soft(Clip(OneLine(text), maxResultLine))
}

// reportedBy returns what a person reported about a run whose outcome was unknown.
func reportedBy(e approvers.Execution) *RichText {
	found := "it happened"
	if e.State == approvers.ExecutionFailed {
		found = "it did not happen"
	}
	return Say("Reported by ").Person(e.ReportedBy, "").Say(": ").Strong(found)
}

// maskedResult returns the tool's answer with the secret values of the call masked.
func maskedResult(e approvers.Execution, c *store.Call) string {
	if c == nil {
		return e.Result
	}
	return maskSecrets(e.Result, e.Args, c.Secrets)
}

// resultText lays out a tool's answer. An answer that is not a single JSON object is shown unchanged.
func resultText(s string) string {
	if s == "" {
		return "(an empty answer)"
	}
	if len(spans([]byte(s))) > 0 {
		return ArgumentText([]byte(s))
	}
	return Visible(s)
}

// unknownRun is the message about a run whose outcome is unknown.
type unknownRun struct {
	runWords
	version
	from    origin
	request *approvers.Request // nil: the call ran without approval
	turn    approvers.Turn
	leaveAt time.Time // when the model is told that the outcome is unknown; zero: it was already told, or is never told
}

func newUnknownRun(v View) unknownRun {
	return unknownRun{runWords: v.runWords(), version: v.version(), from: v.origin(), request: v.Request, turn: v.Turn, leaveAt: v.LeaveAt}
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

// The map called found maps the reported outcome of a run to a sign.
var found = map[approvers.ExecutionState]string{approvers.ExecutionSucceeded: "🏁", approvers.ExecutionFailed: "⚠️"}

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

// lossWords describes what happened during a run whose outcome is unknown.
func lossWords(e approvers.Execution) string {
	if e.Caller != "" && e.Loss != approvers.LossRestored {
		if e.Loss == approvers.LossUnreported {
			return "the client " + Name(e.Caller) + " did not report how " + Name(e.Tool) + " ended"
		}
		return "the client " + Name(e.Caller) + " does not know whether " + Name(e.Tool) + " acted"
	}
	switch e.Loss {
	case approvers.LossPaused:
		return "everything was paused while " + Name(e.Tool) + " was running"
	case approvers.LossTurnStopped:
		return "the agent was stopped while " + Name(e.Tool) + " was running"
	case approvers.LossUnclear:
		return "the answer of " + Name(e.Tool) + " does not say whether it acted"
	case approvers.LossRestored:
		return "the bot was restored from a backup while " + Name(e.Tool) + " was running"
	}
	return "the bot stopped while " + Name(e.Tool) + " was running"
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

// onceMoreToo returns the text of onceMore with a space before it, so that the text can follow another sentence.
func (w runWords) onceMoreToo() *RichText {
	if again := w.onceMore(); !again.empty() {
		return Say(" ").add(again)
	}
	return new(RichText)
}

// onceMore names the person who requested a call again, and describes the new request's state.
func (w runWords) onceMore() *RichText {
	if w.later == nil {
		return new(RichText)
	}
	r := *w.later
	line := Say("🔁 ").Strong("Asked again").Say(" by ").Person(r.Retry.By, r.Retry.Name).Say(", ").At(r.Retry.At, DayTime).Say(". ")
	if r.State == approvers.Pending {
		line.Say("It waits for " + w.stageTitle(r.CurrentStage()) + w.escalatedRoles(r) + ".")
	} else {
		line.Say(endSign[r.State] + " ").add(w.ending(r))
	}
	if link := w.cardFor(strings.TrimPrefix(w.to, store.ToUser), w.cards); link != "" {
		line.Say(" · ").link(link, "See the card")
	}
	return line
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

// earlierRunWarning returns a warning for the card of a retry: the call may have taken effect already. The warning
// includes the reports about the earlier run.
func earlierRunWarning(r approvers.Request, link string) *RichText {
	a := r.Retry
	if a == nil {
		return new(RichText)
	}
	line := Say("⚠️ ")
	switch a.Found {
	case approvers.ExecutionFailed:
		line = Say("🔁 An earlier run of this call ended unknown, ").At(a.LostAt, DayTime).Say(". ").Person(a.FoundBy, "").Say(" reported since: ").Strong("it did not happen").Say(".")
	case approvers.ExecutionSucceeded:
		line.Strong("This has happened already").Say(", as ").Person(a.FoundBy, "").Say(" reported: an earlier run of this call had ended unknown, ").At(a.LostAt, DayTime).Say(".")
	default:
		line.Strong("This may have happened already.").
			Say(" An earlier run of this call ended unknown, ").At(a.LostAt, DayTime).Say(": if it did act, approving this makes it happen twice.")
	}
	line.Say(" Asked again by ").Person(a.By, a.Name).Say(", ").At(a.At, DayTime).Say(".")
	if link != "" {
		line.Say(" ").link(link, "See the earlier run")
	}
	return line
}

// twiceWarning warns an approver that the call may have happened already and would happen again.
func twiceWarning(r approvers.Request) string {
	if r.Retry == nil || r.Retry.Found == approvers.ExecutionFailed {
		return ""
	}
	return "It may have happened already: if it did, it happens a second time."
}

// againInStep returns the note which says, in a step, that a person requested the call again.
func againInStep(r *approvers.Request) *RichText {
	if r == nil || r.Retry == nil {
		return new(RichText)
	}
	line := Say(" Asked again by ").Person(r.Retry.By, r.Retry.Name)
	if r.Retry.Found == approvers.ExecutionFailed {
		return line.Say(": an earlier run did not happen, as was reported.")
	}
	return line.Say(": it is unknown whether an earlier run happened.")
}
