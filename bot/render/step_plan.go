package render

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
)

// This file draws tool calls as Slack's tasks: one as a card, several as a plan. A task's status is only an icon, and
// Slack may collapse its details. So the title names the people that a call waits for, and the decisions are below,
// with the buttons.

// tasks draws calls in order, each with its state. If there are many, only the first ones are complete, and those that
// do not fit are counted.
func (v View) tasks(p *BlockBuilder, calls []view.Call) {
	many, numbered := len(calls) > MaxStepCalls, decidedOn(calls) > 1
	var cards []*slack.TaskCardBlock
	var rest []view.Call
	size := 0
	if len(calls) > 1 {
		p.lines = append(p.lines, planTitle(calls))
	}
	for i, c := range calls {
		sign, state := v.state(c)
		state.also(againInStep(c.Request))
		title := Clip(inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), maxCallText)
		if many {
			title = short(title, maxTaskTitle)
		}
		told := !many || i < maxTasksTold
		size += utf8.RuneCountInString(title) + MaxNameShown
		if told {
			size += utf8.RuneCountInString(state.plain.String())
		}
		if many && size > maxPlanText {
			rest = calls[i:]
			break
		}
		p.lines = append(p.lines, sign+" "+Escape(title), state.plain.String())
		if waits(c) {
			title += " · waits for " + short(v.stageTitle(c.Request.CurrentStage()), MaxNameShown)
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
		p.Blocks = append(p.Blocks, cards[0])
		return
	}
	for part := range slices.Chunk(cards, maxPlanTasks) {
		p.Blocks = append(p.Blocks, slack.NewPlanBlock(planTitle(calls)).WithTasks(part...))
	}
	if len(rest) > 0 {
		v.rest(p, rest)
	}
}

// taskStatus returns the status icon that Slack shows beside a call.
func taskStatus(c view.Call) slack.TaskCardStatus {
	switch {
	case waits(c), c.Asks, c.Call.Outcome == "" && c.Call.ModelQuestion != nil, c.Call.Outcome == "" && c.Execution != nil && c.Execution.State == approvers.ExecutionUnknown:
		return slack.TaskCardStatusPending
	case c.Call.Outcome == "":
		return slack.TaskCardStatusInProgress
	case c.Call.Outcome == approvers.OutcomeExecuted, c.Call.Outcome == approvers.OutcomeObserved, c.Execution != nil && c.Execution.State == approvers.ExecutionSucceeded:
		return slack.TaskCardStatusComplete
	}
	return slack.TaskCardStatusError
}

// planTitle counts the calls of a step by progress.
func planTitle(calls []view.Call) string {
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

// waiting counts the calls that wait for a decision.
func waiting(calls []view.Call) (n int) {
	for _, c := range calls {
		if waits(c) {
			n++
		}
	}
	return n
}

// rest counts the calls that are not drawn individually.
func (v View) rest(p *BlockBuilder, calls []view.Call) {
	done, waiting := 0, 0
	for _, c := range calls {
		switch {
		case c.Call.Outcome != "":
			done++
		case waits(c):
			waiting++
		}
	}
	p.Para(Say(fmt.Sprintf("… and %d more calls: %d done, %d waiting for people, %d under way.", len(calls), done, waiting, len(calls)-done-waiting)))
}

// decidedOn counts the calls that needed a decision.
func decidedOn(calls []view.Call) (n int) {
	for _, c := range calls {
		if c.Request != nil {
			n++
		}
	}
	return n
}

// standings adds the state of each call that needs or needed a decision, numbered if there are several, with buttons
// for the waiting ones. If there are many, it shows the first ones, and a form lists the rest that wait.
func (v View) standings(p *BlockBuilder, calls []view.Call) {
	drawn, asked := 0, decidedOn(calls)
	for i, c := range calls {
		if c.Request == nil {
			continue
		}
		if len(calls) > MaxStepCalls && drawn == maxTasksTold {
			if waiting(calls[i:]) > 0 {
				p.buttons("rest", button(ActWithdrawSome, "Withdraw some…", v.token(v.Turn.ID), slack.StyleDefault))
			}
			return
		}
		drawn++
		number := ""
		if asked > 1 {
			number = fmt.Sprintf(" %d", c.Call.Index+1)
		}
		sign, state := v.state(c)
		line := Say(sign + " ")
		if number != "" {
			line.Strong(number[1:] + ". ")
		}
		p.quiet(line.also(state).also(againInStep(c.Request)))
		if !waits(c) {
			continue
		}
		var row []slack.BlockElement
		if link := v.cardLink(c); link != "" {
			row = append(row, linkButton("See the card"+number, link))
		}
		p.buttons(c.Request.ID, append(row, v.withdraw(c, number))...)
	}
}
