package render

import (
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/slackapi"
	"countersign/store"
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

// unknown asks people to report the outcome of a run that is not known.
func (v View) unknown() Rendered {
	e := *v.Execution
	p := new(BlockBuilder)
	what := whatHappens(v.Call.Preview, e.Tool)
	text := maskedText(e.Args, v.Call.Secrets)
	whole := fitsCard(text)
	p.headline("Did this happen?" + found[e.State])
	p.Para(new(RichText).Strong(what))
	if e.State != approvers.ExecutionUnknown {
		v.ran(p, e)
		p.Para(v.onceMore())
		return Rendered{Messages: []Message{p.Message()}, Shows: []store.Shown{{Request: e.Request, Digest: e.Digest, Whole: whole}}}
	}
	p.Para(v.lost(e), Say("It is not run again by itself. Please look where it would show, then say what you found."))
	v.arguments(p, text, whole)
	if v.Request != nil && !strings.HasPrefix(v.Message.To, store.ToConversation) {
		v.asked(p, *v.Request)
	}
	p.Para(v.untilTold())
	p.Para(v.onceMore())
	v.findings(p, e, what)
	return Rendered{Messages: []Message{p.Message()}, Shows: []store.Shown{{Request: e.Request, Digest: e.Digest, Whole: whole}}}
}

// found describes a report about a run with an unknown outcome.
var found = map[approvers.ExecutionState]string{approvers.ExecutionSucceeded: " It did.", approvers.ExecutionFailed: " It did not."}

// lost says why the outcome of a run is unknown.
func (v View) lost(e approvers.Execution) *RichText {
	line := Say("❓ ")
	switch e.Loss {
	case approvers.LossPaused:
		line.Strong("Everything was paused while " + Name(e.Tool) + " was running")
	case approvers.LossHalted:
		line.Strong("The agent was stopped while " + Name(e.Tool) + " was running")
	case approvers.LossUnclear:
		line.Strong(Name(e.Tool) + " could not tell whether it acted")
	case approvers.LossRestored:
		line.Strong("The bot was put back to an earlier state while " + Name(e.Tool) + " was running")
	default:
		line.Strong("The bot stopped while " + Name(e.Tool) + " was running")
	}
	return line.Say(", started ").At(e.StartedAt, DayTime).Say(". It may or may not have happened.")
}

// untilTold says until when the agent waits for the report, or that it was told that the outcome is unknown.
func (v View) untilTold() *RichText {
	switch {
	case v.Call.Outcome != "" && v.Later == nil:
		line := Say("The agent was told that nobody knows")
		if by := v.Execution.LeftBy; by != "" {
			line.Say(": ").Person(by, "").Say(" left it so")
		}
		return line.Say(". You can still say what happened; it is kept in the history. To have it done after all, ask the agent anew in the thread.")
	case v.Call.Outcome == "" && v.Later == nil && !v.LeaveAt.IsZero():
		return Say("⏳ If nobody says so by ").At(v.LeaveAt, DayTime).Say(", the agent is told that nobody knows.")
	}
	return new(RichText)
}

// onceMore says who requested a call again, and the state of that request.
func (v View) onceMore() *RichText {
	if v.Later == nil {
		return new(RichText)
	}
	r := *v.Later
	line := Say("🔁 ").Strong("Asked again").Say(" by ").Person(r.Retry.By, r.Retry.Name).Say(", ").At(r.Retry.At, DayTime).Say(". ")
	if r.State == approvers.Pending {
		line.Say("It waits for " + v.stageTitle(r.CurrentStage()) + v.joined(r) + ".")
	} else {
		line.Say(endSign[r.State] + " ").also(v.ending(r))
	}
	if link := v.cardFor(strings.TrimPrefix(v.Message.To, store.ToUser)); link != "" {
		line.Say(" · ").link(link, "See the card")
	}
	return line
}

// findings adds the buttons that report the outcome, and the one that requests the call again.
func (v View) findings(p *BlockBuilder, e approvers.Execution, what string) {
	value := v.token(e.ID)
	didNot := "\n\nThe agent is told that it was not done. It may then ask for it again, as a new request."
	switch {
	case v.Later != nil && v.Later.State == approvers.Pending:
		didNot = "\n\nThose who decide about the new request see it."
	case v.Call.Outcome != "":
		didNot = "\n\nIt is kept in the history."
	}
	sure := confirm("It did not happen?", Clip(what, slackapi.MaxConfirm-Width(didNot))+didNot, "It did not happen", "Cancel", slack.StyleDanger)
	row := []slack.BlockElement{
		button(ActHappened, "It happened…", value, slack.StyleDefault),
		button(ActDidNot, "It did not", value, slack.StyleDefault).WithConfirm(sure),
	}
	if v.Call.Outcome == "" && v.Later == nil {
		const twice = "\n\nIf it did happen, it would happen a second time. It is a new request: everybody who has to approve it is asked anew."
		again := confirm("Ask again?", Clip(what, slackapi.MaxConfirm-Width(twice))+twice, "Ask again", "Cancel", slack.StyleDanger)
		row = append(row, button(ActLeave, "Leave it, tell the agent", value, slack.StyleDefault),
			button(ActAskAgain, "Ask again", value, slack.StyleDefault).WithConfirm(again))
	}
	p.buttons("", row...)
	if v.Later != nil && v.Later.State.Open() {
		p.Small("What became of the earlier run is still worth knowing: if you report that it happened, the new request ends as long as it has not run.")
	}
}

// earlier says on the card of a repeated request that the call may have happened already, and what has been reported
// about the earlier run.
func (v View) earlier(r approvers.Request) *RichText {
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

// twice warns an approver that the call may have happened already and would happen again.
func twice(r approvers.Request) string {
	if r.Retry == nil || r.Retry.Found == approvers.ExecutionFailed {
		return ""
	}
	return "It may have happened already: if it did, it happens a second time."
}

// earlierLink returns the address of the question about the earlier run: beside this card, in a channel, or in the
// thread.
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

// againInStep says in a step that a call is requested again.
func againInStep(r *approvers.Request) *RichText {
	if r == nil || r.Retry == nil {
		return new(RichText)
	}
	line := Say(" Asked again by ").Person(r.Retry.By, r.Retry.Name)
	if r.Retry.Found == approvers.ExecutionFailed {
		return line.Say(": an earlier run did not happen, as was reported.")
	}
	return line.Say(": nobody knows whether an earlier run happened.")
}
