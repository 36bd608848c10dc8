package render

import (
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
)

// paused returns the note about a pause: by whom, since when and why. The note is empty if nothing is paused.
func paused(p settings.Pause) *RichText {
	if !p.On {
		return new(RichText)
	}
	return PausedBy(p)
}

func PausedBy(p settings.Pause) *RichText {
	return Say("⏸️ ").Strong("Everything has been paused").Say(" by ").Person(p.By, "").Say(" since ").At(p.At, DayTime).reason(p.Reason, MaxNote)
}

// pausedHere describes how a pause affects the waiting calls of a card or turn.
func pausedHere(p settings.Pause) *RichText {
	if !p.On {
		return new(RichText)
	}
	return PausedBy(p).Say(" You can still decide, but nothing runs until the pause ends. Deadlines do not change: an approved call that can't start in time expires.")
}

// held returns the note about a call that needs no decision, and that a pause stops or delays.
func held(c view.Call) *RichText {
	switch e := c.Execution; {
	case e != nil && e.State == approvers.ExecutionExecuting && e.Effect == approvers.Unprotected:
		return Say("Stopping, because everything is paused. The result will be shown here.")
	case e != nil && e.State == approvers.ExecutionExecuting:
		return Say("Interrupted, because everything is paused. It runs again when the pause ends.")
	case c.Request != nil && c.Request.State == approvers.Approved:
		return startsLater(*c.Request)
	}
	return Say("Not started, because everything is paused. It starts when the pause ends.")
}

// startsLater says that an approved call starts after the pause. It also says when the call expires if the pause lasts
// longer.
func startsLater(r approvers.Request) *RichText {
	return Say("It starts when the pause ends. If that is after ").At(r.RunBy, DayTime).Say(", it expires and will not run.")
}

// pauseMessage draws the message that a pause has begun or ended. The message goes to the people who may end the pause.
func pauseMessage(m version, pause settings.Pause) *BlockBuilder {
	p := new(BlockBuilder)
	switch {
	case pause.On && pause.Ref() == m.message.Ref:
		p.Para(PausedBy(pause), Say("No tool runs and no model is called. People can still decide. Deadlines do not change: an approved call that can't start in time expires."))
		ask := confirm("End the pause?", "Approved calls that are still in time start, and the agents answer what waits.", "Resume", "Not yet", slack.StylePrimary)
		p.buttons("", button(ActResume, "Resume", m.token(m.message.Ref), slack.StylePrimary).WithConfirm(ask))
	case !pause.On && (settings.Pause{Round: pause.Round - 1}).Ref() == m.message.Ref:
		line := Say("▶️ ").Strong("The pause is over").Say(": ").Person(pause.By, "").Say(" ended it ").At(pause.At, DayTime)
		if pause.Reason != "" {
			line.Say(": ").soft(Clip(OneLine(pause.Reason), MaxNote))
		}
		p.Para(line.Say("."))
	default:
		p.Para(Say("▶️ This pause is over."))
	}
	return p
}

// stops lists the work that a pause would stop now.
func stops(s view.PauseImpact) string {
	var parts []string
	for _, what := range []struct {
		n          int
		noun, does string
	}{{s.Runs, "tool run", "interrupted"}, {s.Thinking, "model call", "delayed"}, {s.Approved, "allowed call", "not started"}} {
		switch what.n {
		case 0:
		case 1:
			parts = append(parts, "1 "+what.noun+" is "+what.does)
		default:
			parts = append(parts, Plural(what.n, what.noun)+" are "+what.does)
		}
	}
	if len(parts) == 0 {
		return "Nothing runs now."
	}
	return "Now " + strings.Join(parts, ", ") + "."
}

// PauseImpact asks for confirmation of a pause, and says which work the pause would stop.
func PauseImpact(s view.PauseImpact, reason string) *BlockBuilder {
	p := new(BlockBuilder)
	sum := stops(s)
	p.Para(Say("⏸️ ").Strong("Pause everything?").Say(" "+sum),
		Say("No tool runs and no model is called until somebody resumes. People can still decide. Deadlines do not change. Everybody who waits is told why: ").soft(Clip(OneLine(reason), MaxNote)))
	ask := confirm("Pause everything?", sum, "Pause everything", "Cancel", slack.StyleDanger)
	p.buttons("", button(ActPause, "Pause everything", reason, slack.StyleDanger).WithConfirm(ask))
	return p
}
