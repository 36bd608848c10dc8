package bot

import (
	"strings"

	"countersign/approvers"
)

// standIn tells somebody that they stand in for a person who is away, and what they may and may not decide for that.
func (s scene) standIn() *page {
	p := new(page)
	a := *s.Absence
	if s.Surface.Step != int(a.Version) || a.Over(s.Now) {
		p.para(say("✔️ This no longer holds: ").person(a.Who, a.Name).say(" is back, or has said something else since."))
		return p
	}
	p.para(say("🤝 ").person(a.Who, a.Name).strong(" is away").say(" from ").at(a.From, longTime).say(" until ").at(a.Until, longTime).
		say(" and has named you to stand in."))
	if len(a.Covers) == 0 {
		p.para(say("They hold no role that decides anything, so nothing comes to you because of it."))
		return p
	}
	p.para(say("What waits for them comes to you too, by direct message, where you may decide it. You decide in your own name and by your own roles, " +
		"never in theirs, and nothing that you asked for yourself."))
	p.para(coverage(s.Policy, a.Covers, "you", "yours")...)
	return p
}

// Bounds of what is said about roles and tools, so that a long policy does not make a long message.
const (
	maxCovers     = 8
	maxToolsNamed = 6
)

// coverage says for each role of somebody who is away how far whoever stands in can decide. who and whose name the latter: you and yours, or
// they and theirs.
func coverage(p *approvers.Policy, covers []approvers.Cover, who, whose string) []*prose {
	var out []*prose
	for i, c := range covers {
		if i == maxCovers {
			out = append(out, say("… and "+plural(len(covers)-i, "more role")))
			break
		}
		line := say("• ").strong(name(titleOf(p, c.Role)))
		switch {
		case c.None:
			line.say(": nothing, because no role of " + whose + " may decide as much.")
		case len(c.Lacks) > 0:
			line.say(": " + who + " can decide all but " + toolList(c.Lacks) + ".")
		default:
			line.say(": " + who + " can decide all of it.")
		}
		out = append(out, line)
	}
	return out
}

// toolList names tools, and counts what is too many.
func toolList(tools []string) string {
	named := make([]string, 0, maxToolsNamed)
	for i, t := range tools {
		if i == maxToolsNamed {
			named = append(named, plural(len(tools)-i, "more tool"))
			break
		}
		named = append(named, name(t))
	}
	return strings.Join(named, ", ")
}
