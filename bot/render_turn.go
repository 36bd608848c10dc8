package bot

import (
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// problem says that a turn could not go on, with a way to try again.
func (s scene) problem() *page {
	p := new(page)
	if s.Turn.State != approvers.TurnStopped {
		p.para(say("🔁 Somebody asked to try again; the agent went on."))
		return p
	}
	p.say(markdown(s.Surface.Said), maxSaidText, maxParts-5) // what the model had written, where people have seen it
	text := clip(Visible(s.Turn.Problem), maxSentence)
	if text == "" {
		text = "The agent could not go on."
	}
	p.para(say("⚠️ ").strong(text))
	if s.Turn.CanRetry {
		p.buttons("", button(actTryAgain, "Try again", s.mark(s.Turn.ID), slack.StylePrimary))
	}
	return p
}

// queued tells people whose messages wait what they wait for, and how to go on without it.
func (s scene) queued() drawing {
	p := new(page)
	n := len(s.Queued)
	if s.Turn.State != approvers.TurnWaiting {
		p.para(new(prose).soft("The message that waited here was taken up."))
		return one(p)
	}
	if n == 0 {
		p.para(new(prose).soft("Nothing waits here any more."))
		d := one(p)
		d.over = true
		return d
	}
	line := say("📥 ")
	if n == 1 {
		line.strong("1 message waits")
	} else {
		line.strong(fmt.Sprintf("%d messages wait", n))
	}
	line.say(" until this is settled: ")
	open := 0
	for _, c := range s.Calls {
		if c.Call.Outcome != "" {
			continue
		}
		if open > 0 {
			line.say("; ")
		}
		if open++; open > 3 {
			line.say("and more")
			break
		}
		line.say(clip(inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), maxCallText))
		if waits(c) {
			line.say(" (for " + s.stageTitle(c.Request.Plan.Stages[c.Request.Stage]) + ")")
		}
	}
	p.para(line.say("."), s.paused())
	again := confirm("Go on without it?", "Everything that still waits for a decision here is taken back and will not run. The agent then reads the new messages.", "Withdraw and go on", "Keep waiting", slack.StyleDanger)
	p.buttons("", button(actGoOn, "Withdraw and go on with this", s.mark(s.Turn.ID), slack.StyleDefault).WithConfirm(again))
	return one(p)
}
