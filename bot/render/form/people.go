package form

import (
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
)

// People maps actions to their forms, except for approvals, rejections and changes of arguments. If the person is
// not allowed to act, the form explains why. The form of ActAllow also approves the call: grantHandler in package bot
// handles it.
var People = map[string]func(ClickTarget, approvers.Identity) slack.ModalViewRequest{
	control.ActAsk: askForm, control.ActAnswer: answerForm, control.ActComment: commentForm, control.ActHandOn: handOnForm, control.ActTakeBack: takeBackForm,
	control.ActAllow: allowForm,
}

// These hints are shown at the input for a reason. The hints say who will read the reason.
const (
	reasonHint   = "The person who asked and the agent read this."
	reasonNeeded = "Say why: the person who asked and the agent read it."
)

// WordsNeeded maps forms to the error for a missing text.
var WordsNeeded = map[string]string{
	control.ActReject:    reasonNeeded,
	control.ActRejectAll: reasonNeeded,
	control.ActAsk:       "Write your question.",
	control.ActAnswer:    "Write your answer.",
	control.ActComment:   "Write your comment.",
	control.ActTakeBack:  reasonNeeded,
}

// trial returns an action with placeholder input. The action is tried before a form is shown, so that only people who
// are allowed to act get a form.
func trial(s ClickTarget, who approvers.Identity) (approvers.DecisionContext, approvers.Action) {
	return approvers.DecisionContext{Policy: s.Policy, Now: s.Now}, approvers.Action{Who: who, At: s.Now, Reason: "…"}
}

func askForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, _, d := r.Say(in, m, approvers.Question); d != nil {
		return TextModal(control.ActAsk, DeniedText(d, &r, s.Policy))
	}
	p := new(block.Builder)
	p.Para(block.Say("A question about ").Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxQuote)).Say(":"))
	hint := "It is asked in the requester's thread, where others can read it. You are told the answer. The deadline does not change."
	if c := r.Facts.Caller; c != nil {
		hint = block.Clip(block.OneLine(c.Title), block.MaxNote) + " is a program, and need not answer. You are told the answer. The deadline does not change."
	}
	p.Blocks = append(p.Blocks, wordsInput("Question", hint))
	return s.sendable(p, control.ActAsk, "Ask")
}

func answerForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, _, d := r.Reply(in, m, s.Message.Step); d != nil {
		return TextModal(control.ActAnswer, DeniedText(d, &r, s.Policy))
	}
	p := new(block.Builder)
	q := r.Remark(s.Message.Step)
	p.Para(new(block.RichText).Person(q.By, q.Name).Say(" (" + wording.Titles{Policy: s.Policy}.Title(q.Role) + ") asks:"))
	p.Quote(block.Clip(block.Visible(q.Text), block.MaxSentence))
	p.Blocks = append(p.Blocks, wordsInput("Answer", "Everybody who decides sees it on the card."))
	return s.sendable(p, control.ActAnswer, "Answer")
}

func commentForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, _, d := r.Say(in, m, approvers.Comment); d != nil {
		return TextModal(control.ActComment, DeniedText(d, &r, s.Policy))
	}
	p := new(block.Builder)
	p.Para(block.Say("A comment on ").Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxQuote)).Say(":"))
	p.Blocks = append(p.Blocks, wordsInput("Comment", "Everybody who decides sees it on the card, with your name. It is not a decision."))
	return s.sendable(p, control.ActComment, "Comment")
}

func handOnForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, _, d := r.HandOn(in, m, approvers.Identity{}); d != nil && d.Code != approvers.DeniedNotPeer { // DeniedNotPeer only says that no colleague was chosen yet
		return TextModal(control.ActHandOn, DeniedText(d, &r, s.Policy))
	}
	p := new(block.Builder)
	p.Para(block.Say("Ask a colleague to decide ").Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxQuote)).Say(":"))
	people := slack.NewOptionsSelectBlockElement(slack.OptTypeUser, block.PlainText("Choose a person"), control.FieldColleague)
	p.Blocks = append(p.Blocks, inputBlock(control.FieldColleague, "Colleague",
		fmt.Sprintf("Somebody whose own role may decide this for %s. They get the card by direct message. You can still decide.",
			block.Shorten(block.OneLine(r.CurrentStage().Title(s.Policy)), block.MaxStageName)), people, false))
	return s.sendable(p, control.ActHandOn, "Hand on")
}

func takeBackForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, _, d := r.Revoke(in, m); d != nil {
		return TextModal(control.ActTakeBack, DeniedText(d, &r, s.Policy))
	}
	p := new(block.Builder)
	p.Para(block.Say("This will not run: ").Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxQuote)),
		block.Say("This ends the request for good, even if others have agreed."))
	p.Blocks = append(p.Blocks, textInput(control.FieldReason, "Why?", reasonHint, "", true, false))
	return s.sendable(p, control.ActTakeBack, "Take back")
}

// sendable returns a form with a submit button, about the clicked request.
func (s ClickTarget) sendable(p *block.Builder, action, submit string) slack.ModalViewRequest {
	return submittable(Modal(Titles[action], p), action, submit, control.FormToken{ButtonToken: s.Token, Execution: s.Request.Execution})
}

// wordsInput returns an input for a text that will be shown on the card. The input accepts only text that fits on the
// card.
func wordsInput(label, hint string) *slack.InputBlock {
	in := slack.NewPlainTextInputBlockElement(nil, control.FieldReason).WithMultiline(true).WithMaxLength(block.MaxRemark)
	return inputBlock(control.FieldReason, label, hint, in, false)
}

// Reject asks for the reason of a rejection. The form's submit button can't be red, because Slack styles this
// button the same in every form. A red button among the blocks would not work. After a click on such a button, Slack
// neither closes the form nor shows an error at the reason. Therefore the first line says what the submit button does.
func Reject(r approvers.Request, f control.FormToken, s ClickTarget) slack.ModalViewRequest {
	p := new(block.Builder)
	effect := "⛔ You reject this, and it will not run: "
	if need := r.CurrentStage().Rejects; need > 1 {
		effect = fmt.Sprintf("⛔ You reject this. When %d people have rejected it, it will not run: ", need)
	}
	p.Para(block.Say(effect).Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxQuote)))
	p.Blocks = append(p.Blocks, textInput(control.FieldReason, "Why?", reasonHint, "", true, false))
	return submittable(Modal("Reject", p), control.ActReject, "Reject", f)
}

// Report is the form with which a person reports that a run took effect. It asks for the result of the run.
func Report(s ClickTarget) slack.ModalViewRequest {
	p := new(block.Builder)
	if s.Execution == nil || s.Execution.State != approvers.ExecutionUnknown {
		return TextModal(control.ActHappened, block.Say("Somebody has already reported what happened. The card shows it."))
	}
	p.Para(block.Say("You report that this happened: ").Strong(block.Clip(wording.WhatHappens(s.Call.Preview, s.Execution.Tool), block.MaxQuote)))
	p.Blocks = append(p.Blocks, textInput(control.FieldResult, "What was the result?", "For example a number that the tool's own system shows. The agent reads this.", "", true, true))
	return submittable(Modal("It happened", p), control.ActHappened, "It happened", control.FormToken{ButtonToken: s.Token, Execution: s.Execution.ID})
}
