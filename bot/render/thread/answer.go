package thread

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/markdown"
	"countersign/bot/render/wording"
)

// answer is the message with the agent's answer.
type answer struct {
	wording.Version
	text   string
	turn   string // id of the turn
	steps  []view.Step
	states wording.CallWords
}

// DrawAnswer draws the agent's answer.
func DrawAnswer(v wording.View) block.Rendered { return newAnswer(v).draw() }

func newAnswer(v wording.View) answer {
	return answer{Version: v.Version(), text: v.Text, turn: v.Turn.ID, steps: v.Steps, states: v.CallWords()}
}

// draw draws the agent's whole answer, in several messages if it does not fit in one.
func (a answer) draw() block.Rendered {
	pieces := markdown.Parse(a.text)
	if len(pieces) == 0 {
		pieces = markdown.Parse("(The agent's answer is empty.)")
	}
	var d block.Rendered
	all := markdown.Messages(pieces)
	if workflow.IsLong(a.text) { // the rest is in a file
		all = all[:1]
	}
	for i, part := range all {
		p := new(block.Builder)
		if i == 0 {
			a.drawSteps(p)
		}
		for _, x := range part {
			p.Piece(x)
		}
		if workflow.IsLong(a.text) {
			p.Para(new(block.RichText).Soft(fmt.Sprintf("The answer has %d characters in all. The full answer follows in this thread.", utf8.RuneCountInString(a.text))))
		}
		if i == 0 { // further messages have no buttons
			p.Blocks = append(p.Blocks, a.feedback())
		}
		d.Messages = append(d.Messages, p.Message())
	}
	return d
}

// DrawRest draws the rest of a long answer as additional messages. The function is used if Slack does not accept the
// answer as a file.
func DrawRest(text string) block.Rendered {
	var d block.Rendered
	for i, part := range markdown.Messages(markdown.Parse(text)) {
		if i == 0 {
			continue
		}
		p := new(block.Builder)
		for _, x := range part {
			p.Piece(x)
		}
		d.Messages = append(d.Messages, p.Message())
	}
	if len(d.Messages) == 0 {
		return block.Single(block.Paragraph(block.Say("End of the answer.")))
	}
	return d
}

// feedback returns the buttons for rating an answer.
func (a answer) feedback() slack.Block {
	side := func(words, ref, aloud string) *slack.FeedbackButton {
		return slack.NewFeedbackButton(block.PlainText(words), a.Token(ref+a.turn)).WithAccessibilityLabel(aloud)
	}
	return slack.NewContextActionsBlock("feedback", slack.NewFeedbackButtonsBlockElement(control.ActFeedback,
		side("Good answer", control.FeedbackGood, "This answer was good"), side("Poor answer", control.FeedbackPoor, "This answer was not good")))
}

// These values limit the steps that an answer includes in addition to its own text.
const (
	MaxStepsTold     = 2
	maxStepCallsTold = 3   // calls per step
	maxStepWordsTold = 300 // characters of the model's text per step
	maxStepPartsTold = 1   // blocks of the model's text per step
)

// drawSteps draws the steps that an answer includes: the calls, who allowed them, and their outcomes.
func (a answer) drawSteps(p *block.Builder) {
	for _, step := range a.steps {
		p.Pieces(markdown.Parse(stepWords(step.Text, step.Calls)), maxStepWordsTold, maxStepPartsTold)
		var lines []*block.RichText
		for _, c := range step.Calls {
			sign, state := a.states.State(c)
			title := block.Clip(wording.InFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), block.MaxCallText)
			lines = append(lines, block.Say(sign+" ").Strong(title), state.Add(againInStep(c.Request)))
		}
		p.Para(lines...)
	}
}

// stepWords returns the text that the model wrote beside its calls, with the secrets of the calls masked.
func stepWords(text string, calls []view.Call) string {
	words := strings.TrimSpace(text)
	for _, c := range calls {
		words = argument.MaskSecrets(words, []byte(c.Call.Args), c.Call.Secrets)
	}
	return words
}

// IsBrief reports whether a step is complete and short enough to be included in an answer.
func IsBrief(s view.Step) bool {
	words := stepWords(s.Text, s.Calls)
	return len(s.Calls) > 0 && len(s.Calls) <= maxStepCallsTold && block.Width(words) <= maxStepWordsTold && len(markdown.Parse(words)) <= maxStepPartsTold &&
		!slices.ContainsFunc(s.Calls, func(c view.Call) bool { return !c.Settled() })
}
