package render

import (
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// PeopleForms maps actions to their forms, except for approvals, rejections and changes of arguments. If the person is
// not allowed to act, the form explains why. The form of ActAllow also approves the call: grantHandler in package bot
// handles it.
var PeopleForms = map[string]func(ClickTarget, approvers.Identity) slack.ModalViewRequest{
	ActAsk: askForm, ActAnswer: answerForm, ActComment: commentForm, ActHandOn: handOnForm, ActTakeBack: takeBackForm,
	ActAllow: allowForm,
}

// These hints are shown at the input for a reason. The hints say who will read the reason.
const (
	reasonHint   = "The person who asked and the agent read this."
	reasonNeeded = "Say why: the person who asked and the agent read it."
)

// WordsNeeded maps forms to the error for a missing text.
var WordsNeeded = map[string]string{
	ActReject:    reasonNeeded,
	ActRejectAll: reasonNeeded,
	ActAsk:       "Write your question.",
	ActAnswer:    "Write your answer.",
	ActComment:   "Write your comment.",
	ActTakeBack:  reasonNeeded,
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
		return Refusal(ActAsk, Denied(d, &r, s.Policy))
	}
	p := new(BlockBuilder)
	p.Para(Say("A question about ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)).Say(":"))
	hint := "It is asked in the requester's thread, where others can read it. You are told the answer. The deadline does not change."
	if c := r.Facts.Caller; c != nil {
		hint = Clip(OneLine(c.Title), MaxNote) + " gets it, which is a program and need not answer. You are told the answer. The deadline does not change."
	}
	p.Blocks = append(p.Blocks, wordsInput("Question", hint))
	return s.sendable(p, ActAsk, "Ask")
}

func answerForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, _, d := r.Reply(in, m, s.Message.Step); d != nil {
		return Refusal(ActAnswer, Denied(d, &r, s.Policy))
	}
	p := new(BlockBuilder)
	q := r.Remark(s.Message.Step)
	p.Para(new(RichText).Person(q.By, q.Name).Say(" (" + Name(RoleTitle(s.Policy, q.Role)) + ") asks:"))
	p.quote(Clip(Visible(q.Text), MaxSentence))
	p.Blocks = append(p.Blocks, wordsInput("Answer", "Everybody who decides sees it on the card."))
	return s.sendable(p, ActAnswer, "Answer")
}

func commentForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, _, d := r.Say(in, m, approvers.Comment); d != nil {
		return Refusal(ActComment, Denied(d, &r, s.Policy))
	}
	p := new(BlockBuilder)
	p.Para(Say("A comment on ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)).Say(":"))
	p.Blocks = append(p.Blocks, wordsInput("Comment", "Everybody who decides sees it on the card, with your name. It is not a decision."))
	return s.sendable(p, ActComment, "Comment")
}

func handOnForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, _, d := r.HandOn(in, m, approvers.Identity{}); d != nil && d.Code != approvers.DeniedNotPeer { // DeniedNotPeer only says that no colleague was chosen yet
		return Refusal(ActHandOn, Denied(d, &r, s.Policy))
	}
	p := new(BlockBuilder)
	p.Para(Say("Ask a colleague to decide about ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)).Say(":"))
	people := slack.NewOptionsSelectBlockElement(slack.OptTypeUser, plainText("Choose a person"), FieldColleague)
	p.Blocks = append(p.Blocks, inputBlock(FieldColleague, "Colleague",
		fmt.Sprintf("Somebody whose own role may decide this for %s. They get the card by direct message. You can still decide.",
			shorten(OneLine(r.CurrentStage().Title(s.Policy)), maxStageName)), people, false))
	return s.sendable(p, ActHandOn, "Hand on")
}

func takeBackForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, _, d := r.Revoke(in, m); d != nil {
		return Refusal(ActTakeBack, Denied(d, &r, s.Policy))
	}
	p := new(BlockBuilder)
	p.Para(Say("This will not run: ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)),
		Say("This ends the request for good, even if others have agreed."))
	p.Blocks = append(p.Blocks, textInput(FieldReason, "Why?", reasonHint, "", true, false))
	return s.sendable(p, ActTakeBack, "Take back")
}

// sendable returns a form with a submit button, about the clicked request.
func (s ClickTarget) sendable(p *BlockBuilder, action, submit string) slack.ModalViewRequest {
	return submittable(Modal(FormTitles[action], p), action, submit, FormToken{ButtonToken: s.Token, Execution: s.Request.Execution})
}

// wordsInput returns an input for a text that will be shown on the card. The input accepts only text that fits on the
// card.
func wordsInput(label, hint string) *slack.InputBlock {
	in := slack.NewPlainTextInputBlockElement(nil, FieldReason).WithMultiline(true).WithMaxLength(maxRemark)
	return inputBlock(FieldReason, label, hint, in, false)
}

// RejectForm asks for the reason of a rejection. The form's submit button can't be red, because Slack styles this
// button the same in every form. A red button among the blocks would not work. After a click on such a button, Slack
// neither closes the form nor shows an error at the reason. Therefore the first line says what the submit button does.
func RejectForm(r approvers.Request, f FormToken, s ClickTarget) slack.ModalViewRequest {
	p := new(BlockBuilder)
	effect := "⛔ You reject this, and it will not run: "
	if need := r.CurrentStage().Rejects; need > 1 {
		effect = fmt.Sprintf("⛔ You reject this. When %d people have rejected it, it will not run: ", need)
	}
	p.Para(Say(effect).Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)))
	p.Blocks = append(p.Blocks, textInput(FieldReason, "Why?", reasonHint, "", true, false))
	return submittable(Modal("Reject", p), ActReject, "Reject", f)
}

// ReportForm is the form with which a person reports that a run took effect. It asks for the result of the run.
func ReportForm(s ClickTarget) slack.ModalViewRequest {
	p := new(BlockBuilder)
	if s.Execution == nil || s.Execution.State != approvers.ExecutionUnknown {
		return Refusal(ActHappened, Say("Somebody has already reported what happened. The card shows it."))
	}
	p.Para(Say("You report that this happened: ").Strong(Clip(whatHappens(s.Call.Preview, s.Execution.Tool), maxQuote)))
	p.Blocks = append(p.Blocks, textInput(FieldResult, "What was the result?", "For example a number that the tool's own system shows. The agent reads this.", "", true, true))
	return submittable(Modal("It happened", p), ActHappened, "It happened", FormToken{ButtonToken: s.Token, Execution: s.Execution.ID})
}
