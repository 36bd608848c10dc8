package notice

import (
	"countersign/approvers"
	"countersign/bot/render/block"
)

// Gap draws the notice that the bot was away when a message of the conversation was written.
func Gap(g *approvers.Gap) *block.Builder {
	p := new(block.Builder)
	if g == nil {
		p.Para(block.Say("I was offline when this was written, sorry. I answer now."))
		return p
	}
	p.Para(away(*g).Say(" I now answer the messages from this time."))
	return p
}

// away returns the sentence about the time of the bot's absence.
func away(g approvers.Gap) *block.RichText {
	to := block.DayTime
	if g.To.Sub(g.From).Hours() < 12 {
		to = block.Clock
	}
	return block.Say("I was offline from ").At(g.From, block.DayTime).Say(" to ").At(g.To, to).Say(", sorry.")
}
