package bot

import (
	"slices"
	"time"

	"countersign/approvers"
)

// reminder tells somebody that a request still waits for them; nothing is decided from here. Once it does not, it says so.
func (s scene) reminder(p *page, r approvers.Request, user string) {
	about := clip(whatHappens(r.Preview, r.Tool), maxNote)
	had := func(d approvers.Decision) bool { return d.By.User() == user && !d.Fallen && d.Digest == r.Digest }
	var line *prose
	switch {
	case r.State != approvers.Pending:
		line = say(endSign[r.State] + " ").strong(about).say(": ").also(s.ending(r))
	case slices.ContainsFunc(r.Decisions, had):
		line = say("☑️ You have decided: ").strong(about).say(". Others are still needed.")
	case s.Surface.CreatedAt.Before(r.StageAt):
		line = say("☑️ This went on to the next stage: ").strong(about).say(". It waits for " + s.waitsFor(r) + " now.")
	default:
		p.para(say("⏰ ").strong("Still waits for you: " + about))
		line = say("Asked by ").person(r.Facts.Asker, r.Facts.AskerName).say("; waits since ").at(began(r), dayTime).say(" for " + s.waitsFor(r) + ".")
		defer func() { p.para(s.otherwise(r)...) }()
	}
	if card := s.cardFor(user); card != "" {
		line.say(" ").link(card, "See the card")
	}
	p.para(line)
}

// began is when the current stage began. A request from before that was stored is as old as it.
func began(r approvers.Request) time.Time {
	if r.StageAt.IsZero() {
		return r.CreatedAt
	}
	return r.StageAt
}
