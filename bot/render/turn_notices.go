package render

import (
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// problem says that a turn has stopped, with a button to try again.
func (v View) problem() *BlockBuilder {
	p := new(BlockBuilder)
	if v.Turn.State != approvers.TurnStopped {
		p.Para(Say("🔁 Somebody asked to try again; the agent went on."))
		return p
	}
	p.say(Markdown(v.Message.DraftText), maxSaidText, MaxParts-5) // the part of the answer that people have already seen
	text := Clip(Visible(v.Turn.Problem), MaxSentence)
	if text == "" {
		text = "The agent could not go on."
	}
	p.Para(Say("⚠️ ").Strong(text))
	if v.Turn.CanRetry {
		p.buttons("", button(ActTryAgain, "Try again", v.token(v.Turn.ID), slack.StylePrimary))
	}
	return p
}

// queued tells people why their messages wait, and how to continue without waiting.
func (v View) queued() Rendered {
	p := new(BlockBuilder)
	n := len(v.Queued)
	if v.Turn.State != approvers.TurnWaiting {
		p.Para(new(RichText).soft("The message that waited here was taken up."))
		return Single(p)
	}
	if n == 0 {
		p.Para(new(RichText).soft("Nothing waits here any more."))
		d := Single(p)
		d.Expired = true
		return d
	}
	line := Say("📥 ")
	if n == 1 {
		line.Strong("1 message waits")
	} else {
		line.Strong(fmt.Sprintf("%d messages wait", n))
	}
	line.Say(" until this is settled: ")
	open := 0
	for _, c := range v.Calls {
		if c.Call.Outcome != "" {
			continue
		}
		if open > 0 {
			line.Say("; ")
		}
		if open++; open > 3 {
			line.Say("and more")
			break
		}
		line.Say(Clip(inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), maxCallText))
		if waits(c) {
			line.Say(" (for " + v.stageTitle(c.Request.CurrentStage()) + ")")
		}
	}
	p.Para(line.Say("."), v.paused())
	again := confirm("Go on without it?", "Everything that still waits for a decision here is taken back and will not run. The agent then reads the new messages.", "Withdraw and go on", "Keep waiting", slack.StyleDanger)
	p.buttons("", button(ActWithdrawAll, "Withdraw and go on with this", v.token(v.Turn.ID), slack.StyleDefault).WithConfirm(again))
	return Single(p)
}
