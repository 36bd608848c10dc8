package render

import (
	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/slackapi"
)

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

func submittable(v slack.ModalViewRequest, callback, submit string, f FormToken) slack.ModalViewRequest {
	v.CallbackID, v.PrivateMetadata, v.Submit, v.Close = callback, f.String(), plainText(short(submit, slackapi.MaxModalTitle)), plainText("Cancel")
	return v
}

func textInput(id, label, hint, initial string, multiline, optional bool) *slack.InputBlock {
	in := slack.NewPlainTextInputBlockElement(nil, id).WithMultiline(multiline).WithInitialValue(initial).WithMaxLength(slackapi.MaxInput)
	return inputBlock(id, label, hint, in, optional)
}

func inputBlock(id, label, hint string, in slack.BlockElement, optional bool) *slack.InputBlock {
	var below *slack.TextBlockObject
	if hint != "" {
		below = plainText(Clip(hint, maxQuote))
	}
	return slack.NewInputBlock(id, plainText(Clip(label, maxQuote)), below, in).WithOptional(optional)
}
