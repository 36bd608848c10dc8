package bot

import (
	"fmt"

	"countersign/approvers"
)

// line says how many requests wait behind the cards that are open at a place, and names the oldest.
func (s scene) line() drawing {
	p := new(page)
	if s.Line == nil {
		p.para(say("Nobody waits in line here any more."))
		d := one(p)
		d.over = true
		return d
	}
	wait := "requests wait"
	if s.Line.Waiting == 1 {
		wait = "request waits"
	}
	p.para(say("📚 ").strong(fmt.Sprintf("%d more %s behind these.", s.Line.Waiting, wait)).
		say(fmt.Sprintf(" %s here already; when one is decided, the next in line gets its card. The deadlines stay as they are.", openCards(s.Line.Open))))
	var oldest []*prose
	for _, r := range s.Line.First {
		oldest = append(oldest, s.inLine(r))
	}
	if n := s.Line.Waiting - len(oldest); n > 0 {
		oldest = append(oldest, say(fmt.Sprintf("… and %d more", n)))
	}
	p.para(oldest...)
	p.small("They came faster than the policy lets cards be put before you, so approving one of them asks you to type one of its values.")
	return one(p)
}

func openCards(n int) string {
	if n == 1 {
		return "1 undecided card is"
	}
	return fmt.Sprintf("%d undecided cards are", n)
}

func (s scene) inLine(r approvers.Request) *prose {
	return say("• ").strong(clip(whatHappens(r.Preview, r.Tool), maxCallText)).say(", asked for by ").person(r.Facts.Asker, r.Facts.AskerName).
		say("; expires ").at(r.ExpiresAt, dayTime)
}
