package bot

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// paused says that everything is, by whom, since when and why; empty where nothing is.
func (s scene) paused() *prose {
	if !s.Pause.On {
		return new(prose)
	}
	return pausedBy(s.Pause)
}

func pausedBy(p desk.Pause) *prose {
	line := say("⏸️ ").strong("Everything is paused").say(" by ").person(p.By, "").say(" since ").at(p.At, dayTime)
	if p.Reason != "" {
		return line.say(": ").soft(clip(oneLine(p.Reason), maxNote)).say(".")
	}
	return line.say(".")
}

// pausedHere says on a card, or among a turn's calls, what a pause means for what waits there.
func (s scene) pausedHere() *prose {
	if !s.Pause.On {
		return new(prose)
	}
	return s.paused().say(" What waits can still be decided, and its time runs on; nothing runs until somebody lets everything go on, and what is approved and can't start in its time expires.")
}

// held says of a call that nobody has to decide any more that a pause holds it up.
func (s scene) held(c desk.CallSight) *prose {
	switch e := c.Execution; {
	case e != nil && e.State == approvers.ExecutionExecuting && e.Effect == approvers.Unprotected:
		return say("It was told to stop, because everything is paused. What came of it is said here.")
	case e != nil && e.State == approvers.ExecutionExecuting:
		return say("Interrupted, because everything is paused. It is run again when everything goes on.")
	case c.Request != nil && c.Request.State == approvers.Approved:
		return s.startsLater(*c.Request)
	}
	return say("Not started, because everything is paused. It starts when everything goes on.")
}

// startsLater says when an approved call starts, and when it does not.
func (s scene) startsLater(r approvers.Request) *prose {
	return say("It starts when everything goes on. If that is not by ").at(r.RunBy, dayTime).say(", it expires and will not run.")
}

// standstill says to a conversation that a pause holds up what was said there, or that it went on.
func (s scene) standstill() *page {
	p := new(page)
	if !s.Pause.On {
		p.para(say("▶️ ").soft("A pause held this up. It went on ").at(s.Pause.At, dayTime).soft(", when ").person(s.Pause.By, "").soft(" ended the pause."))
		return p
	}
	kept := "What was said here is kept, and I go on with it when that ends."
	if n := len(s.Queued); n > 0 {
		kept = fmt.Sprintf("What was said here is kept, with %s that came later, and I go on with it when that ends.", plural(n, "message"))
	}
	p.para(s.paused().say(" " + kept))
	return p
}

// pause tells those who may end it that everything is paused, or that it goes on.
func (s scene) pause() *page {
	p := new(page)
	switch {
	case s.Pause.On && s.Pause.Ref() == s.Surface.Ref:
		p.para(s.paused(), say("No tool runs and no model is called. People can decide meanwhile, and the time for that runs on: what is approved and can't start in its time expires."))
		ask := confirm("Let everything go on?", "Approved calls that are still in their time start, and the model is called for what waits.", "Resume", "Not yet", slack.StylePrimary)
		p.buttons("", button(actResume, "Resume", s.mark(s.Surface.Ref), slack.StylePrimary).WithConfirm(ask))
	case !s.Pause.On && (desk.Pause{Round: s.Pause.Round - 1}).Ref() == s.Surface.Ref:
		line := say("▶️ ").strong("Everything goes on").say(" since ").at(s.Pause.At, dayTime).say(": ").person(s.Pause.By, "").say(" ended the pause")
		if s.Pause.Reason != "" {
			line.say(": ").soft(clip(oneLine(s.Pause.Reason), maxNote))
		}
		p.para(line.say("."))
	default:
		p.para(say("▶️ This pause is over."))
	}
	return p
}

// stops says what a pause would stop at this moment.
func stops(s desk.Stoppage) string {
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
			parts = append(parts, plural(what.n, what.noun)+" are "+what.does)
		}
	}
	if len(parts) == 0 {
		return "Nothing runs at this moment."
	}
	return "At this moment " + strings.Join(parts, ", ") + "."
}

// stoppage asks somebody who may whether everything is to be paused: it says what that would stop.
func stoppage(s desk.Stoppage, reason string) *page {
	p := new(page)
	sum := stops(s)
	p.para(say("⏸️ ").strong("Pause everything?").say(" "+sum),
		say("Nothing runs and no model is called until somebody resumes. People can decide meanwhile, and the time for that runs on. Everybody who waits is told: ").soft(clip(oneLine(reason), maxNote)))
	ask := confirm("Pause everything?", sum, "Pause everything", "Cancel", slack.StyleDanger)
	p.buttons("", button(actPause, "Pause everything", reason, slack.StyleDanger).WithConfirm(ask))
	return p
}
