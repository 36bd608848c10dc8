package bot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// step draws the tool calls of one step of the model, in the asker's thread: what runs, what waits for whom, what became of it.
func (s scene) step() *page {
	p := new(page)
	words := strings.TrimSpace(s.Text)
	for _, c := range s.Calls {
		words = hush(words, []byte(c.Call.Args), c.Call.Secrets)
	}
	if words != "" {
		p.say(markdown(words), maxStepText, maxStepParts)
	}
	calls := slices.Clone(s.Calls)
	if len(calls) > maxStepCalls { // what waits for people comes first
		slices.SortStableFunc(calls, func(a, b desk.CallSight) int { return urgency(a) - urgency(b) })
	}
	s.tasks(p, calls)
	open := slices.ContainsFunc(calls, func(c desk.CallSight) bool { return c.Call.Outcome == "" })
	if open {
		p.para(s.pausedHere())
	}
	s.standings(p, calls)
	if open && s.Turn.State == approvers.TurnWaiting && s.Turn.Step == s.Surface.Step && s.Turn.Halted == "" {
		sure := confirm("Stop the agent?", "What waits here is taken back, and what runs is interrupted. What has happened already stays.", "Stop", "Go on", slack.StyleDanger)
		p.buttons("stop", button(actStop, "Stop", s.mark(s.Turn.ID), slack.StyleDefault).WithConfirm(sure))
	}
	if len(p.blocks) == 0 { // a step always has calls; Slack refuses an empty message
		p.para(say("…"))
	}
	return p
}

func urgency(c desk.CallSight) int {
	if waits(c) {
		return 0
	}
	if c.Call.Outcome == "" {
		return 1
	}
	return 2
}

// waits reports whether people are asked about a call.
func waits(c desk.CallSight) bool {
	return c.Request != nil && c.Request.State == approvers.Pending
}

// cardLink leads to the card in a channel. Cards in somebody's direct messages open for nobody else.
func (s scene) cardLink(c desk.CallSight) string {
	for _, card := range c.Cards {
		if (card.Kind == store.SurfaceCard || card.Kind == store.SurfaceBundle) && strings.HasPrefix(card.To, "channel:") {
			return s.permalink(card.Channel, card.TS, "")
		}
	}
	return ""
}

// state says where a call stands.
func (s scene) state(c desk.CallSight) (sign string, line *prose) {
	switch {
	case waits(c):
		if c.InLine {
			return "📚", s.waiting(*c.Request).say(" It waits in line there, behind other cards.")
		}
		return "✋", s.waiting(*c.Request)
	case c.Call.Inquiry != nil:
		return s.asksPeople(*c.Call.Inquiry, c.Call.Outcome)
	case c.Call.Outcome != "":
		return s.outcome(c)
	case c.Execution != nil && c.Execution.State == approvers.ExecutionUnknown:
		return "❓", s.decided(c).say("It was started, and nobody knows how it ended. People are asked whether it happened.")
	case s.Pause.On:
		return "⏸️", s.decided(c).also(s.held(c))
	case c.Request != nil && c.Request.State == approvers.Approved:
		return "✅", s.decided(c).say("It is about to run.")
	case c.Asks:
		return "❓", s.decided(c).say("It waits for an answer of whoever asked.")
	case c.Execution != nil && c.Execution.State == approvers.ExecutionExecuting:
		return "▶️", s.decided(c).also(s.running(c))
	}
	return "▶️", say("Starting…")
}

func (s scene) waiting(r approvers.Request) *prose {
	st := r.Plan.Stages[r.Stage]
	p := say("Waits for ").strong(s.stageTitle(st) + s.joined(r)).also(s.invited(r))
	if n := len(r.Plan.Stages); n > 1 {
		p.say(fmt.Sprintf(" (stage %d of %d)", r.Stage+1, n))
	}
	if st.Quorum > 1 {
		p.say(fmt.Sprintf(", %d of %d agreed", r.At(r.Stage), st.Quorum))
	}
	if len(r.Against(r.Stage)) > 0 {
		p.say(against(r, ", "))
	}
	p.say(". If nobody decides by ").at(r.ExpiresAt, dayTime).say(", it will not run.")
	if len(r.Edits) > 0 {
		e := r.Edits[len(r.Edits)-1]
		p.say(" ").person(e.By, e.Name).say(" (" + s.title(e.Role) + ") changed the arguments.")
	}
	return p
}

// outcome says what became of a call, and who decided.
func (s scene) outcome(c desk.CallSight) (string, *prose) {
	if c.Execution != nil && c.Execution.ReportedBy != "" {
		return s.report(c)
	}
	switch c.Call.Outcome {
	case approvers.OutcomeExecuted:
		return "✅", s.decided(c).say("Done.").also(s.edited(c))
	case approvers.OutcomeError:
		if c.Execution != nil && c.Execution.Unrun {
			return "🚫", s.decided(c).say("Not run after all: ").say(clip(oneLine(hush(strings.TrimPrefix(strings.TrimPrefix(reasonOf(c), "it was not run, "), "it was not run: "), []byte(c.Call.Args), c.Call.Secrets)), maxCallText))
		}
		return "⚠️", s.decided(c).say("It did not work: ").say(clip(oneLine(hush(reasonOf(c), []byte(c.Call.Args), c.Call.Secrets)), maxCallText))
	case approvers.OutcomeObserved:
		return "👁️", say("Not run, because the bot only observes this for now: ").say(clip(oneLine(hush(reasonOf(c), []byte(c.Call.Args), c.Call.Secrets)), maxCallText)).say(".")
	case approvers.OutcomeUnknown:
		return "❓", s.decided(c).say("It was started, and nobody knows how it ended. The agent was told so.")
	}
	if c.Request == nil && c.Call.Outcome == approvers.OutcomeVoided {
		return "🚫", say("Voided: ").say(clip(oneLine(hush(reasonOf(c), []byte(c.Call.Args), c.Call.Secrets)), maxCallText))
	}
	if c.Request == nil {
		return "🚫", say("Not run: ").say(clip(oneLine(hush(reasonOf(c), []byte(c.Call.Args), c.Call.Secrets)), maxCallText))
	}
	return endSign[c.Request.State], s.ending(*c.Request)
}

// report says what a person found out about a call: these are their words, not the tool's.
func (s scene) report(c desk.CallSight) (string, *prose) {
	sign := "✅"
	if c.Execution.State == approvers.ExecutionFailed {
		sign = "⚠️"
	}
	p := s.decided(c).also(reportedBy(*c.Execution)).say(".")
	if c.Call.Outcome == approvers.OutcomeUnknown {
		p.say(" It came after the agent was told that nobody knows.")
	}
	return sign, p.also(s.edited(c))
}

// decided says who allowed a call that people were asked about.
func (s scene) decided(c desk.CallSight) *prose {
	if c.Grant != nil {
		return s.underGrant(*c.Grant, *c.Execution)
	}
	if c.Request == nil || c.Request.ClosedBy == "" {
		return new(prose)
	}
	if d, broken := c.Request.BrokenBy(); broken {
		return say("Approved at the command line by ").person(d.By, d.Name).say(", in place of its approvers, ").at(d.At, clock).say(". ")
	}
	return say("Approved by ").also(s.agreed(*c.Request)).say(", ").at(c.Request.ClosedAt, clock).say(". ")
}

func (s scene) edited(c desk.CallSight) *prose {
	if c.Request == nil || len(c.Request.Edits) == 0 {
		return new(prose)
	}
	e := c.Request.Edits[len(c.Request.Edits)-1]
	return say(" The arguments were changed by ").person(e.By, e.Name).say(" (" + s.title(e.Role) + ") first.")
}

// reasonOf is the sentence in a call's result.
func reasonOf(c desk.CallSight) string {
	var r approvers.Result
	if json.Unmarshal([]byte(c.Call.Result), &r) == nil && r.Reason != "" {
		return r.Reason
	}
	return c.Call.Result
}

// briefly is a call's arguments on one line, if they are short; a longer list is on the card.
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
