package bot

import (
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/store"
)

// problem says that a turn could not go on, with a way to try again.
func (s scene) problem() *page {
	p := new(page)
	if s.Turn.State != approvers.TurnStopped {
		p.para(say("🔁 Somebody asked to try again; the agent went on."))
		return p
	}
	text := clip(visible(s.Turn.Problem), maxSentence)
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
func (s scene) queued() *page {
	p := new(page)
	n := len(s.Queued)
	if s.Turn.State != approvers.TurnWaiting || n == 0 {
		p.para(new(prose).soft("The message that waited here was taken up."))
		return p
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
		line.say(clip(inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args)), maxCallText))
		if waits(c) {
			line.say(" (for " + s.stageTitle(c.Request.Plan.Stages[c.Request.Stage]) + ")")
		}
	}
	p.para(line.say("."))
	again := confirm("Go on without it?", "Everything that still waits for a decision here is taken back and will not run. The agent then reads the new messages.", "Withdraw and go on", "Keep waiting", slack.StyleDanger)
	p.buttons("", button(actGoOn, "Withdraw and go on with this", s.mark(s.Turn.ID), slack.StyleDefault).WithConfirm(again))
	return p
}

// unknown asks people whether a run happened whose process stopped.
func (s scene) unknown() drawing {
	e := *s.Execution
	p := new(page)
	what := whatHappens(s.Call.Preview, e.Tool)
	p.headline("Did this happen?")
	p.para(new(prose).strong(what))
	text := argumentText(e.Args)
	if e.State != approvers.ExecutionUnknown {
		s.ran(p, e)
		return drawing{messages: []message{p.message()}, shows: []store.Shown{{Request: e.Request, Digest: e.Digest, Whole: fitsCard(text)}}}
	}
	p.para(say("❓ This was started, ").at(e.StartedAt, dayTime).
		say(", and nobody knows how it ended: the bot stopped meanwhile, or no answer came. The tool can't be run twice safely. It will not be run again by itself. Please check in ").code(name(e.Tool)).
		say("'s own system, then say what you found."))
	whole := fitsCard(text)
	s.arguments(p, text, whole)
	if s.Call.Outcome != "" {
		p.para(say("The agent was told that nobody knows. You can still say what happened; it is kept in the history."))
	}
	value := s.mark(e.ID)
	p.buttons("",
		button(actHappened, "It happened…", value, slack.StyleDefault),
		button(actDidNot, "It did not", value, slack.StyleDefault).WithConfirm(confirm("It did not happen?",
			what+"\n\nThe agent is told that it was not done. It may then ask for it again, as a new request.", "It did not happen", "Cancel", slack.StyleDanger)),
		button(actLeave, "Leave it, tell the agent", value, slack.StyleDefault),
	)
	return drawing{messages: []message{p.message()}, shows: []store.Shown{{Request: e.Request, Digest: e.Digest, Whole: whole}}}
}
