package card

import (
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/wording"
	"countersign/store"
)

// runWords describes what happened after the decision on a request: the run and its outcome.
type runWords struct {
	wording.RequestWords
	wording.Workspace
	to        string               // the recipient of the message
	execution *approvers.Execution // nil: the call has not run, or the record of its run is lost
	call      *store.Call
	later     *approvers.Request    // the request for a retry
	cards     []store.OutboxMessage // the cards of this request
	pause     settings.Pause
}

// aftermath describes in a few words what happened after the decision on a request. Details… has the whole result.
func (w runWords) aftermath(r approvers.Request) *block.RichText {
	switch {
	case r.State == approvers.Approved && w.pause.On:
		return block.Say(" Paused: it starts when the pause ends, or expires ").At(r.RunBy, block.DayTime).Say(".")
	case r.State == approvers.Approved && r.Facts.Caller.Decides():
		return block.Say(" "+block.Name(r.Facts.Caller.Title)+" may run it until ").At(r.RunBy, block.DayTime).Say(".")
	case r.State == approvers.Approved && r.Facts.Caller.Begins():
		return block.Say(" It runs once "+block.Name(r.Facts.Caller.Title)+" asks for the result, or expires ").At(r.RunBy, block.DayTime).Say(".")
	case r.State == approvers.Approved:
		return block.Say(" It is about to run.")
	case r.State == approvers.Consumed && w.execution != nil, r.Lost && w.execution != nil && w.execution.ReportedBy != "":
		return block.Say(" ").Add(w.runOutcome())
	case r.State == approvers.Consumed && w.call != nil && w.call.Outcome == approvers.OutcomeExecuted: // the run's record is lost
		return block.Say(" ").Strong("It ran").Say(".")
	case r.Lost, r.State == approvers.Consumed:
		return block.Say(" ").Strong("It is not known whether it ran").Say(".")
	}
	return block.Say(" It was not run.")
}

// runOutcome describes in a few words how a run ended.
func (w runWords) runOutcome() *block.RichText {
	e := *w.execution
	switch {
	case e.ReportedBy != "":
		return wording.ReportedBy(e).Say(", ").At(e.FinishedAt, block.Clock).Add(resultLine(argument.MaskedResult(e, w.call)))
	case e.Caller != "" && e.State == approvers.ExecutionSucceeded: // only the client observed the run
		return block.Say("The client "+block.Name(e.Caller)+" says: ").Strong("it ran").Say(", ").At(e.FinishedAt, block.Clock).Add(resultLine(argument.MaskedResult(e, w.call)))
	case e.Caller != "" && e.State == approvers.ExecutionFailed && !e.Unrun:
		return block.Say("The client "+block.Name(e.Caller)+" says: ").Strong("it failed").Say(", ").At(e.FinishedAt, block.Clock).Add(resultLine(argument.MaskedResult(e, w.call)))
	case e.State == approvers.ExecutionSucceeded:
		return new(block.RichText).Strong("It ran").Say(", ").At(e.FinishedAt, block.Clock).Add(resultLine(argument.MaskedResult(e, w.call)))
	case e.State == approvers.ExecutionFailed && e.Unrun:
		return new(block.RichText).Strong("It was not run after all").Say(", ").At(e.FinishedAt, block.Clock).Add(resultLine(argument.MaskedResult(e, w.call)))
	case e.State == approvers.ExecutionFailed:
		return new(block.RichText).Strong("It failed").Say(", ").At(e.FinishedAt, block.Clock).Add(resultLine(argument.MaskedResult(e, w.call)))
	case e.State == approvers.ExecutionUnknown:
		line := new(block.RichText).Strong("It is not known whether it happened").Say(": ").Say(lossWords(e))
		if e.Loss != approvers.LossDamaged { // otherwise the time may be lost, too
			line.Say(", ").At(e.StartedAt, block.Clock)
		}
		return line.Say(".").Add(w.onceMoreToo())
	case e.Caller != "":
		return block.Say("The client " + block.Name(e.Caller) + " is running it.")
	case w.pause.On:
		return wording.Held(view.Call{Execution: &e})
	}
	return block.Say("It is running.")
}

// resultLine returns the result of a run in one sentence.
func resultLine(result string) *block.RichText {
	result = strings.TrimPrefix(strings.TrimPrefix(result, "it was not run, "), "it was not run: ")
	if result == "" {
		return block.Say(".")
	}
	text := approvers.Headline(result)
	if text == "" {
		text = argument.OnOneLine([]byte(result), nil)
	}
	return block.Say(": ").Soft(block.Clip(block.OneLine(text), maxResultLine))
}

// The map "found" maps the reported outcome of a run to a sign.
var found = map[approvers.ExecutionState]string{approvers.ExecutionSucceeded: "🏁", approvers.ExecutionFailed: "⚠️"}

// lossWords describes what happened during a run whose outcome is unknown.
func lossWords(e approvers.Execution) string {
	if e.Loss == approvers.LossDamaged {
		return "the record of the run of " + block.Name(e.Tool) + " is damaged"
	}
	if e.Caller != "" && e.Loss != approvers.LossRestored {
		if e.Loss == approvers.LossUnreported {
			return "the client " + block.Name(e.Caller) + " did not report how " + block.Name(e.Tool) + " ended"
		}
		return "the client " + block.Name(e.Caller) + " does not know whether " + block.Name(e.Tool) + " acted"
	}
	switch e.Loss {
	case approvers.LossPaused:
		return "everything was paused while " + block.Name(e.Tool) + " was running"
	case approvers.LossTurnStopped:
		return "the agent was stopped while " + block.Name(e.Tool) + " was running"
	case approvers.LossUnclear:
		return "the response of " + block.Name(e.Tool) + " does not say whether it acted"
	case approvers.LossRestored:
		return "the bot was restored from a backup while " + block.Name(e.Tool) + " was running"
	}
	return "the bot stopped while " + block.Name(e.Tool) + " was running"
}

// onceMoreToo returns the text of onceMore with a space before it, so that the text can follow another sentence.
func (w runWords) onceMoreToo() *block.RichText {
	if again := w.onceMore(); !again.Empty() {
		return block.Say(" ").Add(again)
	}
	return new(block.RichText)
}

// onceMore names the person who requested a call again, and describes the new request's state.
func (w runWords) onceMore() *block.RichText {
	if w.later == nil {
		return new(block.RichText)
	}
	r := *w.later
	line := block.Say("🔁 ").Strong("Asked again").Say(" by ").Person(r.Retry.By, r.Retry.Name).Say(", ").At(r.Retry.At, block.DayTime).Say(". ")
	if r.State == approvers.Pending {
		line.Say("It waits for " + w.StageTitle(r.CurrentStage()) + w.EscalatedRoles(r) + ".")
	} else {
		line.Say(wording.EndSign(r) + " ").Add(w.Ending(r))
	}
	if link := w.CardFor(strings.TrimPrefix(w.to, store.ToUser), w.cards); link != "" {
		line.Say(" · ").Link(link, "See the card")
	}
	return line
}

// newRunWords returns the words about what happened after the decision on a view's request.
func newRunWords(v wording.View) runWords {
	return runWords{
		RequestWords: wording.Under(v.Policy), Workspace: wording.Workspace(v.WorkspaceURL),
		to: v.Message.To, execution: v.Execution, call: v.Call, later: v.Later, cards: v.Cards, pause: v.Pause,
	}
}
