package bot

import (
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// inquiry draws a question of the model's to the people who asked, with a button for each option.
func (s scene) inquiry() *page {
	p := new(page)
	call := *s.Call
	q := *call.Inquiry
	line := say("❓ ")
	if call.Outcome == "" {
		for _, who := range s.Turn.Requesters {
			line.person(who, "").say(" ")
		}
	}
	p.para(line.say("The agent asks: ").strong(clip(oneLine(q.Question), maxQuote)))
	if call.Outcome != "" {
		_, ended := s.asksPeople(q, call.Outcome)
		p.para(ended)
		return p
	}
	var row []slack.BlockElement
	for i, option := range q.Options {
		row = append(row, button(actChoose+strconv.Itoa(i), Visible(option), s.mark(call.ID), slack.StyleDefault))
	}
	p.buttons("", row...)
	p.para(say("Choose, or write your answer here. Until ").at(q.ExpiresAt, dayTime).say("; this approves nothing."))
	return p
}

// asksPeople says where a question of the model's stands.
func (s scene) asksPeople(q approvers.Inquiry, outcome approvers.Outcome) (sign string, line *prose) {
	switch outcome {
	case "":
		return "❓", say("Waits for your answer.")
	case approvers.OutcomeExecuted:
		return "💬", say("").person(q.By, q.Name).say(" answered: ").strong(clip(oneLine(q.Answer), maxNote))
	case approvers.OutcomeWithdrawn:
		return "↩️", say("Not answered: the conversation went on to something else.")
	}
	return "⌛", say("Nobody answered in time.")
}

// choiceOf reads which option a button stands for.
func choiceOf(action string) (option int, ok bool) {
	number, ok := strings.CutPrefix(action, actChoose)
	if !ok {
		return 0, false
	}
	option, err := strconv.Atoi(number)
	return option, err == nil
}
