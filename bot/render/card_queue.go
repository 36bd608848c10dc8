package render

import (
	"fmt"

	"countersign/approvers"
)

// cardQueue says how many requests wait behind the open cards of a place, and names the oldest.
func (v View) cardQueue() Rendered {
	p := new(BlockBuilder)
	if v.CardQueue == nil {
		p.Para(Say("Nobody waits in line here any more."))
		d := Single(p)
		d.Expired = true
		return d
	}
	wait := "requests wait"
	if v.CardQueue.Waiting == 1 {
		wait = "request waits"
	}
	p.Para(Say("📚 ").Strong(fmt.Sprintf("%d more %s behind these.", v.CardQueue.Waiting, wait)).
		Say(fmt.Sprintf(" %s here already; when one is decided, the next in line gets its card. The deadlines stay as they are.", openCards(v.CardQueue.Open))))
	var oldest []*RichText
	for _, r := range v.CardQueue.First {
		oldest = append(oldest, v.isQueued(r))
	}
	if n := v.CardQueue.Waiting - len(oldest); n > 0 {
		oldest = append(oldest, Say(fmt.Sprintf("… and %d more", n)))
	}
	p.Para(oldest...)
	p.Small("They came faster than the policy lets cards be put before you, so approving one of them asks you to type one of its values.")
	return Single(p)
}

func openCards(n int) string {
	if n == 1 {
		return "1 undecided card is"
	}
	return fmt.Sprintf("%d undecided cards are", n)
}

func (v View) isQueued(r approvers.Request) *RichText {
	return Say("• ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxCallText)).Say(", asked for by ").Person(r.Facts.Asker, r.Facts.AskerName).
		Say("; expires ").At(r.ExpiresAt, DayTime)
}
