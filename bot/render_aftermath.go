package bot

import (
	"countersign/approvers"
	"countersign/approvers/desk"
)

// aftermath says what came of it, and what the agent was told.
func (s scene) aftermath(p *page, r approvers.Request) {
	switch {
	case r.State == approvers.Approved:
		if s.Pause.On {
			p.para(s.paused(), s.startsLater(r))
			return
		}
		p.para(say("▶️ It is about to run, with exactly these arguments."))
	case r.State == approvers.Consumed && s.Execution != nil:
		s.ran(p, *s.Execution)
	case r.State == approvers.Rejected:
		p.para(say("It was not run. The agent was told that ").say(s.closer(r)).say(" rejected it and why, and to offer an alternative."))
	case r.Lost:
		p.para(say("❓ ").strong("It is not known whether it ran").say(": it may have been decided, and run, after that backup was made. The agent was told not to ask for it again before somebody has checked."))
	case r.State == approvers.Expired:
		p.para(say("It was not run. The agent was told so, and that it may be asked for again."))
	case r.State == approvers.Revoked:
		p.para(say("It was not run. The agent was told that ").say(s.closer(r)).say(" took the approval back and why, and to offer an alternative."))
	case r.State == approvers.Withdrawn:
		p.para(say("It was not run. The agent goes on with what is wanted now."))
	default:
		p.para(say("It was not run. The agent was told so."))
	}
}

// closer is who the agent was told ended a request: a role, never a person.
func (s scene) closer(r approvers.Request) string {
	if r.ClosedBy.Login() != "" {
		return "the operator"
	}
	return s.title(r.ClosedRole)
}

// ran says how a run went.
func (s scene) ran(p *page, e approvers.Execution) {
	switch e.State {
	case approvers.ExecutionNone, approvers.ExecutionExecuting:
		if s.Pause.On {
			p.para(s.paused(), s.held(desk.CallSight{Execution: &e}))
			return
		}
		p.para(say("▶️ It is running."))
	case approvers.ExecutionSucceeded:
		if e.ReportedBy != "" {
			s.reported(p, "🏁 ", e)
			return
		}
		p.para(say("🏁 ").strong("It ran").say(", ").at(e.FinishedAt, dayTime).say(". The agent was told the result:"))
		p.exact(clip(resultText(s.hushed(e.Result)), maxResult))
	case approvers.ExecutionFailed:
		if e.ReportedBy != "" {
			s.reported(p, "⚠️ ", e)
			return
		}
		if e.Unrun {
			p.para(say("🚫 ").strong("It was not run after all").say(", ").at(e.FinishedAt, dayTime).say(": nothing was done. The agent was told:"))
			p.exact(clip(resultText(s.hushed(e.Result)), maxResult))
			return
		}
		p.para(say("⚠️ ").strong("The tool reported an error").say(", ").at(e.FinishedAt, dayTime).say(". The agent was told:"))
		p.exact(clip(resultText(s.hushed(e.Result)), maxResult))
	case approvers.ExecutionUnknown:
		p.para(s.lost(e), say("It is not run again by itself; somebody has to check."), s.onceMore())
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

// reported says who found out how a run ended, what became of that, and in which words, if there were any.
func (s scene) reported(p *page, sign string, e approvers.Execution) {
	line := say(sign).also(reportedBy(e)).say(", ").at(e.FinishedAt, dayTime).say("." + s.toldReport())
	if e.Result == "" {
		p.para(line)
		return
	}
	p.para(line.say(" The report:"))
	p.exact(clip(resultText(s.hushed(e.Result)), maxResult))
}

// toldReport says who learnt of a report. One that came late is kept, but the agent had gone on by then.
func (s scene) toldReport() string {
	switch r := s.Later; {
	case r == nil, r.State == approvers.Voided && s.Execution.State == approvers.ExecutionSucceeded:
	case r.State == approvers.Pending:
		return " Those who decide about the new request see it."
	default:
		return ""
	}
	if s.Call != nil && s.Call.Outcome == approvers.OutcomeUnknown {
		return " It came after the agent was told that nobody knows."
	}
	return " The agent was told so."
}

// hushed is a tool's answer without the secret values of its call.
func (s scene) hushed(result string) string {
	if s.Call == nil {
		return result
	}
	return hush(result, s.Execution.Args, s.Call.Secrets)
}

// resultText lays out a tool's answer. What is not one whole JSON object is shown as it is.
func resultText(s string) string {
	if s == "" {
		return "(an empty answer)"
	}
	if len(spans([]byte(s))) > 0 {
		return ArgumentText([]byte(s))
	}
	return Visible(s)
}
