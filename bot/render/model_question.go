package render

import (
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// modelQuestion draws a question from the model to the requesters, with a button for each option.
func (v View) modelQuestion() *BlockBuilder {
	p := new(BlockBuilder)
	call := *v.Call
	q := *call.ModelQuestion
	line := Say("❓ ")
	if call.Outcome == "" {
		for _, who := range v.Turn.Requesters {
			line.Person(who, "").Say(" ")
		}
	}
	p.Para(line.Say("The agent asks: ").Strong(Clip(OneLine(q.Question), maxQuote)))
	if call.Outcome != "" {
		_, ended := v.asksPeople(q, call.Outcome)
		p.Para(ended)
		return p
	}
	var row []slack.BlockElement
	for i, option := range q.Options {
		row = append(row, button(ActChoose+strconv.Itoa(i), Visible(option), v.token(call.ID), slack.StyleDefault))
	}
	p.buttons("", row...)
	p.Para(Say("Choose, or write your answer here. Until ").At(q.ExpiresAt, DayTime).Say("; this approves nothing."))
	return p
}

// asksPeople returns the status of a question from the model.
func (v View) asksPeople(q approvers.ModelQuestion, outcome approvers.Outcome) (sign string, line *RichText) {
	switch outcome {
	case "":
		return "❓", Say("Waits for your answer.")
	case approvers.OutcomeExecuted:
		return "💬", Say("").Person(q.By, q.Name).Say(" answered: ").Strong(Clip(OneLine(q.Answer), MaxNote))
	case approvers.OutcomeWithdrawn:
		return "↩️", Say("Not answered: the conversation went on to something else.")
	}
	return "⌛", Say("Nobody answered in time.")
}

// ChoiceOf returns the option that a button stands for.
func ChoiceOf(action string) (option int, ok bool) {
	number, ok := strings.CutPrefix(action, ActChoose)
	if !ok {
		return 0, false
	}
	option, err := strconv.Atoi(number)
	return option, err == nil
}
