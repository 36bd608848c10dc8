package thread

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/store"
)

// Question draws an approver's question to the requesters. After the question was answered, Question also draws the
// answer.
func Question(m wording.Version, w wording.RequestWords, r approvers.Request) *block.Builder {
	q := r.Remark(m.Message.Step)
	p := new(block.Builder)
	p.Para(block.Say("❓ ").Add(w.Speaker(q)).Say(" asks about ").Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxNote)).Say(":"))
	p.Quote(block.Clip(block.Visible(q.Text), block.MaxSentence))
	answer := slices.IndexFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == m.Message.Step })
	switch {
	case answer >= 0:
		a := r.Remarks[answer]
		p.Para(block.Say("💬 ").Person(a.By, a.Name).Say(" answered, ").At(a.At, block.Clock).Say(wording.ChangedLater(a) + ":"))
		p.Quote(block.Clip(block.Visible(a.Text), block.MaxSentence))
	case r.State == approvers.Pending:
		p.Para(called(r).Say(": write your answer here, or press Answer…; it appears on the card. The deadline does not change. ").Add(w.Deadline(r)))
		p.Buttons("", block.Button(control.ActAnswer, "Answer…", m.Token(r.ID), slack.StylePrimary))
	default:
		p.Para(block.Say("No answer is needed any more: ").Add(w.Ending(r)))
	}
	return p
}

// PassedOn tells a person that their message answers an approver's question.
func PassedOn(to approvers.PersonID) *block.RichText {
	return block.Say("Passed on to ").Person(to, "").Say(" as your answer.")
}

// called mentions the requesters.
func called(r approvers.Request) *block.RichText {
	p := new(block.RichText).Person(r.Facts.Asker, r.Facts.AskerName)
	told := 1
	for _, who := range r.Facts.Requesters {
		if who == r.Facts.Asker {
			continue
		}
		if told++; told > block.MaxPeopleTold {
			break
		}
		p.Say(" ").Person(who, "")
	}
	return p
}

// ModelQuestion draws a question from the model to the requesters, with a button for each option.
func ModelQuestion(m wording.Version, call store.Call, requesters []approvers.PersonID) *block.Builder {
	p := new(block.Builder)
	q := *call.ModelQuestion
	line := block.Say("❓ ")
	if call.Outcome == "" {
		for _, who := range requesters {
			line.Person(who, "").Say(" ")
		}
	}
	p.Para(line.Say("The agent asks: ").Strong(block.Clip(block.OneLine(q.Question), block.MaxQuote)))
	if call.Outcome != "" {
		_, ended := wording.AsksPeople(q, call.Outcome)
		p.Para(ended)
		return p
	}
	var row []slack.BlockElement
	for i, option := range q.Options {
		row = append(row, block.Button(control.ActChoose+strconv.Itoa(i), block.Visible(option), m.Token(call.ID), slack.StyleDefault))
	}
	p.Buttons("", row...)
	p.Para(block.Say("Choose, or write your answer here, by ").At(q.ExpiresAt, block.DayTime).Say(". It is not an approval."))
	return p
}

// ChoiceOf returns the number of the option that a button chooses.
func ChoiceOf(action string) (option int, ok bool) {
	number, ok := strings.CutPrefix(action, control.ActChoose)
	if !ok {
		return 0, false
	}
	option, err := strconv.Atoi(number)
	return option, err == nil
}
