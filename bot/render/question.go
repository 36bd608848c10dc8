package render

import (
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// question draws an approver's question to the requesters, and its answer once there is one.
func (v View) question() *BlockBuilder {
	r := *v.Request
	q := r.Remark(v.Message.Step)
	p := new(BlockBuilder)
	p.Para(Say("❓ ").also(v.speaker(q)).Say(" asks about ").Strong(Clip(whatHappens(r.Preview, r.Tool), MaxNote)).Say(":"))
	p.quoted(Clip(Visible(q.Text), MaxSentence))
	answer := slices.IndexFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == v.Message.Step })
	switch {
	case answer >= 0:
		a := r.Remarks[answer]
		p.Para(Say("💬 ").Person(a.By, a.Name).Say(" answered, ").At(a.At, clock).Say(":"))
		p.quoted(Clip(Visible(a.Text), MaxSentence))
	case r.State == approvers.Pending:
		p.Para(v.called(r).Say(": your answer comes on the card. The time goes on: if nobody decides by ").At(r.ExpiresAt, DayTime).Say(", it will not run."))
		p.buttons("", button(ActAnswer, "Answer…", v.token(r.ID), slack.StylePrimary))
	default:
		p.Para(Say("No answer is needed any more: ").also(v.ending(r)))
	}
	return p
}

// called mentions the requesters.
func (v View) called(r approvers.Request) *RichText {
	p := new(RichText).Person(r.Facts.Asker, r.Facts.AskerName)
	told := 1
	for _, who := range r.Facts.Requesters {
		if who == r.Facts.Asker {
			continue
		}
		if told++; told > maxPeopleTold {
			break
		}
		p.Say(" ").Person(who, "")
	}
	return p
}
