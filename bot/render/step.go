package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/markdown"
	"countersign/bot/slackapi"
	"countersign/store"
)

// step draws the tool calls of one step in the requester's thread: running calls, waiting calls with their approvers,
// and outcomes.
func (v View) step() *BlockBuilder {
	p := new(BlockBuilder)
	if words := stepWords(v.Text, v.Calls); words != "" {
		p.say(markdown.Parse(words), maxStepText, maxStepParts)
	}
	calls := slices.Clone(v.Calls)
	if len(calls) > MaxStepCalls { // calls that wait for people come first
		slices.SortStableFunc(calls, func(a, b view.Call) int { return urgency(a) - urgency(b) })
	}
	v.tasks(p, calls)
	open := slices.ContainsFunc(calls, func(c view.Call) bool { return c.Call.Outcome == "" })
	if open {
		p.Para(v.pausedHere())
	}
	v.callStates(p, calls)
	if open && v.Turn.State == approvers.TurnWaiting && v.Turn.Step == v.Message.Step && v.Turn.Stopping == "" {
		sure := confirm("Stop the agent?", "What waits here is taken back, and what runs is interrupted. What has happened already stays.", "Stop", "Keep working", slack.StyleDanger)
		p.buttons("stop", button(ActStop, "Stop", v.token(v.Turn.ID), slack.StyleDefault).WithConfirm(sure))
	}
	if len(p.Blocks) == 0 { // a step always has calls; Slack rejects an empty message
		p.Para(Say("…"))
	}
	return p
}

func urgency(c view.Call) int {
	if waits(c) {
		return 0
	}
	if c.Call.Outcome == "" {
		return 1
	}
	return 2
}

// waits reports whether a call waits for a decision.
func waits(c view.Call) bool {
	return c.Request != nil && c.Request.State == approvers.Pending
}

// cardLink returns the address of the card in a channel. A card in a direct message has no such address, because only
// its owner can open the card.
func (v View) cardLink(c view.Call) string {
	for _, card := range c.Cards {
		if (card.Kind == store.OutboxCard || card.Kind == store.OutboxBundle) && strings.HasPrefix(card.To, store.ToChannel) {
			return v.permalink(card.Channel, card.TS, "")
		}
	}
	return ""
}

// state returns the current state of a call.
func (v View) state(c view.Call) (sign string, line *RichText) {
	switch {
	case waits(c):
		if c.Queued {
			return "📚", v.waiting(*c.Request).Say(" It is queued there, behind other cards.")
		}
		return "✋", v.waiting(*c.Request)
	case c.Call.ModelQuestion != nil:
		return v.asksPeople(*c.Call.ModelQuestion, c.Call.Outcome)
	case c.Call.Outcome != "":
		return v.outcome(c)
	case c.Execution != nil && c.Execution.State == approvers.ExecutionUnknown:
		return "❓", v.allowedBy(c).Say("It was started, and its outcome is unknown. People are asked whether it happened.")
	case v.Pause.On:
		return "⏸️", v.allowedBy(c).add(v.held(c))
	case c.Request != nil && c.Request.State == approvers.Approved:
		return "✅", v.allowedBy(c).Say("It is about to run.")
	case c.Asks:
		return "❓", v.allowedBy(c).Say("It waits for an answer from the person who asked.")
	case c.Execution != nil && c.Execution.State == approvers.ExecutionExecuting:
		return "▶️", v.allowedBy(c).add(v.running(c))
	}
	return "▶️", Say("Starting…")
}

func (v View) waiting(r approvers.Request) *RichText {
	if r.ReachesNobody() {
		return unreachedNotice(v, r).Say(" ").add(v.deadline(r))
	}
	st := r.CurrentStage()
	p := Say("Waits for ").Strong(v.stageTitle(st) + v.escalatedRoles(r)).add(v.invitedPeople(r))
	if n := len(r.Plan.Stages); n > 1 {
		p.Say(fmt.Sprintf(" (stage %d of %d)", r.Stage+1, n))
	}
	if st.Quorum > 1 {
		p.Say(fmt.Sprintf(", %d of %d agreed", r.At(r.Stage), st.Quorum))
	}
	if len(r.Against(r.Stage)) > 0 {
		p.Say(against(r, ", "))
	}
	p.Say(". ").add(v.deadline(r)).add(unreachedNotice(v, r))
	if len(r.Edits) > 0 {
		e := r.Edits[len(r.Edits)-1]
		p.Say(" ").Person(e.By, e.Name).Say(" (" + v.title(e.Role) + ") changed the arguments.")
	}
	return p
}

// outcome returns the outcome of a call, and who decided.
func (v View) outcome(c view.Call) (string, *RichText) {
	if c.Execution != nil && c.Execution.ReportedBy != "" {
		return v.report(c)
	}
	switch c.Call.Outcome {
	case approvers.OutcomeExecuted:
		return "✅", v.allowedBy(c).Say("Done.").add(v.edited(c))
	case approvers.OutcomeError:
		if c.Execution != nil && c.Execution.Unrun {
			why := strings.TrimPrefix(strings.TrimPrefix(reasonOf(c), "it was not run, "), "it was not run: ")
			return "🚫", v.allowedBy(c).Say("Not run after all: ").Say(shortReason(c, why))
		}
		return "⚠️", v.allowedBy(c).Say("It did not work: ").Say(shortReason(c, reasonOf(c)))
	case approvers.OutcomeObserved:
		return "👁️", Say("Not run, because the bot only observes this for now: ").Say(shortReason(c, reasonOf(c))).Say(".")
	case approvers.OutcomeUnknown:
		return "❓", v.allowedBy(c).Say("It was started, and its outcome is unknown. The agent was told so.")
	}
	if c.Request == nil && c.Call.Outcome == approvers.OutcomeVoided {
		return "🚫", Say("Voided: ").Say(shortReason(c, reasonOf(c)))
	}
	if c.Request == nil {
		return "🚫", Say("Not run: ").Say(shortReason(c, reasonOf(c)))
	}
	return endSign[c.Request.State], v.ending(*c.Request)
}

// shortReason returns the reason of a call's outcome as one short line, with the call's secrets masked.
func shortReason(c view.Call, reason string) string {
	return Clip(OneLine(maskSecrets(reason, []byte(c.Call.Args), c.Call.Secrets)), maxCallText)
}

// report returns a person's report about a call. The text comes from the person, and not from the tool.
func (v View) report(c view.Call) (string, *RichText) {
	sign := "✅"
	if c.Execution.State == approvers.ExecutionFailed {
		sign = "⚠️"
	}
	p := v.allowedBy(c).add(reportedBy(*c.Execution)).Say(".")
	if c.Call.Outcome == approvers.OutcomeUnknown {
		p.Say(" It came after the agent was told that the outcome is unknown.")
	}
	return sign, p.add(v.edited(c))
}

// allowedBy names the person who allowed a call that needed approval.
func (v View) allowedBy(c view.Call) *RichText {
	if c.Grant != nil {
		return v.underGrant(*c.Grant, *c.Execution)
	}
	if c.Request == nil || c.Request.ClosedBy == "" {
		return new(RichText)
	}
	if d, broken := c.Request.BrokenBy(); broken {
		return Say("Approved at the command line by ").Person(d.By, d.Name).Say(", in place of its approvers, ").At(d.At, clock).Say(". ")
	}
	return Say("Approved by ").add(v.countedApprovals(*c.Request)).Say(", ").At(c.Request.ClosedAt, clock).Say(". ")
}

func (v View) edited(c view.Call) *RichText {
	if c.Request == nil || len(c.Request.Edits) == 0 {
		return new(RichText)
	}
	e := c.Request.Edits[len(c.Request.Edits)-1]
	return Say(" The arguments were changed by ").Person(e.By, e.Name).Say(" (" + v.title(e.Role) + ") first.")
}

// reasonOf returns the reason in a call's result.
func reasonOf(c view.Call) string {
	var r approvers.Result
	if json.Unmarshal([]byte(c.Call.Result), &r) == nil && r.Reason != "" {
		return r.Reason
	}
	return c.Call.Result
}

// oneLineArguments returns a call's arguments on one line.
func oneLineArguments(args string, secrets []string) string {
	if len(args) > 2<<10 {
		return ""
	}
	text := onOneLine([]byte(args), secrets)
	if text == noArguments {
		return ""
	}
	return "(" + shorten(text, 160) + ")"
}

// This file draws tool calls as Slack's tasks. One call is a task card, and several calls are a plan. A task's status
// is only an icon, and Slack may collapse its details. Therefore the title names the people for whom a call waits. The
// decisions are shown below the tasks, with the buttons.

// tasks draws calls in order, each with its state. If there are many calls, only the first ones are shown in full.
// Calls that do not fit are only counted.
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
		state.add(againInStep(c.Request))
		title := Clip(inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), maxCallText)
		if many {
			title = shorten(title, maxTaskTitle)
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
			title += " · waits for " + shorten(v.stageTitle(c.Request.CurrentStage()), MaxNameShown)
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
		v.otherCalls(p, rest)
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
		if waits(c) {
			n++
		}
	}
	return n
}

// otherCalls adds a line with the numbers of calls that are not drawn individually.
func (v View) otherCalls(p *BlockBuilder, calls []view.Call) {
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

// callStates adds the state of each call that needs or needed a decision. If there are several states, they are
// numbered. Waiting calls have buttons. If there are many calls, callStates shows only the first ones, and a form lists
// the other waiting calls.
func (v View) callStates(p *BlockBuilder, calls []view.Call) {
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
		p.quiet(line.add(state).add(againInStep(c.Request)))
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

// WithdrawForm lists the waiting calls of a step so that a person can withdraw some of them.
func WithdrawForm(s ClickTarget) slack.ModalViewRequest {
	var options []*slack.OptionBlockObject
	waiting := 0
	for _, c := range s.Calls {
		if !waits(c) {
			continue
		}
		if waiting++; waiting <= slackapi.MaxOptions {
			what := inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets)
			options = append(options, slack.NewOptionBlockObject(c.Request.ID, plainText(shorten(what, slackapi.MaxOptionText)), nil))
		}
	}
	if waiting == 0 {
		return Refusal(ActWithdrawSome, Denied(&approvers.Denied{Code: approvers.DeniedNothing}, nil, s.Policy))
	}
	p := new(BlockBuilder)
	p.Para(Say("What you choose will not run, and the agent is told that you took it back."))
	if waiting > slackapi.MaxOptions {
		p.Para(Say("These are the first " + strconv.Itoa(slackapi.MaxOptions) + " that wait. Open this again for the others."))
	}
	list := slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, plainText("Choose calls"), FieldCalls, options...)
	p.Blocks = append(p.Blocks, inputBlock(FieldCalls, "Calls", "", list, false))
	return submittable(Modal(FormTitles[ActWithdrawSome], p), ActWithdrawSome, "Withdraw", FormToken{ButtonToken: s.Token})
}
