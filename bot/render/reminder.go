package render

import (
	"slices"
	"time"

	"countersign/approvers"
)

// reminder tells a person that a request still waits for them, or that it no longer does. It has no decision buttons.
func (v View) reminder(p *BlockBuilder, r approvers.Request, user string) {
	about := Clip(whatHappens(r.Preview, r.Tool), MaxNote)
	had := func(d approvers.Decision) bool { return d.By.User() == user && !d.Fallen && d.Digest == r.Digest }
	var line *RichText
	switch {
	case r.State != approvers.Pending:
		line = Say(endSign[r.State] + " ").Strong(about).Say(": ").also(v.ending(r))
	case slices.ContainsFunc(r.Decisions, had):
		line = Say("☑️ You have decided: ").Strong(about).Say(". Others are still needed.")
	case v.Message.CreatedAt.Before(r.StageAt):
		line = Say("☑️ This went on to the next stage: ").Strong(about).Say(". It waits for " + v.waitsFor(r) + " now.")
	default:
		p.Para(Say("⏰ ").Strong("Still waits for you: " + about))
		line = Say("Asked by ").Person(r.Facts.Asker, r.Facts.AskerName).Say("; waits since ").At(began(r), DayTime).Say(" for " + v.waitsFor(r) + ".")
		defer func() { p.Para(v.otherwise(r)...) }()
	}
	if card := v.cardFor(user); card != "" {
		line.Say(" ").link(card, "See the card")
	}
	p.Para(line)
}

// began returns the start of the current stage. Older records have no such time; for them it is the request's creation
// time.
func began(r approvers.Request) time.Time {
	if r.StageAt.IsZero() {
		return r.CreatedAt
	}
	return r.StageAt
}
