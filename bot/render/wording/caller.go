package wording

import (
	"countersign/approvers"
	"countersign/bot/render/block"
)

// callerLine says which other agent asks, who is responsible for this agent, and whom the agent represents. A person
// who is named only by the agent can't decide.
func callerLine(c approvers.Caller) *block.RichText {
	line := block.Say("🤖 ").Strong(block.Name(c.Title)).Say(" asks, another agent (client "+block.Name(c.Name)+", owner ").Person(c.Owner, "").Say(")")
	switch {
	case c.For == "":
	case c.Proven:
		line.Say(", for ").Person(c.For, "").Say(" (proven by an access token)")
	default:
		line.Say(", for ").Person(c.For, "").Say(" (claimed, not proven; they can't decide it)")
	}
	return line
}

// runsItself returns a warning that Countersign can't enforce the approval. If Countersign runs the tool, the warning
// is empty.
func runsItself(c *approvers.Caller) *block.RichText {
	if !c.Decides() {
		return new(block.RichText)
	}
	return block.Say("⚠️ ").Strong(block.Name(c.Title) + " runs this itself; Countersign can't stop it.")
}

// askedByCaller draws which other agent asks. If the agent gave a summary, askedByCaller also quotes the parameter
// said. The parameter most is the maximum length of the quotation, in characters.
func askedByCaller(p *block.Builder, r approvers.Request, said string, most int) {
	line := callerLine(*r.Facts.Caller)
	if r.Facts.Quote == "" {
		p.Para(line.Say("."))
	} else {
		p.Para(line.Say(":"))
		p.Quote(block.Clip(said, most))
	}
	p.Para(runsItself(r.Facts.Caller))
}
