package bot

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// This file draws tool calls as Slack's tasks: one as a card, several as a plan. A task's status is only a sign, and Slack may fold its details away. So whom a call waits
// for is in its title, and what people decide stands below, with the buttons.

// tasks draws calls in order, each with its state. Of many only the first ones say all there is to say; what a message has no room for is counted.
func (s scene) tasks(p *page, calls []desk.CallSight) {
	many, numbered := len(calls) > maxStepCalls, decidedOn(calls) > 1
	var cards []*slack.TaskCardBlock
	var rest []desk.CallSight
	size := 0
	if len(calls) > 1 {
		p.lines = append(p.lines, planTitle(calls))
	}
	for i, c := range calls {
		sign, state := s.state(c)
		state.also(againInStep(c.Request))
		title := clip(inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), maxCallText)
		if many {
			title = short(title, maxTaskTitle)
		}
		told := !many || i < maxTasksTold
		size += utf8.RuneCountInString(title) + maxNameShown
		if told {
			size += utf8.RuneCountInString(state.plain.String())
		}
		if many && size > maxPlanText {
			rest = calls[i:]
			break
		}
		p.lines = append(p.lines, sign+" "+escape(title), state.plain.String())
		if waits(c) {
			title += " · waits for " + short(s.stageTitle(c.Request.Plan.Stages[c.Request.Stage]), maxNameShown)
			if n := len(c.Request.Plan.Stages); n > 1 {
				title += fmt.Sprintf(" (stage %d of %d)", c.Request.Stage+1, n)
			}
		}
		if numbered {
			title = fmt.Sprintf("%d. %s", c.Call.Index+1, title)
		}
		card := slack.NewTaskCardBlock(c.Call.ID, title).WithStatus(taskStatus(c))
		if told && c.Request == nil {
			card.WithDetails(slack.NewRichTextBlock("", slack.NewRichTextSection(state.parts...)))
		}
		cards = append(cards, card)
	}
	if len(cards) == 1 {
		p.blocks = append(p.blocks, cards[0])
		return
	}
	for part := range slices.Chunk(cards, maxPlanTasks) {
		p.blocks = append(p.blocks, slack.NewPlanBlock(planTitle(calls)).WithTasks(part...))
	}
	if len(rest) > 0 {
		s.rest(p, rest)
	}
}

// taskStatus is the sign that Slack shows beside a call.
func taskStatus(c desk.CallSight) slack.TaskCardStatus {
	switch {
	case waits(c), c.Asks, c.Call.Outcome == "" && c.Call.Inquiry != nil, c.Call.Outcome == "" && c.Execution != nil && c.Execution.State == approvers.ExecutionUnknown:
		return slack.TaskCardStatusPending
	case c.Call.Outcome == "":
		return slack.TaskCardStatusInProgress
	case c.Call.Outcome == approvers.OutcomeExecuted, c.Call.Outcome == approvers.OutcomeObserved, c.Execution != nil && c.Execution.State == approvers.ExecutionSucceeded:
		return slack.TaskCardStatusComplete
	}
	return slack.TaskCardStatusError
}

// planTitle counts how far the calls of a step are.
func planTitle(calls []desk.CallSight) string {
	over, ran := 0, 0
	for _, c := range calls {
		if c.Call.Outcome != "" {
			over++
		}
		if taskStatus(c) == slack.TaskCardStatusComplete {
			ran++
		}
	}
	switch n := waiting(calls); {
	case n > 0:
		return fmt.Sprintf("%d of %d done, %d waiting for people", ran, len(calls), n)
	case over < len(calls):
		return fmt.Sprintf("%d of %d done", ran, len(calls))
	case ran < len(calls):
		return fmt.Sprintf("%d of %d done, %d not", ran, len(calls), len(calls)-ran)
	}
	return fmt.Sprintf("All %d done", len(calls))
}

// waiting counts the calls that people are asked about.
func waiting(calls []desk.CallSight) (n int) {
	for _, c := range calls {
		if waits(c) {
			n++
		}
	}
	return n
}

// rest counts the calls that are not drawn one by one.
func (s scene) rest(p *page, calls []desk.CallSight) {
	done, waiting := 0, 0
	for _, c := range calls {
		switch {
		case c.Call.Outcome != "":
			done++
		case waits(c):
			waiting++
		}
	}
	p.para(say(fmt.Sprintf("… and %d more calls: %d done, %d waiting for people, %d under way.", len(calls), done, waiting, len(calls)-done-waiting)))
}

// decidedOn counts the calls that people were asked about.
func decidedOn(calls []desk.CallSight) (n int) {
	for _, c := range calls {
		if c.Request != nil {
			n++
		}
	}
	return n
}

// standings say of the calls that people are or were asked about how that stands, each by the number of its call where there are several, with the buttons of those
// that wait. Of many the first ones are told; what waits beyond them has a form.
func (s scene) standings(p *page, calls []desk.CallSight) {
	drawn, asked := 0, decidedOn(calls)
	for i, c := range calls {
		if c.Request == nil {
			continue
		}
		if len(calls) > maxStepCalls && drawn == maxTasksTold {
			if waiting(calls[i:]) > 0 {
				p.buttons("rest", button(actWithdrawSome, "Withdraw some…", s.mark(s.Turn.ID), slack.StyleDefault))
			}
			return
		}
		drawn++
		number := ""
		if asked > 1 {
			number = fmt.Sprintf(" %d", c.Call.Index+1)
		}
		sign, state := s.state(c)
		line := say(sign + " ")
		if number != "" {
			line.strong(number[1:] + ". ")
		}
		p.quiet(line.also(state).also(againInStep(c.Request)))
		if !waits(c) {
			continue
		}
		var row []slack.BlockElement
		if link := s.cardLink(c); link != "" {
			row = append(row, linkButton("See the card"+number, link))
		}
		p.buttons(c.Request.ID, append(row, s.withdraw(c, number))...)
	}
}
