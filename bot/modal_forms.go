package bot

import (
	"github.com/slack-go/slack"

	"countersign/approvers"
)

// rejectForm asks for the reason of a rejection.
func rejectForm(r approvers.Request, f formMark, s seen) slack.ModalViewRequest {
	p := new(page)
	p.para(say("This will not run: ").strong(clip(whatHappens(r.Preview, r.Tool), maxQuote)))
	p.blocks = append(p.blocks, textInput(fieldReason, "Why?", "The person who asked and the agent are told this, so that the agent can offer something else.", "", true, false))
	return submittable(modal("Reject", p), actReject, "Reject", f)
}

// reportForm asks for the result of a run that did happen.
func reportForm(s seen) slack.ModalViewRequest {
	p := new(page)
	if s.Execution == nil || s.Execution.State != approvers.ExecutionUnknown {
		return refusal(actHappened, say("Somebody has already reported on this. The card shows what they found."))
	}
	p.para(say("You report that this happened: ").strong(clip(whatHappens(s.Call.Preview, s.Execution.Tool), maxQuote)))
	p.blocks = append(p.blocks, textInput(fieldResult, "What was the result?", "For example a number or a confirmation that the tool's own system shows. The agent is told this.", "", true, true))
	return submittable(modal("It happened", p), actHappened, "It happened", formMark{mark: s.mark, Execution: s.Execution.ID})
}

func submittable(v slack.ModalViewRequest, callback, submit string, f formMark) slack.ModalViewRequest {
	v.CallbackID, v.PrivateMetadata, v.Submit, v.Close = callback, f.String(), plainText(short(submit, maxModalTitle)), plainText("Cancel")
	return v
}

// textInput is a field of free text.
func textInput(id, label, hint, initial string, multiline, optional bool) *slack.InputBlock {
	in := slack.NewPlainTextInputBlockElement(nil, id).WithMultiline(multiline).WithInitialValue(initial).WithMaxLength(maxInput)
	return inputBlock(id, label, hint, in, optional)
}

func inputBlock(id, label, hint string, in slack.BlockElement, optional bool) *slack.InputBlock {
	var below *slack.TextBlockObject
	if hint != "" {
		below = plainText(clip(hint, maxQuote))
	}
	return slack.NewInputBlock(id, plainText(clip(label, maxQuote)), below, in).WithOptional(optional)
}
