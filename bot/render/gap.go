package render

import "countersign/approvers"

// gap draws the notice that the bot was away when a message of the conversation was written.
func gap(g *approvers.Gap) *BlockBuilder {
	p := new(BlockBuilder)
	if g == nil {
		p.Para(Say("I was away when this was written, sorry. I answer now."))
		return p
	}
	p.Para(away(*g).Say(" I answer now what was written meanwhile."))
	return p
}

// away returns the sentence about the time of the bot's absence.
func away(g approvers.Gap) *RichText {
	to := DayTime
	if g.To.Sub(g.From).Hours() < 12 {
		to = clock
	}
	return Say("I was away from ").At(g.From, DayTime).Say(" to ").At(g.To, to).Say(", sorry.")
}
