package render

import (
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/slackapi"
	"countersign/store"
)

// aftermath describes in a few words what happened after the decision on a request. Details… has the whole result.
func (v View) aftermath(r approvers.Request) *RichText {
	switch {
	case r.State == approvers.Approved && v.Pause.On:
		return Say(" Paused: it starts when the pause ends, or expires ").At(r.RunBy, DayTime).Say(".")
	case r.State == approvers.Approved && r.Facts.Caller.Decides():
		return Say(" "+Name(r.Facts.Caller.Title)+" may run it until ").At(r.RunBy, DayTime).Say(".")
	case r.State == approvers.Approved && r.Facts.Caller.Begins():
		return Say(" It runs once "+Name(r.Facts.Caller.Title)+" asks for the result, or expires ").At(r.RunBy, DayTime).Say(".")
	case r.State == approvers.Approved:
		return Say(" It is about to run.")
	case r.State == approvers.Consumed && v.Execution != nil:
		return Say(" ").add(v.runOutcome(*v.Execution))
	case r.Lost:
		return Say(" ").Strong("It is not known whether it ran").Say(".")
	}
	return Say(" It was not run.")
}

// runOutcome describes in a few words how a run ended.
func (v View) runOutcome(e approvers.Execution) *RichText {
	switch {
	case e.ReportedBy != "":
		return reportedBy(e).Say(", ").At(e.FinishedAt, clock).add(resultLine(v.maskedResult(e.Result)))
	case e.Caller != "" && e.State == approvers.ExecutionSucceeded: // only the client observed the run
		return Say("The client "+Name(e.Caller)+" says: ").Strong("it ran").Say(", ").At(e.FinishedAt, clock).add(resultLine(v.maskedResult(e.Result)))
	case e.Caller != "" && e.State == approvers.ExecutionFailed && !e.Unrun:
		return Say("The client "+Name(e.Caller)+" says: ").Strong("it failed").Say(", ").At(e.FinishedAt, clock).add(resultLine(v.maskedResult(e.Result)))
	case e.State == approvers.ExecutionSucceeded:
		return new(RichText).Strong("It ran").Say(", ").At(e.FinishedAt, clock).add(resultLine(v.maskedResult(e.Result)))
	case e.State == approvers.ExecutionFailed && e.Unrun:
		return new(RichText).Strong("It was not run after all").Say(", ").At(e.FinishedAt, clock).add(resultLine(v.maskedResult(e.Result)))
	case e.State == approvers.ExecutionFailed:
		return new(RichText).Strong("It failed").Say(", ").At(e.FinishedAt, clock).add(resultLine(v.maskedResult(e.Result)))
	case e.State == approvers.ExecutionUnknown:
		return new(RichText).Strong("It is not known whether it happened").Say(": ").Say(lossWords(e)).Say(", ").At(e.StartedAt, clock).Say(".").add(onceMoreToo(v))
	case e.Caller != "":
		return Say("The client " + Name(e.Caller) + " is running it.")
	case v.Pause.On:
		return v.held(view.Call{Execution: &e})
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

// maskedResult returns a tool's answer with the secret values of its call masked.
func (v View) maskedResult(result string) string {
	if v.Call == nil {
		return result
	}
	return maskSecrets(result, v.Execution.Args, v.Call.Secrets)
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

// unknownOutcome asks people to report the unknown outcome of a run. After the report, the message has two lines.
func (v View) unknownOutcome() Rendered {
	e := *v.Execution
	p := new(BlockBuilder)
	what := whatHappens(v.Call.Preview, e.Tool)
	text := maskedText(e.Args, v.Call.Secrets)
	whole := fitsCard(text)
	shows := []store.Shown{{Request: e.Request, Digest: e.Digest, Whole: whole}}
	if sign, over := found[e.State]; over {
		p.Para(Say(sign+" ").Strong(what), v.runOutcome(e).add(onceMoreToo(v)))
		return Rendered{Messages: []Message{p.Message()}, Shows: shows}
	}
	p.headline("Did this happen?")
	p.Para(new(RichText).Strong(what))
	p.Para(Say("❓ ").add(v.unknownReason(e)))
	readsAll := "" // a run without a request has no Details…
	if v.Request != nil {
		readsAll = " Details… shows all."
	}
	v.arguments(p, text, whole, readsAll)
	if v.Request != nil && !strings.HasPrefix(v.Message.To, store.ToConversation) {
		v.requester(p, *v.Request, maxQuote)
	}
	p.Para(reportsWanted(v), toldAlready(v))
	p.Para(v.onceMore())
	v.findings(p, e, what)
	if !whole && v.Request != nil {
		p.buttons("details", button(ActArguments, "Details…", v.token(e.ID), slack.StyleDefault))
	}
	return Rendered{Messages: []Message{p.Message()}, Shows: shows}
}

// The map called found maps the reported outcome of a run to a sign.
var found = map[approvers.ExecutionState]string{approvers.ExecutionSucceeded: "🏁", approvers.ExecutionFailed: "⚠️"}

// unknownReason explains why the outcome of a run is unknown.
func (v View) unknownReason(e approvers.Execution) *RichText {
	words := lossWords(e)
	undone := ""
	if v.Request != nil && !canBeUndone(v.Request.Plan.Risk, v.Request.Effect) {
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
func reportsWanted(v View) *RichText {
	if v.Call.Outcome != "" || v.Later != nil {
		return new(RichText)
	}
	asked := slices.DeleteFunc(slices.Clone(v.Turn.Requesters), func(p approvers.PersonID) bool { return p.Caller() != "" })
	line, or := Say("✋ Waits for "), ""
	if r := v.Request; r != nil {
		line.Strong(v.stageTitle(r.CurrentStage()) + v.escalatedRoles(*r))
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
	user, own := strings.CutPrefix(v.Message.To, store.ToUser)
	if own && v.Request == nil && !slices.ContainsFunc(asked, func(p approvers.PersonID) bool { return p.User() == user }) {
		line.Say(" or you") // the reader gave the grant under which the call ran
	}
	if !v.LeaveAt.IsZero() {
		line.Say(" until ").At(v.LeaveAt, DayTime).Say("; then it stays unknown")
	}
	return line.Say(".")
}

// toldAlready returns a note: the agent was told that the outcome is unknown.
func toldAlready(v View) *RichText {
	if v.Call.Outcome == "" || v.Later != nil {
		return new(RichText)
	}
	line := Say("The agent was told that the outcome is unknown")
	if by := v.Execution.LeftBy; by != "" {
		line.Say(": ").Person(by, "").Say(" left it so")
	}
	if v.Execution.Caller != "" {
		return line.Say(". You can still report it.")
	}
	return line.Say(". You can still report it. To have it done after all, ask the agent again in the thread.")
}

// onceMoreToo returns the text of onceMore with a space before it, so that the text can follow another sentence.
func onceMoreToo(v View) *RichText {
	if again := v.onceMore(); !again.empty() {
		return Say(" ").add(again)
	}
	return new(RichText)
}

// onceMore names the person who requested a call again, and describes the new request's state.
func (v View) onceMore() *RichText {
	if v.Later == nil {
		return new(RichText)
	}
	r := *v.Later
	line := Say("🔁 ").Strong("Asked again").Say(" by ").Person(r.Retry.By, r.Retry.Name).Say(", ").At(r.Retry.At, DayTime).Say(". ")
	if r.State == approvers.Pending {
		line.Say("It waits for " + v.stageTitle(r.CurrentStage()) + v.escalatedRoles(r) + ".")
	} else {
		line.Say(endSign[r.State] + " ").add(v.ending(r))
	}
	if link := v.cardFor(strings.TrimPrefix(v.Message.To, store.ToUser)); link != "" {
		line.Say(" · ").link(link, "See the card")
	}
	return line
}

// findings draws the blocks with which people report an unknown outcome. The blocks say where to look, and have the
// buttons that report the outcome or request the call again. A few words describe the effect of each button, and its
// confirmation dialog says more.
func (v View) findings(p *BlockBuilder, e approvers.Execution, what string) {
	value := v.token(e.ID)
	does := func(label, words string) *RichText { return new(RichText).Strong(label).Say(" " + words) }
	happened, did, didNot := "tells the agent, with your result.", "tells the agent, which may ask again.",
		"The agent is told that it was not done. It may then ask for it again, as a new request."
	switch {
	case v.Later != nil && v.Later.State == approvers.Pending:
		did, didNot = "tells those who decide about the new request.", "Those who decide about the new request see it."
	case v.Call.Outcome != "":
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
	if v.Call.Outcome == "" && v.Later == nil {
		const twice = "\n\nIf it did happen, it would happen a second time. It is a new request: everybody who has to approve it is asked again."
		again := confirm("Ask again?", Clip(what, slackapi.MaxConfirm-Width(twice))+twice, "Ask again", "Cancel", slack.StyleDanger)
		help = append(help, does("Leave it", "tells the agent “unknown” now."), does("Ask again", "requests a new run: it could act twice."))
		row = append(row, button(ActLeave, "Leave it", value, slack.StyleDefault),
			button(ActAskAgain, "Ask again", value, slack.StyleDefault).WithConfirm(again))
	}
	p.Para(help...)
	p.buttons("", row...)
	if v.Later != nil && v.Later.State.Open() {
		p.Small("If you report that it happened, the new request ends, unless it has run.")
	}
}

// earlierRunWarning returns a warning for the card of a retry: the call may have taken effect already. The warning
// includes the reports about the earlier run.
func (v View) earlierRunWarning(r approvers.Request) *RichText {
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
	if link := v.earlierLink(); link != "" {
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

// earlierLink returns the address of the question about the earlier run. earlierLink prefers the question with the same
// recipient as this card, then a question in a channel, then the question in the thread.
func (v View) earlierLink() string {
	link := ""
	for _, o := range v.Earlier {
		switch {
		case o.To == v.Message.To:
			return v.permalink(o.Channel, o.TS, "")
		case strings.HasPrefix(o.To, store.ToChannel):
			link = v.permalink(o.Channel, o.TS, "")
		case strings.HasPrefix(o.To, store.ToConversation) && !v.Conversation.DM && link == "":
			link = v.permalink(o.Channel, o.TS, v.Conversation.Thread)
		}
	}
	return link
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
