package bot

import (
	"countersign/approvers"
)

// aftermath says what came of it, and what the agent was told.
func (s scene) aftermath(p *page, r approvers.Request) {
	switch {
	case r.State == approvers.Approved:
		p.para(say("▶️ It is about to run, with exactly these arguments."))
	case r.State == approvers.Consumed && s.Execution != nil:
		s.ran(p, *s.Execution)
	case r.State == approvers.Rejected:
		p.para(say("It was not run. The agent was told that ").say(s.title(r.ClosedRole)).say(" rejected it and why, and to offer an alternative."))
	case r.State == approvers.Expired:
		p.para(say("It was not run. The agent was told so, and that it may be asked for again."))
	case r.State == approvers.Revoked:
		p.para(say("It was not run. The agent was told that ").say(s.title(r.ClosedRole)).say(" took the approval back and why, and to offer an alternative."))
	case r.State == approvers.Withdrawn:
		p.para(say("It was not run. The agent goes on with what is wanted now."))
	default:
		p.para(say("It was not run. The agent was told so."))
	}
}

// ran says how a run went.
func (s scene) ran(p *page, e approvers.Execution) {
	switch e.State {
	case approvers.ExecutionNone, approvers.ExecutionExecuting:
		p.para(say("▶️ It is running."))
	case approvers.ExecutionSucceeded:
		line := say("🏁 ").strong("It ran").say(", ").at(e.FinishedAt, dayTime)
		told := ". The agent was told the result:"
		if e.ReportedBy != "" {
			line, told = say("🏁 ").also(reportedBy(e)).say(", ").at(e.FinishedAt, dayTime), s.toldReport()
		}
		p.para(line.say(told))
		p.exact(clip(resultText(e.Result), maxResult))
	case approvers.ExecutionFailed:
		line := say("⚠️ ").strong("The tool reported an error").say(", ").at(e.FinishedAt, dayTime)
		told := ". The agent was told:"
		if e.ReportedBy != "" {
			line, told = say("⚠️ ").also(reportedBy(e)).say(", ").at(e.FinishedAt, dayTime), s.toldReport()
		}
		p.para(line.say(told))
		p.exact(clip(resultText(e.Result), maxResult))
	case approvers.ExecutionUnknown:
		p.para(say("❓ ").strong("It is unknown whether it happened").say(": it was started, and nobody knows how it ended. It is not run again by itself; somebody has to check."))
	}
}

// reportedBy says what a person found out about a run that nobody saw the end of.
func reportedBy(e approvers.Execution) *prose {
	found := "it happened"
	if e.State == approvers.ExecutionFailed {
		found = "it did not happen"
	}
	return say("Reported by ").person(e.ReportedBy, "").say(": ").strong(found)
}

// toldReport leads to a report's words. Those that came late are kept, but the agent had gone on by then.
func (s scene) toldReport() string {
	if s.Call != nil && s.Call.Outcome == approvers.OutcomeUnknown {
		return ". It came after the agent was told that nobody knows. The report:"
	}
	return ". The agent was told so, with this report:"
}

// resultText lays out a tool's answer. What is not one whole JSON object is shown as it is.
func resultText(s string) string {
	if s == "" {
		return "(an empty answer)"
	}
	if len(spans([]byte(s))) > 0 {
		return argumentText([]byte(s))
	}
	return visible(s)
}
