package thread

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/markdown"
	"countersign/bot/render/wording"
)

// step is the message about one step of a turn, in the requester's thread.
type step struct {
	wording.Version
	wording.Workspace
	states wording.CallWords
	turn   approvers.Turn
	text   string // the model's text
	calls  []view.Call
}

// DrawStep draws one step of a turn.
func DrawStep(v wording.View) *block.Builder { return newStep(v).draw() }

func newStep(v wording.View) step {
	return step{Version: v.Version(), Workspace: wording.Workspace(v.WorkspaceURL), states: v.CallWords(), turn: v.Turn, text: v.Text, calls: v.Calls}
}

// draw draws the tool calls of one step in the requester's thread: running calls, waiting calls with their approvers,
// and outcomes.
func (s step) draw() *block.Builder {
	p := new(block.Builder)
	if words := stepWords(s.text, s.calls); words != "" {
		p.Pieces(markdown.Parse(words), maxStepText, maxStepParts)
	}
	calls := slices.Clone(s.calls)
	if len(calls) > MaxStepCalls { // calls that wait for people come first
		slices.SortStableFunc(calls, func(a, b view.Call) int { return urgency(a) - urgency(b) })
	}
	s.tasks(p, calls)
	open := slices.ContainsFunc(calls, func(c view.Call) bool { return c.Call.Outcome == "" })
	if open {
		p.Para(wording.PausedHere(s.states.Pause))
	}
	s.callStates(p, calls)
	if open && s.turn.State == approvers.TurnWaiting && s.turn.Step == s.Message.Step && s.turn.Stopping == "" {
		sure := block.Confirm("Stop the agent?", "Waiting calls are withdrawn, and running calls are interrupted. Finished calls are not undone.", "Stop", "Keep working", slack.StyleDanger)
		p.Buttons("stop", block.Button(control.ActStop, "Stop", s.Token(s.turn.ID), slack.StyleDefault).WithConfirm(sure))
	}
	if len(p.Blocks) == 0 { // a step always has calls; Slack rejects an empty message
		p.Para(block.Say("…"))
	}
	return p
}

func urgency(c view.Call) int {
	if wording.Waits(c) {
		return 0
	}
	if c.Call.Outcome == "" {
		return 1
	}
	return 2
}

// This file draws tool calls as Slack's tasks. One call is a task card, and several calls are a plan. A task's status
// is only an icon, and Slack may collapse its details. Therefore the title names the people for whom a call waits. The
// decisions are shown below the tasks, with the buttons.

// tasks draws calls in order, each with its state. If there are many calls, only the first ones are shown in full.
// Calls that do not fit are only counted.
func (s step) tasks(p *block.Builder, calls []view.Call) {
	many, numbered := len(calls) > MaxStepCalls, decidedOn(calls) > 1
	var cards []*slack.TaskCardBlock
	var rest []view.Call
	size := 0
	if len(calls) > 1 {
		p.Line(planTitle(calls))
	}
	for i, c := range calls {
		sign, state := s.states.State(c)
		state.Add(againInStep(c.Request))
		title := block.Clip(wording.InFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), block.MaxCallText)
		if many {
			title = block.Shorten(title, maxTaskTitle)
		}
		told := !many || i < maxTasksTold
		size += utf8.RuneCountInString(title) + block.MaxNameShown
		if told {
			size += utf8.RuneCountInString(state.Mrkdwn())
		}
		if many && size > maxPlanText {
			rest = calls[i:]
			break
		}
		p.Line(sign + " " + block.Escape(title))
		p.Line(state.Mrkdwn())
		if wording.Waits(c) {
			title += " · waits for " + block.Shorten(s.states.WaitsFor(*c.Request), block.MaxNameShown)
			if n := len(c.Request.Plan.Stages); n > 1 {
				title += fmt.Sprintf(" (stage %d of %d)", c.Request.Stage+1, n)
			}
		}
		if numbered {
			title = fmt.Sprintf("%d. %s", c.Call.Index+1, title)
		}
		card := slack.NewTaskCardBlock(c.Call.ID, title).WithStatus(taskStatus(c))
		if told && c.Request == nil {
			card.WithDetails(slack.NewRichTextBlock("", slack.NewRichTextSection(state.Elements()...)))
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
		otherCalls(p, rest)
	}
}

// taskStatus returns the status icon that Slack shows beside a call.
func taskStatus(c view.Call) slack.TaskCardStatus {
	switch {
	case wording.Waits(c), c.Asks, c.Call.Outcome == "" && c.Call.ModelQuestion != nil, c.Call.Outcome == "" && c.Execution != nil && c.Execution.State == approvers.ExecutionUnknown:
		return slack.TaskCardStatusPending
	case c.Call.Outcome == "":
		return slack.TaskCardStatusInProgress
	case c.Call.Outcome == approvers.OutcomeExecuted, c.Call.Outcome == approvers.OutcomeObserved, c.Execution != nil && c.Execution.State == approvers.ExecutionSucceeded:
		return slack.TaskCardStatusComplete
	}
	return slack.TaskCardStatusError
}

// planTitle returns the title of a plan. The title says how many of the step's calls are done, and how many wait for
// people.
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
		if wording.Waits(c) {
			n++
		}
	}
	return n
}

// otherCalls adds a line with the numbers of calls that are not drawn individually.
func otherCalls(p *block.Builder, calls []view.Call) {
	done, waiting := 0, 0
	for _, c := range calls {
		switch {
		case c.Call.Outcome != "":
			done++
		case wording.Waits(c):
			waiting++
		}
	}
	p.Para(block.Say(fmt.Sprintf("… and %d more calls: %d done, %d waiting for people, %d under way.", len(calls), done, waiting, len(calls)-done-waiting)))
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

// callStates adds the state of each call that needs or needed a decision. If there are several states, they are
// numbered. Waiting calls have buttons. If there are many calls, callStates shows only the first ones, and a form lists
// the other waiting calls.
func (s step) callStates(p *block.Builder, calls []view.Call) {
	drawn, asked := 0, decidedOn(calls)
	for i, c := range calls {
		if c.Request == nil {
			continue
		}
		if len(calls) > MaxStepCalls && drawn == maxTasksTold {
			if waiting(calls[i:]) > 0 {
				p.Buttons("rest", block.Button(control.ActWithdrawSome, "Withdraw some…", s.Token(s.turn.ID), slack.StyleDefault))
			}
			return
		}
		drawn++
		number := ""
		if asked > 1 {
			number = fmt.Sprintf(" %d", c.Call.Index+1)
		}
		sign, state := s.states.State(c)
		line := block.Say(sign + " ")
		if number != "" {
			line.Strong(number[1:] + ". ")
		}
		p.Quiet(line.Add(state).Add(againInStep(c.Request)))
		if !wording.Waits(c) {
			continue
		}
		var row []slack.BlockElement
		if link := s.CardLink(c.Cards); link != "" {
			row = append(row, block.LinkButton("See the card"+number, link))
		}
		p.Buttons(c.Request.ID, append(row, s.Withdraw(c, number))...)
	}
}

// againInStep returns the note which says, in a step, that a person requested the call again.
func againInStep(r *approvers.Request) *block.RichText {
	if r == nil || r.Retry == nil {
		return new(block.RichText)
	}
	line := block.Say(" Asked again by ").Person(r.Retry.By, r.Retry.Name)
	if r.Retry.Found == approvers.ExecutionFailed {
		return line.Say(": somebody reported that an earlier run did not happen.")
	}
	return line.Say(": it is unknown whether an earlier run happened.")
}
