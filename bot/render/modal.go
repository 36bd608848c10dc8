package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/slack-go/slack"

	"countersign/bot/slackapi"
)

// FormTitles maps actions to the titles of the modals that they open.
var FormTitles = map[string]string{
	ActTyped: "Approve", ActReject: "Reject", ActRejectAll: "Reject all", ActWithdrawSome: "Withdraw", ActModify: "Modify",
	ActArguments: "Details", ActReveal: "Masked values", ActHappened: "It happened", ActAway: "Away",
	ActAsk: "Ask", ActAnswer: "Answer", ActComment: "Comment", ActHandOn: "Hand on", ActTakeBack: "Take back", ActAllow: "Allow more",
	ActFillIn: "Answer a tool", ExplainShortcut: "Explain this approval",
}

// Modal makes a modal view from collected blocks.
func Modal(title string, p *BlockBuilder) slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: plainText(shorten(title, slackapi.MaxModalTitle)), Close: plainText("Close"), Blocks: slack.Blocks{BlockSet: p.Blocks},
	}
}

// LoadingView is a modal's content until the form replaces it.
func LoadingView(id, form string) slack.ModalViewRequest {
	v := plainModal(FormTitles[form], "One moment… If nothing appears here, close this and click again.")
	v.ExternalID = ExternalID(id)
	return v
}

// RefusedForm replaces a form that Slack refused.
func RefusedForm(title, code string) slack.ModalViewRequest {
	return plainModal(title, PlainWords(FormRefused(code)))
}

// FormRefused returns the notice that Slack refused to show a form, with Slack's error code.
func FormRefused(code string) *RichText {
	return Say("Slack refused to show this form (" + Visible(code) + "). Nothing was changed. Please tell the bot's operator, who finds the reason in the log.")
}

// plainModal is a modal with a single block, of the kind that every workspace and client can show.
func plainModal(title, text string) slack.ModalViewRequest {
	return Modal(title, &BlockBuilder{Blocks: []slack.Block{slack.NewSectionBlock(plainText(text), nil, nil)}})
}

func ExternalID(inbox string) string { return "countersign:" + inbox }

// Refusal is a modal that only explains why there is no form.
func Refusal(action string, why *RichText) slack.ModalViewRequest {
	p := new(BlockBuilder)
	p.Para(why)
	return Modal(FormTitles[action], p)
}

func submittable(v slack.ModalViewRequest, callback, submit string, f FormToken) slack.ModalViewRequest {
	v.CallbackID, v.PrivateMetadata, v.Submit, v.Close = callback, f.String(), plainText(shorten(submit, slackapi.MaxModalTitle)), plainText("Cancel")
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

// maxFaults is the maximum size in bytes of the form errors in an acknowledgement. On a socket Slack silently drops
// acknowledgements of 20 KB or more.
const maxFaults = 16 << 10

// FitFormErrors returns as many form errors as fit in one acknowledgement. The last error says how many errors are
// missing. The missing errors are shown when the form is submitted again.
func FitFormErrors(faults map[string]string) map[string]string {
	out := map[string]string{}
	size := 0
	for i, id := range slices.Sorted(maps.Keys(faults)) {
		text := Clip(faults[id], MaxErrorText)
		left := len(faults) - i - 1
		size += bytesOf(id) + bytesOf(text) + 2
		if last := size+MaxErrorText*4 > maxFaults; last && left > 0 {
			text = Clip(text, MaxErrorText/2) + fmt.Sprintf(" (Also wrong: %s.)", Plural(left, "more field"))
			out[id] = text
			return out
		}
		out[id] = text
	}
	return out
}

// bytesOf returns the length of a string as JSON.
func bytesOf(s string) int {
	raw, err := json.Marshal(s)
	if err != nil {
		return maxFaults
	}
	return len(raw)
}
