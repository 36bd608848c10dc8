package render

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// TypedForm asks an approver to type one of the call's values, and says why. Typing prevents approval out of habit.
func TypedForm(r approvers.Request, f FormToken) slack.ModalViewRequest {
	p := new(BlockBuilder)
	sign, risk := riskWords(r.Plan.Risk, r.Effect)
	p.Para(new(RichText).Strong(Clip(whatHappens(r.Preview, r.Tool), maxHeadline)), Say(sign+" "+risk))
	if doubt := twice(r); doubt != "" {
		p.Para(Say("⚠️ " + doubt))
	}
	p.exact(argumentsOf(r))
	p.Blocks = append(p.Blocks, typedInput(r))
	return submittable(Modal(FormTitles[ActTyped], p), ActTyped, "Approve", f)
}

func typedInput(r approvers.Request) slack.Block {
	what, value := typedValue(r)
	return textInput(FieldTyped, fmt.Sprintf("To approve, type %s: %s", what, Visible(value)), whyTyped(r), "", false, false)
}

// whyTyped says why a value must be typed.
func whyTyped(r approvers.Request) string {
	why := []string{"Why:"}
	if r.Plan.Risk >= approvers.Critical {
		why = append(why, "this is critical.")
	}
	if r.StepUp != "" {
		why = append(why, Clip(OneLine(r.StepUp), maxStepUp)+".")
	}
	return strings.Join(why, " ")
}

// wantsTyping says on a card that approval requires a typed value, and why. Otherwise it is empty.
func (v View) wantsTyping(r approvers.Request) *RichText {
	if !r.WantsTyping() {
		return new(RichText)
	}
	what, _ := typedValue(r)
	return Say("✍️ Approve… asks you to type " + what + ". " + whyTyped(r))
}

// TypedError returns the error in a typed value, or "". A number may be written in another form.
func TypedError(r approvers.Request, typed string) string {
	typed = strings.TrimSpace(typed)
	_, want := typedValue(r)
	if typed == want || sameNumber(typed, want) {
		return ""
	}
	return "This must be exactly " + Visible(want) + "."
}
