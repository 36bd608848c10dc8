package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// step draws the tool calls of one step in the requester's thread: running calls, waiting calls with their approvers,
// and outcomes.
func (v View) step() *BlockBuilder {
	p := new(BlockBuilder)
	if words := stepWords(v.Text, v.Calls); words != "" {
		p.say(Markdown(words), maxStepText, maxStepParts)
	}
	calls := slices.Clone(v.Calls)
	if len(calls) > MaxStepCalls { // calls that wait for people come first
		slices.SortStableFunc(calls, func(a, b view.Call) int { return urgency(a) - urgency(b) })
	}
	v.tasks(p, calls)
	open := slices.ContainsFunc(calls, func(c view.Call) bool { return c.Call.Outcome == "" })
	if open {
		p.Para(v.pausedHere())
	}
	v.standings(p, calls)
	if open && v.Turn.State == approvers.TurnWaiting && v.Turn.Step == v.Message.Step && v.Turn.Halted == "" {
		sure := confirm("Stop the agent?", "What waits here is taken back, and what runs is interrupted. What has happened already stays.", "Stop", "Go on", slack.StyleDanger)
		p.buttons("stop", button(ActStop, "Stop", v.token(v.Turn.ID), slack.StyleDefault).WithConfirm(sure))
	}
	if len(p.Blocks) == 0 { // a step always has calls; Slack rejects an empty message
		p.Para(Say("…"))
	}
	return p
}

func urgency(c view.Call) int {
	if waits(c) {
		return 0
	}
	if c.Call.Outcome == "" {
		return 1
	}
	return 2
}

// waits reports whether a call waits for a decision.
func waits(c view.Call) bool {
	return c.Request != nil && c.Request.State == approvers.Pending
}

// cardLink returns the address of the card in a channel. Cards in direct messages are accessible only to their owners.
func (v View) cardLink(c view.Call) string {
	for _, card := range c.Cards {
		if (card.Kind == store.OutboxCard || card.Kind == store.OutboxBundle) && strings.HasPrefix(card.To, "channel:") {
			return v.permalink(card.Channel, card.TS, "")
		}
	}
	return ""
}

// state returns the current state of a call.
func (v View) state(c view.Call) (sign string, line *RichText) {
	switch {
	case waits(c):
		if c.Queued {
			return "📚", v.waiting(*c.Request).Say(" It waits in line there, behind other cards.")
		}
		return "✋", v.waiting(*c.Request)
	case c.Call.ModelQuestion != nil:
		return v.asksPeople(*c.Call.ModelQuestion, c.Call.Outcome)
	case c.Call.Outcome != "":
		return v.outcome(c)
	case c.Execution != nil && c.Execution.State == approvers.ExecutionUnknown:
		return "❓", v.decided(c).Say("It was started, and nobody knows how it ended. People are asked whether it happened.")
	case v.Pause.On:
		return "⏸️", v.decided(c).also(v.held(c))
	case c.Request != nil && c.Request.State == approvers.Approved:
		return "✅", v.decided(c).Say("It is about to run.")
	case c.Asks:
		return "❓", v.decided(c).Say("It waits for an answer of whoever asked.")
	case c.Execution != nil && c.Execution.State == approvers.ExecutionExecuting:
		return "▶️", v.decided(c).also(v.running(c))
	}
	return "▶️", Say("Starting…")
}

func (v View) waiting(r approvers.Request) *RichText {
	st := r.CurrentStage()
	p := Say("Waits for ").Strong(v.stageTitle(st) + v.joined(r)).also(v.invited(r))
	if n := len(r.Plan.Stages); n > 1 {
		p.Say(fmt.Sprintf(" (stage %d of %d)", r.Stage+1, n))
	}
	if st.Quorum > 1 {
		p.Say(fmt.Sprintf(", %d of %d agreed", r.At(r.Stage), st.Quorum))
	}
	if len(r.Against(r.Stage)) > 0 {
		p.Say(against(r, ", "))
	}
	p.Say(". If nobody decides by ").At(r.ExpiresAt, DayTime).Say(", it will not run.")
	if len(r.Edits) > 0 {
		e := r.Edits[len(r.Edits)-1]
		p.Say(" ").Person(e.By, e.Name).Say(" (" + v.title(e.Role) + ") changed the arguments.")
	}
	return p
}

// outcome returns the outcome of a call, and who decided.
func (v View) outcome(c view.Call) (string, *RichText) {
	if c.Execution != nil && c.Execution.ReportedBy != "" {
		return v.report(c)
	}
	switch c.Call.Outcome {
	case approvers.OutcomeExecuted:
		return "✅", v.decided(c).Say("Done.").also(v.edited(c))
	case approvers.OutcomeError:
		if c.Execution != nil && c.Execution.Unrun {
			return "🚫", v.decided(c).Say("Not run after all: ").Say(Clip(OneLine(maskSecrets(strings.TrimPrefix(strings.TrimPrefix(reasonOf(c), "it was not run, "), "it was not run: "), []byte(c.Call.Args), c.Call.Secrets)), maxCallText))
		}
		return "⚠️", v.decided(c).Say("It did not work: ").Say(Clip(OneLine(maskSecrets(reasonOf(c), []byte(c.Call.Args), c.Call.Secrets)), maxCallText))
	case approvers.OutcomeObserved:
		return "👁️", Say("Not run, because the bot only observes this for now: ").Say(Clip(OneLine(maskSecrets(reasonOf(c), []byte(c.Call.Args), c.Call.Secrets)), maxCallText)).Say(".")
	case approvers.OutcomeUnknown:
		return "❓", v.decided(c).Say("It was started, and nobody knows how it ended. The agent was told so.")
	}
	if c.Request == nil && c.Call.Outcome == approvers.OutcomeVoided {
		return "🚫", Say("Voided: ").Say(Clip(OneLine(maskSecrets(reasonOf(c), []byte(c.Call.Args), c.Call.Secrets)), maxCallText))
	}
	if c.Request == nil {
		return "🚫", Say("Not run: ").Say(Clip(OneLine(maskSecrets(reasonOf(c), []byte(c.Call.Args), c.Call.Secrets)), maxCallText))
	}
	return endSign[c.Request.State], v.ending(*c.Request)
}

// report returns a person's report about a call. The text is the person's, not the tool's.
func (v View) report(c view.Call) (string, *RichText) {
	sign := "✅"
	if c.Execution.State == approvers.ExecutionFailed {
		sign = "⚠️"
	}
	p := v.decided(c).also(reportedBy(*c.Execution)).Say(".")
	if c.Call.Outcome == approvers.OutcomeUnknown {
		p.Say(" It came after the agent was told that nobody knows.")
	}
	return sign, p.also(v.edited(c))
}

// decided says who allowed a call that needed approval.
func (v View) decided(c view.Call) *RichText {
	if c.Grant != nil {
		return v.underGrant(*c.Grant, *c.Execution)
	}
	if c.Request == nil || c.Request.ClosedBy == "" {
		return new(RichText)
	}
	if d, broken := c.Request.BrokenBy(); broken {
		return Say("Approved at the command line by ").Person(d.By, d.Name).Say(", in place of its approvers, ").At(d.At, clock).Say(". ")
	}
	return Say("Approved by ").also(v.agreed(*c.Request)).Say(", ").At(c.Request.ClosedAt, clock).Say(". ")
}

func (v View) edited(c view.Call) *RichText {
	if c.Request == nil || len(c.Request.Edits) == 0 {
		return new(RichText)
	}
	e := c.Request.Edits[len(c.Request.Edits)-1]
	return Say(" The arguments were changed by ").Person(e.By, e.Name).Say(" (" + v.title(e.Role) + ") first.")
}

// reasonOf returns the reason in a call's result.
func reasonOf(c view.Call) string {
	var r approvers.Result
	if json.Unmarshal([]byte(c.Call.Result), &r) == nil && r.Reason != "" {
		return r.Reason
	}
	return c.Call.Result
}

// briefly returns a call's arguments on one line, or "" if they are long. The card shows long ones.
func briefly(args string, secrets []string) string {
	if len(args) > 2<<10 {
		return ""
	}
	text := strings.ReplaceAll(maskedText([]byte(args), secrets), "\n", ", ")
	if text == "(no arguments)" {
		return ""
	}
	return "(" + short(text, 160) + ")"
}
