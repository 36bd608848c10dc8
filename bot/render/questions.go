package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/store"
)

// question draws an approver's question to the requesters. After the question was answered, question also draws the
// answer.
func question(m version, w requestWords, r approvers.Request) *BlockBuilder {
	q := r.Remark(m.message.Step)
	p := new(BlockBuilder)
	p.Para(Say("❓ ").add(w.speaker(q)).Say(" asks about ").Strong(Clip(whatHappens(r.Preview, r.Tool), MaxNote)).Say(":"))
	p.quote(Clip(Visible(q.Text), MaxSentence))
	answer := slices.IndexFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == m.message.Step })
	switch {
	case answer >= 0:
		a := r.Remarks[answer]
		p.Para(Say("💬 ").Person(a.By, a.Name).Say(" answered, ").At(a.At, clock).Say(changedLater(a) + ":"))
		p.quote(Clip(Visible(a.Text), MaxSentence))
	case r.State == approvers.Pending:
		p.Para(called(r).Say(": write your answer here, or press Answer…; it appears on the card. The deadline does not change. ").add(w.deadline(r)))
		p.buttons("", button(ActAnswer, "Answer…", m.token(r.ID), slack.StylePrimary))
	default:
		p.Para(Say("No answer is needed any more: ").add(w.ending(r)))
	}
	return p
}

// PassedOn tells a person that their message answers an approver's question.
func PassedOn(to approvers.PersonID) *RichText {
	return Say("Passed on to ").Person(to, "").Say(" as your answer.")
}

// called mentions the requesters.
func called(r approvers.Request) *RichText {
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

// modelQuestion draws a question from the model to the requesters, with a button for each option.
func modelQuestion(m version, call store.Call, requesters []approvers.PersonID) *BlockBuilder {
	p := new(BlockBuilder)
	q := *call.ModelQuestion
	line := Say("❓ ")
	if call.Outcome == "" {
		for _, who := range requesters {
			line.Person(who, "").Say(" ")
		}
	}
	p.Para(line.Say("The agent asks: ").Strong(Clip(OneLine(q.Question), maxQuote)))
	if call.Outcome != "" {
		_, ended := asksPeople(q, call.Outcome)
		p.Para(ended)
		return p
	}
	var row []slack.BlockElement
	for i, option := range q.Options {
		row = append(row, button(ActChoose+strconv.Itoa(i), Visible(option), m.token(call.ID), slack.StyleDefault))
	}
	p.buttons("", row...)
	p.Para(Say("Choose, or write your answer here, by ").At(q.ExpiresAt, DayTime).Say(". It is not an approval."))
	return p
}

// ChoiceOf returns the number of the option that a button chooses.
func ChoiceOf(action string) (option int, ok bool) {
	number, ok := strings.CutPrefix(action, ActChoose)
	if !ok {
		return 0, false
	}
	option, err := strconv.Atoi(number)
	return option, err == nil
}
