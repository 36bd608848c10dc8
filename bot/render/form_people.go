package render

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// PeopleForms maps actions other than decisions to their forms. If the person is not allowed to act, the form explains
// why.
var PeopleForms = map[string]func(ClickTarget, approvers.Identity) slack.ModalViewRequest{
	ActAsk: askForm, ActAnswer: answerForm, ActComment: commentForm, ActHandOn: handOnForm, ActTakeBack: takeBackForm,
	ActAllow: allowForm,
}

// WordsNeeded maps forms to the error for a missing text.
var WordsNeeded = map[string]string{
	ActReject:    "Say why. The person who asked and the agent are told this.",
	ActRejectAll: "Say why. The person who asked and the agent are told this.",
	ActAsk:       "Write your question.",
	ActAnswer:    "Write your answer.",
	ActComment:   "Write your comment.",
	ActTakeBack:  "Say why. The person who asked and the agent are told this.",
}

// trial returns an action with placeholder input. It shows early whether the person is allowed to act.
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
	p.Para(Say("Before you decide about ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)).Say(":"))
	p.Blocks = append(p.Blocks, wordsInput("Question",
		"It is put to whoever asked for this, in their thread, where everybody who reads along sees it. The answer comes on the card and to you. The time goes on."))
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
	p.quoted(Clip(Visible(q.Text), MaxSentence))
	p.Blocks = append(p.Blocks, wordsInput("Answer", "It comes on the card, for everybody who decides."))
	return s.sendable(p, ActAnswer, "Answer")
}

func commentForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, _, d := r.Say(in, m, approvers.Comment); d != nil {
		return Refusal(ActComment, Denied(d, &r, s.Policy))
	}
	p := new(BlockBuilder)
	p.Para(Say("About ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)).Say(":"))
	p.Blocks = append(p.Blocks, wordsInput("Comment", "It stands on every copy of the card, with your name. It decides nothing."))
	return s.sendable(p, ActComment, "Comment")
}

func handOnForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	if _, _, d := r.HandOn(in, m, approvers.Identity{}); d != nil && d.Code != approvers.DeniedNotPeer { // no colleague was chosen yet
		return Refusal(ActHandOn, Denied(d, &r, s.Policy))
	}
	p := new(BlockBuilder)
	p.Para(Say("Ask a colleague to decide about ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)).Say(":"))
	people := slack.NewOptionsSelectBlockElement(slack.OptTypeUser, plainText("Choose a person"), FieldColleague)
	p.Blocks = append(p.Blocks, inputBlock(FieldColleague, "Colleague",
		fmt.Sprintf("It takes somebody whose own role may decide this in place of %s. They get the card by direct message; you keep your own say.",
			short(OneLine(r.CurrentStage().Title(s.Policy)), maxStageName)), people, false))
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
		Say("Taking an approval back ends the request for good, also for others who have agreed."))
	p.Blocks = append(p.Blocks, textInput(FieldReason, "Why?", "The person who asked and the agent are told this, so that the agent can offer something else.", "", true, false))
	return s.sendable(p, ActTakeBack, "Take back")
}

// sendable returns a form about the clicked request.
func (s ClickTarget) sendable(p *BlockBuilder, action, submit string) slack.ModalViewRequest {
	return submittable(Modal(FormTitles[action], p), action, submit, FormToken{ButtonToken: s.Token, Execution: s.Request.Execution})
}

// wordsInput returns an input for text on the card. Its length is limited to what the card can hold.
func wordsInput(label, hint string) *slack.InputBlock {
	in := slack.NewPlainTextInputBlockElement(nil, FieldReason).WithMultiline(true).WithMaxLength(maxRemark)
	return inputBlock(FieldReason, label, hint, in, false)
}

// PlainWords returns rich text without styles, for places that accept only plain text.
func PlainWords(p *RichText) string {
	var b strings.Builder
	for _, part := range p.parts {
		if text, ok := part.(*slack.RichTextSectionTextElement); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

func RejectForm(r approvers.Request, f FormToken, s ClickTarget) slack.ModalViewRequest {
	p := new(BlockBuilder)
	p.Para(Say("This will not run: ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)))
	p.Blocks = append(p.Blocks, textInput(FieldReason, "Why?", "The person who asked and the agent are told this, so that the agent can offer something else.", "", true, false))
	return submittable(Modal("Reject", p), ActReject, "Reject", f)
}

// ReportForm asks for the result of a run that did happen.
func ReportForm(s ClickTarget) slack.ModalViewRequest {
	p := new(BlockBuilder)
	if s.Execution == nil || s.Execution.State != approvers.ExecutionUnknown {
		return Refusal(ActHappened, Say("Somebody has already reported on this. The card shows what they found."))
	}
	p.Para(Say("You report that this happened: ").Strong(Clip(whatHappens(s.Call.Preview, s.Execution.Tool), maxQuote)))
	p.Blocks = append(p.Blocks, textInput(FieldResult, "What was the result?", "For example a number or a confirmation that the tool's own system shows. The agent is told this.", "", true, true))
	return submittable(Modal("It happened", p), ActHappened, "It happened", FormToken{ButtonToken: s.Token, Execution: s.Execution.ID})
}
