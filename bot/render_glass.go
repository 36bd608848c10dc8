package bot

import (
	"fmt"

	"countersign/approvers"
)

// broken tells those who would have been asked, and their leads, that an operator allowed a call in their place, and why.
func (s scene) broken(p *page, r approvers.Request, user string) {
	i := s.Surface.Step - 1
	if i < 0 || i >= len(r.Decisions) {
		return
	}
	d := r.Decisions[i]
	p.para(say("🚨 ").strong("Approved at the command line, in place of its approvers (break glass): ").say(what(r)).say(". ").
		person(d.By, d.Name).say(" did it, ").at(d.At, dayTime).say("."))
	p.para(say("Reason: ").soft(clip(oneLine(d.Reason), maxReason)))
	p.para(s.passedOver(r, d))
	line := say("▶️ ")
	switch r.State {
	case approvers.Approved:
		line.say("It has not run yet. Whoever may decide its last stage can take it back on the card.")
	case approvers.Consumed:
		line.say("It was started.")
	default:
		line = say(endSign[r.State] + " ").also(s.ending(r))
	}
	if card := s.cardFor(user); card != "" {
		line.say(" ").link(card, "See the card")
	}
	p.para(line)
}

// passedOver names the stages that would have been asked.
func (s scene) passedOver(r approvers.Request, d approvers.Decision) *prose {
	line := say("👥 Passed over: ")
	left := r.Plan.Stages[min(d.Stage, len(r.Plan.Stages)):]
	for i, st := range left {
		switch {
		case i == maxStagesTold:
			return line.say(", and " + plural(len(left)-i, "more stage") + ".")
		case i > 0:
			line.say(", then ")
		}
		if st.Quorum > 1 {
			line.say(fmt.Sprintf("%d × ", st.Quorum))
		}
		line.strong(s.stageTitle(st))
	}
	return line.say(".")
}
