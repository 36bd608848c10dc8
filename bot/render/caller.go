package render

import (
	"strings"

	"countersign/approvers"
)

// callerLine says which other agent asks, who answers for it, and for whom it acts. A person who is only named by the
// agent can't decide.
func callerLine(c approvers.Caller) *RichText {
	line := Say("🤖 ").Strong(Name(c.Title)).Say(" asks, another agent (client "+Name(c.Name)+"). ").Person(c.Owner, "").Say(" answers for it.")
	switch {
	case c.For == "":
	case c.Proven:
		line.Say(" It acts for ").Person(c.For, "").Say(", which is proven.")
	default:
		line.Say(" It says that it acts for ").Person(c.For, "").Say(". That is not proven, and only keeps this person from deciding.")
	}
	return line
}

// runsItself warns that the approval can't be enforced here. It is empty if Countersign runs the tool.
func runsItself(c *approvers.Caller) *RichText {
	if !c.Decides() {
		return new(RichText)
	}
	return Say("⚠️ ").Strong(Name(c.Title) + " runs this itself; Countersign can't stop it.")
}

// askedByCaller draws which other agent asks, and its words if it gave any.
func askedByCaller(p *BlockBuilder, r approvers.Request, said string, most int) {
	line := callerLine(*r.Facts.Caller)
	if r.Facts.Quote != "" {
		line.Say(" Its words:")
	}
	p.Para(line)
	if r.Facts.Quote != "" {
		p.quoted(Clip(said, most))
	}
	p.Para(runsItself(r.Facts.Caller))
}

// grantedTo names the agent whose calls a grant covers.
func grantedTo(g approvers.Grant) string {
	name, _, _ := strings.Cut(approvers.PersonID(g.Conversation).Caller(), "/")
	return "the client " + Name(name)
}
