package notice

import (
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
)

// Pause draws the message that a pause has begun or ended. The message goes to the people who may end the pause.
func Pause(m wording.Version, pause settings.Pause) *block.Builder {
	p := new(block.Builder)
	switch {
	case pause.On && pause.Ref() == m.Message.Ref:
		p.Para(wording.Paused(pause), block.Say("No tool runs and no model is called. People can still decide. Deadlines do not change: an approved call that can't start in time expires."))
		ask := block.Confirm("End the pause?", "Approved calls that are still in time start, and the agents answer the waiting messages.", "Resume", "Not yet", slack.StylePrimary)
		p.Buttons("", block.Button(control.ActResume, "Resume", m.Token(m.Message.Ref), slack.StylePrimary).WithConfirm(ask))
	case !pause.On && (settings.Pause{Round: pause.Round - 1}).Ref() == m.Message.Ref:
		line := block.Say("▶️ ").Strong("The pause is over").Say(": ").Person(pause.By, "").Say(" ended it ").At(pause.At, block.DayTime)
		if pause.Reason != "" {
			line.Say(": ").Soft(block.Clip(block.OneLine(pause.Reason), block.MaxNote))
		}
		p.Para(line.Say("."))
	default:
		p.Para(block.Say("▶️ This pause is over."))
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
			parts = append(parts, block.Plural(what.n, what.noun)+" are "+what.does)
		}
	}
	if len(parts) == 0 {
		return "Nothing runs now."
	}
	return "Now " + strings.Join(parts, ", ") + "."
}

// PauseImpact asks for confirmation of a pause, and says which work the pause would stop.
func PauseImpact(s view.PauseImpact, reason string) *block.Builder {
	p := new(block.Builder)
	sum := stops(s)
	p.Para(block.Say("⏸️ ").Strong("Pause everything?").Say(" "+sum),
		block.Say("No tool runs and no model is called until somebody resumes. People can still decide. Deadlines do not change. Everybody who waits is told why: ").Soft(block.Clip(block.OneLine(reason), block.MaxNote)))
	ask := block.Confirm("Pause everything?", sum, "Pause everything", "Cancel", slack.StyleDanger)
	p.Buttons("", block.Button(control.ActPause, "Pause everything", reason, slack.StyleDanger).WithConfirm(ask))
	return p
}
