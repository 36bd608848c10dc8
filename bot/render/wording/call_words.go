package wording

import (
	"encoding/json"
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
)

// CallWords describes the state of a call to the people who asked for it.
type CallWords struct {
	RequestWords
	Pause    settings.Pause
	progress map[string]RunProgress // the progress of runs, by execution
}

// State returns the current state of a call.
func (w CallWords) State(c view.Call) (sign string, line *block.RichText) {
	switch {
	case Waits(c):
		if c.Queued {
			return "📚", w.Waiting(*c.Request).Say(" It is queued there, behind other cards.")
		}
		return "✋", w.Waiting(*c.Request)
	case c.Call.ModelQuestion != nil:
		return AsksPeople(*c.Call.ModelQuestion, c.Call.Outcome)
	case c.Call.Outcome != "":
		return w.outcome(c)
	case c.Execution != nil && c.Execution.State == approvers.ExecutionUnknown:
		return "❓", w.AllowedBy(c).Say("It was started, and its outcome is unknown. People are asked whether it happened.")
	case w.Pause.On:
		return "⏸️", w.AllowedBy(c).Add(Held(c))
	case c.Request != nil && c.Request.State == approvers.Approved:
		return "✅", w.AllowedBy(c).Say("It is about to run.")
	case c.Asks:
		return "❓", w.AllowedBy(c).Say("It waits for an answer from the person who asked.")
	case c.Execution != nil && c.Execution.State == approvers.ExecutionExecuting:
		return "▶️", w.AllowedBy(c).Add(w.running(c))
	}
	return "▶️", block.Say("Starting…")
}

// outcome returns the outcome of a call, and who decided.
func (w CallWords) outcome(c view.Call) (string, *block.RichText) {
	if c.Execution != nil && c.Execution.ReportedBy != "" {
		return w.report(c)
	}
	switch c.Call.Outcome {
	case approvers.OutcomeExecuted:
		return "✅", w.AllowedBy(c).Say("Done.").Add(w.edited(c))
	case approvers.OutcomeError:
		if c.Execution != nil && c.Execution.Unrun {
			why := strings.TrimPrefix(strings.TrimPrefix(reasonOf(c), "it was not run, "), "it was not run: ")
			return "🚫", w.AllowedBy(c).Say("Not run after all: ").Say(shortReason(c, why))
		}
		return "⚠️", w.AllowedBy(c).Say("It did not work: ").Say(shortReason(c, reasonOf(c)))
	case approvers.OutcomeObserved:
		return "👁️", block.Say("Not run, because the bot only observes this for now: ").Say(shortReason(c, reasonOf(c))).Say(".")
	case approvers.OutcomeUnknown:
		if c.Execution == nil {
			return "❓", w.AllowedBy(c).Say("Its records are lost, so it is not known whether it ran. The agent was told so.")
		}
		return "❓", w.AllowedBy(c).Say("It was started, and its outcome is unknown. The agent was told so.")
	}
	if c.Request == nil && c.Call.Outcome == approvers.OutcomeVoided {
		return "🚫", block.Say("Voided: ").Say(shortReason(c, reasonOf(c)))
	}
	if c.Request == nil {
		return "🚫", block.Say("Not run: ").Say(shortReason(c, reasonOf(c)))
	}
	return EndSign(*c.Request), w.Ending(*c.Request)
}

// report returns a person's report about a call. The text comes from the person, and not from the tool.
func (w CallWords) report(c view.Call) (string, *block.RichText) {
	sign := "✅"
	if c.Execution.State == approvers.ExecutionFailed {
		sign = "⚠️"
	}
	p := w.AllowedBy(c).Add(ReportedBy(*c.Execution)).Say(".")
	if c.Call.Outcome == approvers.OutcomeUnknown {
		p.Say(" The report came after the agent was told that the outcome is unknown.")
	}
	return sign, p.Add(w.edited(c))
}

// AllowedBy names the person who allowed a call that needed approval.
func (w CallWords) AllowedBy(c view.Call) *block.RichText {
	if c.Grant != nil {
		return w.underGrant(*c.Grant, *c.Execution)
	}
	if c.Request == nil || c.Request.ClosedBy == "" {
		return new(block.RichText)
	}
	if d, broken := c.Request.BrokenBy(); broken {
		return block.Say("Approved at the command line by ").Person(d.By, d.Name).Say(", in place of its approvers, ").At(d.At, block.Clock).Say(". ")
	}
	return block.Say("Approved by ").Add(w.countedApprovals(*c.Request)).Say(", ").At(c.Request.ClosedAt, block.Clock).Say(". ")
}

// underGrant names the giver of the grant that a call used. It also says how many calls were left after this call.
func (w CallWords) underGrant(g approvers.Grant, e approvers.Execution) *block.RichText {
	return block.Say("Under the grant of ").Person(g.By, g.Name).Say(fmt.Sprintf(" (%s), %d of %d left. ", w.Title(g.Role), g.Uses-e.GrantUse, g.Uses))
}

func (w CallWords) edited(c view.Call) *block.RichText {
	if c.Request == nil || len(c.Request.Edits) == 0 {
		return new(block.RichText)
	}
	e := c.Request.Edits[len(c.Request.Edits)-1]
	return block.Say(" The arguments were changed by ").Person(e.By, e.Name).Say(" (" + w.Title(e.Role) + ") first.")
}

// shortReason returns the reason of a call's outcome as one short line, with the call's secrets masked.
func shortReason(c view.Call, reason string) string {
	return block.Clip(block.OneLine(argument.MaskSecrets(reason, []byte(c.Call.Args), c.Call.Secrets)), block.MaxCallText)
}

// reasonOf returns the reason in a call's result.
func reasonOf(c view.Call) string {
	var r approvers.Result
	if json.Unmarshal([]byte(c.Call.Result), &r) == nil && r.Reason != "" {
		return r.Reason
	}
	return c.Call.Result
}

// ReportedBy returns what a person reported about a run whose outcome was unknown.
func ReportedBy(e approvers.Execution) *block.RichText {
	found := "it happened"
	if e.State == approvers.ExecutionFailed {
		found = "it did not happen"
	}
	return block.Say("Reported by ").Person(e.ReportedBy, "").Say(": ").Strong(found)
}

// AsksPeople returns the status of a question from the model.
func AsksPeople(q approvers.ModelQuestion, outcome approvers.Outcome) (sign string, line *block.RichText) {
	switch outcome {
	case "":
		return "❓", block.Say("Waits for your answer.")
	case approvers.OutcomeExecuted:
		return "💬", block.Say("").Person(q.By, q.Name).Say(" answered: ").Strong(block.Clip(block.OneLine(q.Answer), block.MaxNote))
	case approvers.OutcomeWithdrawn:
		return "↩️", block.Say("Not answered: the conversation moved on.")
	}
	return "⌛", block.Say("Nobody answered in time.")
}

// Waits reports whether a call waits for a decision.
func Waits(c view.Call) bool {
	return c.Request != nil && c.Request.State == approvers.Pending
}
