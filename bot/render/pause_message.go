package render

import (
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
)

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
