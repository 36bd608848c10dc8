package form

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/slack-go/slack"

	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/slackapi"
)

// Titles maps actions to the titles of the modals that they open.
var Titles = map[string]string{
	control.ActTyped: "Approve", control.ActReject: "Reject", control.ActRejectAll: "Reject all", control.ActWithdrawSome: "Withdraw", control.ActModify: "Modify",
	control.ActArguments: "Details", control.ActReveal: "Masked values", control.ActHappened: "It happened", control.ActAway: "Away",
	control.ActAsk: "Ask", control.ActAnswer: "Answer", control.ActComment: "Comment", control.ActHandOn: "Hand on", control.ActTakeBack: "Take back", control.ActAllow: "Allow more",
	control.ActFillIn: "Answer a tool", control.ExplainShortcut: "Explain this approval",
}

// Modal returns a modal view from collected blocks.
func Modal(title string, p *block.Builder) slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: block.PlainText(block.Shorten(title, slackapi.MaxModalTitle)), Close: block.PlainText("Close"), Blocks: slack.Blocks{BlockSet: p.Blocks},
	}
}

// LoadingView is a modal's content until the form replaces it.
func LoadingView(id, form string) slack.ModalViewRequest {
	v := plainModal(Titles[form], "One moment… If nothing appears here, close this and click again.")
	v.ExternalID = ExternalID(id)
	return v
}

// SlackRefusedModal returns the modal that replaces a form that Slack refused.
func SlackRefusedModal(title, code string) slack.ModalViewRequest {
	return plainModal(title, block.PlainWords(SlackRefusedText(code)))
}

// SlackRefusedText returns the notice that Slack refused to show a form, with Slack's error code.
func SlackRefusedText(code string) *block.RichText {
	return block.Say("Slack refused to show this form (" + block.Visible(code) + "). Nothing was changed. Please tell the bot's operator, who finds the reason in the log.")
}

// plainModal is a modal with a single block, of the kind that every workspace and client can show.
func plainModal(title, text string) slack.ModalViewRequest {
	return Modal(title, &block.Builder{Blocks: []slack.Block{slack.NewSectionBlock(block.PlainText(text), nil, nil)}})
}

// ExternalID returns the external ID of the loading view that a delivery opened.
func ExternalID(inbox string) string { return "countersign:" + inbox }

// TextModal returns a modal that has only a text, such as the reason why there is no form.
func TextModal(action string, why *block.RichText) slack.ModalViewRequest {
	p := new(block.Builder)
	p.Para(why)
	return Modal(Titles[action], p)
}

func submittable(v slack.ModalViewRequest, callback, submit string, f control.FormToken) slack.ModalViewRequest {
	v.CallbackID, v.PrivateMetadata, v.Submit, v.Close = callback, f.String(), block.PlainText(block.Shorten(submit, slackapi.MaxModalTitle)), block.PlainText("Cancel")
	return v
}

func textInput(id, label, hint, initial string, multiline, optional bool) *slack.InputBlock {
	in := slack.NewPlainTextInputBlockElement(nil, id).WithMultiline(multiline).WithInitialValue(initial).WithMaxLength(slackapi.MaxInput)
	return inputBlock(id, label, hint, in, optional)
}

func inputBlock(id, label, hint string, in slack.BlockElement, optional bool) *slack.InputBlock {
	var below *slack.TextBlockObject
	if hint != "" {
		below = block.PlainText(block.Clip(hint, block.MaxQuote))
	}
	return slack.NewInputBlock(id, block.PlainText(block.Clip(label, block.MaxQuote)), below, in).WithOptional(optional)
}

// maxFaults is the maximum size in bytes of the form errors in an acknowledgement. On a socket Slack silently drops
// acknowledgements of 20 KB or more.
const maxFaults = 16 << 10

// FitErrors returns as many form errors as fit in one acknowledgement. The last error says how many errors are
// missing. The missing errors are shown when the form is submitted again.
func FitErrors(faults map[string]string) map[string]string {
	out := map[string]string{}
	size := 0
	for i, id := range slices.Sorted(maps.Keys(faults)) {
		text := block.Clip(faults[id], MaxErrorText)
		left := len(faults) - i - 1
		size += bytesOf(id) + bytesOf(text) + 2
		if last := size+MaxErrorText*4 > maxFaults; last && left > 0 {
			text = block.Clip(text, MaxErrorText/2) + fmt.Sprintf(" (Also wrong: %s.)", block.Plural(left, "more field"))
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
