package render

import (
	"countersign/approvers"
	"countersign/approvers/workflow/view"
)

// aftermath adds the outcome of a request and what the agent was told about it.
func (v View) aftermath(p *BlockBuilder, r approvers.Request) {
	switch {
	case r.State == approvers.Approved:
		if v.Pause.On {
			p.Para(v.paused(), v.startsLater(r))
			return
		}
		p.Para(Say("▶️ It is about to run, with exactly these arguments."))
	case r.State == approvers.Consumed && v.Execution != nil:
		v.ran(p, *v.Execution)
	case r.State == approvers.Rejected:
		p.Para(Say("It was not run. The agent was told that ").Say(v.closer(r)).Say(" rejected it and why, and to offer an alternative."))
	case r.Lost:
		p.Para(Say("❓ ").Strong("It is not known whether it ran").Say(": it may have been decided, and run, after that backup was made. The agent was told not to ask for it again before somebody has checked."))
	case r.State == approvers.Expired:
		p.Para(Say("It was not run. The agent was told so, and that it may be asked for again."))
	case r.State == approvers.Revoked:
		p.Para(Say("It was not run. The agent was told that ").Say(v.closer(r)).Say(" took the approval back and why, and to offer an alternative."))
	case r.State == approvers.Withdrawn:
		p.Para(Say("It was not run. The agent goes on with what is wanted now."))
	default:
		p.Para(Say("It was not run. The agent was told so."))
	}
}

// closer names who ended a request, as the agent was told: a role, never a person.
func (v View) closer(r approvers.Request) string {
	if r.ClosedBy.Login() != "" {
		return "the operator"
	}
	return v.title(r.ClosedRole)
}

// ran adds the outcome of a run.
func (v View) ran(p *BlockBuilder, e approvers.Execution) {
	switch e.State {
	case approvers.ExecutionNone, approvers.ExecutionExecuting:
		if v.Pause.On {
			p.Para(v.paused(), v.held(view.Call{Execution: &e}))
			return
		}
		p.Para(Say("▶️ It is running."))
	case approvers.ExecutionSucceeded:
		if e.ReportedBy != "" {
			v.reported(p, "🏁 ", e)
			return
		}
		p.Para(Say("🏁 ").Strong("It ran").Say(", ").At(e.FinishedAt, DayTime).Say(". The agent was told the result:"))
		p.exact(Clip(resultText(v.maskedResult(e.Result)), maxResult))
	case approvers.ExecutionFailed:
		if e.ReportedBy != "" {
			v.reported(p, "⚠️ ", e)
			return
		}
		if e.Unrun {
			p.Para(Say("🚫 ").Strong("It was not run after all").Say(", ").At(e.FinishedAt, DayTime).Say(": nothing was done. The agent was told:"))
			p.exact(Clip(resultText(v.maskedResult(e.Result)), maxResult))
			return
		}
		p.Para(Say("⚠️ ").Strong("The tool reported an error").Say(", ").At(e.FinishedAt, DayTime).Say(". The agent was told:"))
		p.exact(Clip(resultText(v.maskedResult(e.Result)), maxResult))
	case approvers.ExecutionUnknown:
		p.Para(v.lost(e), Say("It is not run again by itself; somebody has to check."), v.onceMore())
	}
}

// reportedBy says what a person reported about a run whose end nobody saw.
func reportedBy(e approvers.Execution) *RichText {
	found := "it happened"
	if e.State == approvers.ExecutionFailed {
		found = "it did not happen"
	}
	return Say("Reported by ").Person(e.ReportedBy, "").Say(": ").Strong(found)
}

// reported adds who reported the outcome of a run, the outcome, and the reporter's words if there are any.
func (v View) reported(p *BlockBuilder, sign string, e approvers.Execution) {
	line := Say(sign).also(reportedBy(e)).Say(", ").At(e.FinishedAt, DayTime).Say("." + v.toldReport())
	if e.Result == "" {
		p.Para(line)
		return
	}
	p.Para(line.Say(" The report:"))
	p.exact(Clip(resultText(v.maskedResult(e.Result)), maxResult))
}

// toldReport says who was informed of a report. A late report is kept, but by then the agent had continued.
func (v View) toldReport() string {
	switch r := v.Later; {
	case r == nil, r.State == approvers.Voided && v.Execution.State == approvers.ExecutionSucceeded:
	case r.State == approvers.Pending:
		return " Those who decide about the new request see it."
	default:
		return ""
	}
	if v.Call != nil && v.Call.Outcome == approvers.OutcomeUnknown {
		return " It came after the agent was told that nobody knows."
	}
	return " The agent was told so."
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
