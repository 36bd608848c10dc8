package render

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
)

// paused says that everything is paused, by whom, since when and why. It is empty if nothing is paused.
func (v View) paused() *RichText {
	if !v.Pause.On {
		return new(RichText)
	}
	return PausedBy(v.Pause)
}

func PausedBy(p settings.Pause) *RichText {
	line := Say("⏸️ ").Strong("Everything is paused").Say(" by ").Person(p.By, "").Say(" since ").At(p.At, DayTime)
	if p.Reason != "" {
		return line.Say(": ").soft(Clip(OneLine(p.Reason), MaxNote)).Say(".")
	}
	return line.Say(".")
}

// pausedHere says how a pause affects the waiting calls of a card or turn.
func (v View) pausedHere() *RichText {
	if !v.Pause.On {
		return new(RichText)
	}
	return v.paused().Say(" What waits can still be decided, and its time runs on; nothing runs until somebody lets everything go on, and what is approved and can't start in its time expires.")
}

// held says that a pause delays a call that needs no further decision.
func (v View) held(c view.Call) *RichText {
	switch e := c.Execution; {
	case e != nil && e.State == approvers.ExecutionExecuting && e.Effect == approvers.Unprotected:
		return Say("It was told to stop, because everything is paused. What came of it is said here.")
	case e != nil && e.State == approvers.ExecutionExecuting:
		return Say("Interrupted, because everything is paused. It is run again when everything goes on.")
	case c.Request != nil && c.Request.State == approvers.Approved:
		return v.startsLater(*c.Request)
	}
	return Say("Not started, because everything is paused. It starts when everything goes on.")
}

// startsLater says when an approved call starts after the pause, and when it expires instead.
func (v View) startsLater(r approvers.Request) *RichText {
	return Say("It starts when everything goes on. If that is not by ").At(r.RunBy, DayTime).Say(", it expires and will not run.")
}

// standstill tells a conversation that a pause delays its messages, or that the pause is over.
func (v View) standstill() *BlockBuilder {
	p := new(BlockBuilder)
	if !v.Pause.On {
		p.Para(Say("▶️ ").soft("A pause held this up. It went on ").At(v.Pause.At, DayTime).soft(", when ").Person(v.Pause.By, "").soft(" ended the pause."))
		return p
	}
	kept := "What was said here is kept, and I go on with it when that ends."
	if n := len(v.Queued); n > 0 {
		kept = fmt.Sprintf("What was said here is kept, with %s that came later, and I go on with it when that ends.", Plural(n, "message"))
	}
	p.Para(v.paused().Say(" " + kept))
	return p
}

// pause tells the people who may end a pause that it began or ended.
func (v View) pause() *BlockBuilder {
	p := new(BlockBuilder)
	switch {
	case v.Pause.On && v.Pause.Ref() == v.Message.Ref:
		p.Para(v.paused(), Say("No tool runs and no model is called. People can decide meanwhile, and the time for that runs on: what is approved and can't start in its time expires."))
		ask := confirm("Let everything go on?", "Approved calls that are still in their time start, and the model is called for what waits.", "Resume", "Not yet", slack.StylePrimary)
		p.buttons("", button(ActResume, "Resume", v.token(v.Message.Ref), slack.StylePrimary).WithConfirm(ask))
	case !v.Pause.On && (settings.Pause{Round: v.Pause.Round - 1}).Ref() == v.Message.Ref:
		line := Say("▶️ ").Strong("Everything goes on").Say(" since ").At(v.Pause.At, DayTime).Say(": ").Person(v.Pause.By, "").Say(" ended the pause")
		if v.Pause.Reason != "" {
			line.Say(": ").soft(Clip(OneLine(v.Pause.Reason), MaxNote))
		}
		p.Para(line.Say("."))
	default:
		p.Para(Say("▶️ This pause is over."))
	}
	return p
}

// stops lists what a pause would stop now.
func stops(s view.PauseImpact) string {
	var parts []string
	for _, what := range []struct {
		n          int
		noun, does string
	}{{s.Runs, "tool run", "interrupted"}, {s.Thinking, "model call", "put off"}, {s.Approved, "allowed call", "not started"}} {
		switch what.n {
		case 0:
		case 1:
			parts = append(parts, "1 "+what.noun+" is "+what.does)
		default:
			parts = append(parts, Plural(what.n, what.noun)+" are "+what.does)
		}
	}
	if len(parts) == 0 {
		return "Nothing runs at this moment."
	}
	return "At this moment " + strings.Join(parts, ", ") + "."
}

// PauseImpact asks for confirmation of a pause, and says what it would stop.
func PauseImpact(s view.PauseImpact, reason string) *BlockBuilder {
	p := new(BlockBuilder)
	sum := stops(s)
	p.Para(Say("⏸️ ").Strong("Pause everything?").Say(" "+sum),
		Say("Nothing runs and no model is called until somebody resumes. People can decide meanwhile, and the time for that runs on. Everybody who waits is told: ").soft(Clip(OneLine(reason), MaxNote)))
	ask := confirm("Pause everything?", sum, "Pause everything", "Cancel", slack.StyleDanger)
	p.buttons("", button(ActPause, "Pause everything", reason, slack.StyleDanger).WithConfirm(ask))
	return p
}
