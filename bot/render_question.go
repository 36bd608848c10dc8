package bot

import (
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// question puts an approver's question to those who asked for the call, and shows the answer once there is one.
func (s scene) question() *page {
	r := *s.Request
	q := r.Remarks[s.Surface.Step]
	p := new(page)
	p.para(say("❓ ").also(s.speaker(q)).say(" asks about ").strong(clip(whatHappens(r.Preview, r.Tool), maxNote)).say(":"))
	p.quoted(clip(Visible(q.Text), maxSentence))
	answer := slices.IndexFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == s.Surface.Step })
	switch {
	case answer >= 0:
		a := r.Remarks[answer]
		p.para(say("💬 ").person(a.By, a.Name).say(" answered, ").at(a.At, clock).say(":"))
		p.quoted(clip(Visible(a.Text), maxSentence))
	case r.State == approvers.Pending:
		p.para(s.called(r).say(": your answer comes on the card. The time goes on: if nobody decides by ").at(r.ExpiresAt, dayTime).say(", it will not run."))
		p.buttons("", button(actAnswer, "Answer…", s.mark(r.ID), slack.StylePrimary))
	default:
		p.para(say("No answer is needed any more: ").also(s.ending(r)))
	}
	return p
}

// called mentions those who asked for the call.
func (s scene) called(r approvers.Request) *prose {
	p := new(prose).person(r.Facts.Asker, r.Facts.AskerName)
	told := 1
	for _, who := range r.Facts.Requesters {
		if who == r.Facts.Asker {
			continue
		}
		if told++; told > maxPeopleTold {
			break
		}
		p.say(" ").person(who, "")
	}
	return p
}
