package notice

import (
	"strings"
	"time"

	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/bot/render/wording"
	"countersign/store"
)

// StandIn tells a stand-in for whom they stand in, and what they can decide.
func StandIn(a approvers.Absence, m store.OutboxMessage, policy *approvers.Policy, now time.Time) *block.Builder {
	p := new(block.Builder)
	if m.Step != int(a.Version) || a.Over(now) {
		p.Para(block.Say("✔️ You no longer stand in for ").Person(a.Who, a.Name).Say(": they are back, or changed their absence."))
		return p
	}
	p.Para(block.Say("🤝 ").Person(a.Who, a.Name).Strong(" is away").Say(" from ").At(a.From, block.LongTime).Say(" until ").At(a.Until, block.LongTime).
		Say(" and has named you to stand in."))
	if len(a.Covers) == 0 {
		p.Para(block.Say("They have no role that decides calls, so you get no requests from them."))
		return p
	}
	p.Para(block.Say("You get their requests by direct message, if your own roles may decide them. You decide in your own name, and can't decide calls that you asked for."))
	p.Para(coverage(policy, a.Covers, "you", "yours")...)
	return p
}

// AbsenceOf answers a person's command. The answer says whether the person is away, until when, and who stands in.
func AbsenceOf(a approvers.Absence, p *approvers.Policy, command string, now time.Time, reads block.Reader) []*block.RichText {
	if a.Over(now) {
		return []*block.RichText{block.Say("You are not away. To say that you are, write ").Code(command + " away until monday").Say(".")}
	}
	line := block.Say("🌴 You are away ")
	if !a.During(now) {
		line = block.Say("🌴 You will be away ").Say("from ").Strong(reads.Spoken(a.From)).Say(" ")
	}
	line.Say("until ").Strong(reads.Spoken(a.Until)).Say(". From then on you are asked again.")
	out := []*block.RichText{line}
	standIn := new(block.RichText).Person(a.Delegate, a.DelegateName).Say(" stands in for you, and is told so. ")
	switch {
	case a.Delegate == "":
		out = append(out, block.Say("Nobody stands in for you: your cards go to the others in your roles, and if nobody else is here, to the lead at once. "+
			"To name somebody, add “, delegate to @colleague”."))
	case len(a.Covers) == 0:
		out = append(out, standIn.Say("You have no role that decides calls, so they get no requests from you."))
	default:
		out = append(out, standIn.Say("They decide in their own name, by their own roles:"))
		out = append(out, coverage(p, a.Covers, "they", "theirs")...)
	}
	return append(out, new(block.RichText).Code(command+" back").Say(" ends your absence."))
}

// These values limit the number of named roles and tools. With the limits, the message is short even if the policy is
// long.
const (
	maxCovers     = 8
	maxToolsNamed = 6
)

// For each role of an absent person, coverage describes which requests the stand-in can decide. The parameters who and
// whose are the words for the stand-in: "you" and "yours", or "they" and "theirs".
func coverage(p *approvers.Policy, covers []approvers.Cover, who, whose string) []*block.RichText {
	var out []*block.RichText
	for i, c := range covers {
		if i == maxCovers {
			out = append(out, block.Say("… and "+block.Plural(len(covers)-i, "more role")))
			break
		}
		line := block.Say("• ").Strong(wording.Titles{Policy: p}.Title(c.Role))
		switch {
		case c.None:
			line.Say(": nothing, because no role of " + whose + " may approve as much.")
		case len(c.Lacks) > 0:
			line.Say(": " + who + " can decide all but " + toolList(c.Lacks) + ".")
		default:
			line.Say(": " + who + " can decide all of it.")
		}
		out = append(out, line)
	}
	return out
}

// toolList names tools up to a limit, and counts the rest.
func toolList(tools []string) string {
	named := make([]string, 0, maxToolsNamed)
	for i, t := range tools {
		if i == maxToolsNamed {
			named = append(named, block.Plural(len(tools)-i, "more tool"))
			break
		}
		named = append(named, block.Name(t))
	}
	return strings.Join(named, ", ")
}
