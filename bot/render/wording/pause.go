package wording

import (
	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
)

// Paused returns the note about a pause: by whom, since when and why. The note is empty if nothing is paused.
func Paused(p settings.Pause) *block.RichText {
	if !p.On {
		return new(block.RichText)
	}
	return pausedBy(p)
}

// pausedBy returns the note about a pause that is in force.
func pausedBy(p settings.Pause) *block.RichText {
	return block.Say("⏸️ ").Strong("Everything has been paused").Say(" by ").Person(p.By, "").Say(" since ").At(p.At, block.DayTime).Reason(p.Reason, block.MaxNote)
}

// PausedHere describes how a pause affects the waiting calls of a card or turn.
func PausedHere(p settings.Pause) *block.RichText {
	if !p.On {
		return new(block.RichText)
	}
	return pausedBy(p).Say(" You can still decide, but nothing runs until the pause ends. Deadlines do not change: an approved call that can't start in time expires.")
}

// Held returns the note about a call that needs no decision, and that a pause stops or delays.
func Held(c view.Call) *block.RichText {
	switch e := c.Execution; {
	case e != nil && e.State == approvers.ExecutionExecuting && e.Effect == approvers.Unprotected:
		return block.Say("Stopping, because everything is paused. The result will be shown here.")
	case e != nil && e.State == approvers.ExecutionExecuting:
		return block.Say("Interrupted, because everything is paused. It runs again when the pause ends.")
	case c.Request != nil && c.Request.State == approvers.Approved:
		return startsLater(*c.Request)
	}
	return block.Say("Not started, because everything is paused. It starts when the pause ends.")
}

// startsLater says that an approved call starts after the pause. It also says when the call expires if the pause lasts
// longer.
func startsLater(r approvers.Request) *block.RichText {
	return block.Say("It starts when the pause ends. If that is after ").At(r.RunBy, block.DayTime).Say(", it expires and will not run.")
}
