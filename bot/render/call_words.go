package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// callWords describes the state of a call to the people who asked for it.
type callWords struct {
	requestWords
	pause    settings.Pause
	progress map[string]RunProgress // by execution
}

// state returns the current state of a call.
func (w callWords) state(c view.Call) (sign string, line *RichText) {
	switch {
	case waits(c):
		if c.Queued {
			return "📚", w.waiting(*c.Request).Say(" It is queued there, behind other cards.")
		}
		return "✋", w.waiting(*c.Request)
	case c.Call.ModelQuestion != nil:
		return asksPeople(*c.Call.ModelQuestion, c.Call.Outcome)
	case c.Call.Outcome != "":
		return w.outcome(c)
	case c.Execution != nil && c.Execution.State == approvers.ExecutionUnknown:
		return "❓", w.allowedBy(c).Say("It was started, and its outcome is unknown. People are asked whether it happened.")
	case w.pause.On:
		return "⏸️", w.allowedBy(c).add(held(c))
	case c.Request != nil && c.Request.State == approvers.Approved:
		return "✅", w.allowedBy(c).Say("It is about to run.")
	case c.Asks:
		return "❓", w.allowedBy(c).Say("It waits for an answer from the person who asked.")
	case c.Execution != nil && c.Execution.State == approvers.ExecutionExecuting:
		return "▶️", w.allowedBy(c).add(w.running(c))
	}
	return "▶️", Say("Starting…")
}

// outcome returns the outcome of a call, and who decided.
func (w callWords) outcome(c view.Call) (string, *RichText) {
	if c.Execution != nil && c.Execution.ReportedBy != "" {
		return w.report(c)
	}
	switch c.Call.Outcome {
	case approvers.OutcomeExecuted:
		return "✅", w.allowedBy(c).Say("Done.").add(w.edited(c))
	case approvers.OutcomeError:
		if c.Execution != nil && c.Execution.Unrun {
			why := strings.TrimPrefix(strings.TrimPrefix(reasonOf(c), "it was not run, "), "it was not run: ")
			return "🚫", w.allowedBy(c).Say("Not run after all: ").Say(shortReason(c, why))
		}
		return "⚠️", w.allowedBy(c).Say("It did not work: ").Say(shortReason(c, reasonOf(c)))
	case approvers.OutcomeObserved:
		return "👁️", Say("Not run, because the bot only observes this for now: ").Say(shortReason(c, reasonOf(c))).Say(".")
	case approvers.OutcomeUnknown:
		return "❓", w.allowedBy(c).Say("It was started, and its outcome is unknown. The agent was told so.")
	}
	if c.Request == nil && c.Call.Outcome == approvers.OutcomeVoided {
		return "🚫", Say("Voided: ").Say(shortReason(c, reasonOf(c)))
	}
	if c.Request == nil {
		return "🚫", Say("Not run: ").Say(shortReason(c, reasonOf(c)))
	}
	return endSign[c.Request.State], w.ending(*c.Request)
}

// report returns a person's report about a call. The text comes from the person, and not from the tool.
func (w callWords) report(c view.Call) (string, *RichText) {
	sign := "✅"
	if c.Execution.State == approvers.ExecutionFailed {
		sign = "⚠️"
	}
	p := w.allowedBy(c).add(reportedBy(*c.Execution)).Say(".")
	if c.Call.Outcome == approvers.OutcomeUnknown {
		p.Say(" It came after the agent was told that the outcome is unknown.")
	}
	return sign, p.add(w.edited(c))
}

// allowedBy names the person who allowed a call that needed approval.
func (w callWords) allowedBy(c view.Call) *RichText {
	if c.Grant != nil {
		return w.underGrant(*c.Grant, *c.Execution)
	}
	if c.Request == nil || c.Request.ClosedBy == "" {
		return new(RichText)
	}
	if d, broken := c.Request.BrokenBy(); broken {
		return Say("Approved at the command line by ").Person(d.By, d.Name).Say(", in place of its approvers, ").At(d.At, clock).Say(". ")
	}
	return Say("Approved by ").add(w.countedApprovals(*c.Request)).Say(", ").At(c.Request.ClosedAt, clock).Say(". ")
}

// underGrant names the giver of the grant that a call used. It also says how many calls were left after this call.
func (w callWords) underGrant(g approvers.Grant, e approvers.Execution) *RichText {
	return Say("Under the permission of ").Person(g.By, g.Name).Say(fmt.Sprintf(" (%s), %d of %d left. ", w.title(g.Role), g.Uses-e.GrantUse, g.Uses))
}

func (w callWords) edited(c view.Call) *RichText {
	if c.Request == nil || len(c.Request.Edits) == 0 {
		return new(RichText)
	}
	e := c.Request.Edits[len(c.Request.Edits)-1]
	return Say(" The arguments were changed by ").Person(e.By, e.Name).Say(" (" + w.title(e.Role) + ") first.")
}

// shortReason returns the reason of a call's outcome as one short line, with the call's secrets masked.
func shortReason(c view.Call, reason string) string {
	return Clip(OneLine(maskSecrets(reason, []byte(c.Call.Args), c.Call.Secrets)), maxCallText)
}

// reasonOf returns the reason in a call's result.
func reasonOf(c view.Call) string {
	var r approvers.Result
	if json.Unmarshal([]byte(c.Call.Result), &r) == nil && r.Reason != "" {
		return r.Reason
	}
	return c.Call.Result
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

// asksPeople returns the status of a question from the model.
func asksPeople(q approvers.ModelQuestion, outcome approvers.Outcome) (sign string, line *RichText) {
	switch outcome {
	case "":
		return "❓", Say("Waits for your answer.")
	case approvers.OutcomeExecuted:
		return "💬", Say("").Person(q.By, q.Name).Say(" answered: ").Strong(Clip(OneLine(q.Answer), MaxNote))
	case approvers.OutcomeWithdrawn:
		return "↩️", Say("Not answered: the conversation moved on.")
	}
	return "⌛", Say("Nobody answered in time.")
}

// waits reports whether a call waits for a decision.
func waits(c view.Call) bool {
	return c.Request != nil && c.Request.State == approvers.Pending
}
