package render

import (
	"fmt"

	"countersign/approvers"
)

// broken tells the people who would have been asked, and their leads, that an operator allowed a call in their place,
// and why.
func (v View) broken(p *BlockBuilder, r approvers.Request, user string) {
	i := v.Message.Step - 1
	if i < 0 || i >= len(r.Decisions) {
		return
	}
	d := r.Decisions[i]
	p.Para(Say("🚨 ").Strong("Approved at the command line, in place of its approvers (break glass): ").Say(what(r)).Say(". ").
		Person(d.By, d.Name).Say(" did it, ").At(d.At, DayTime).Say("."))
	p.Para(Say("Reason: ").soft(Clip(OneLine(d.Reason), maxReason)))
	p.Para(v.passedOver(r, d))
	line := Say("▶️ ")
	switch r.State {
	case approvers.Approved:
		line.Say("It has not run yet. Whoever may decide its last stage can take it back on the card.")
	case approvers.Consumed:
		line.Say("It was started.")
	default:
		line = Say(endSign[r.State] + " ").also(v.ending(r))
	}
	if card := v.cardFor(user); card != "" {
		line.Say(" ").link(card, "See the card")
	}
	p.Para(line)
}

// passedOver names the stages that the operator skipped.
func (v View) passedOver(r approvers.Request, d approvers.Decision) *RichText {
	line := Say("👥 Passed over: ")
	left := r.Plan.Stages[min(d.Stage, len(r.Plan.Stages)):]
	for i, st := range left {
		switch {
		case i == maxStagesTold:
			return line.Say(", and " + Plural(len(left)-i, "more stage") + ".")
		case i > 0:
			line.Say(", then ")
		}
		if st.Quorum > 1 {
			line.Say(fmt.Sprintf("%d × ", st.Quorum))
		}
		line.Strong(v.stageTitle(st))
	}
	return line.Say(".")
}
