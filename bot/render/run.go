package render

import (
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
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

// The map called found maps the reported outcome of a run to a sign.
var found = map[approvers.ExecutionState]string{approvers.ExecutionSucceeded: "🏁", approvers.ExecutionFailed: "⚠️"}

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

// newRunWords returns the words about what happened after the decision on a view's request.
func newRunWords(v View) runWords {
	return runWords{
		requestWords: wordsUnder(v.Policy), workspace: workspace(v.WorkspaceURL),
		to: v.Message.To, execution: v.Execution, call: v.Call, later: v.Later, cards: v.Cards, pause: v.Pause,
	}
}
