package bot

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// typedForm asks whoever approves to type one of the call's values, so that it is not approved by habit, and says why.
func typedForm(r approvers.Request, f formMark) slack.ModalViewRequest {
	p := new(page)
	sign, risk := riskWords(r.Plan.Risk, r.Effect)
	p.para(new(prose).strong(clip(whatHappens(r.Preview, r.Tool), maxHeadline)), say(sign+" "+risk))
	if doubt := twice(r); doubt != "" {
		p.para(say("⚠️ " + doubt))
	}
	p.exact(argumentsOf(r))
	p.blocks = append(p.blocks, typedInput(r))
	return submittable(modal(formTitles[actTyped], p), actTyped, "Approve", f)
}

func typedInput(r approvers.Request) slack.Block {
	what, value := typedValue(r)
	return textInput(fieldTyped, fmt.Sprintf("To approve, type %s: %s", what, Visible(value)), whyTyped(r), "", false, false)
}

// whyTyped says why a value has to be typed.
func whyTyped(r approvers.Request) string {
	why := []string{"Why:"}
	if r.Plan.Risk >= approvers.Critical {
		why = append(why, "this is critical.")
	}
	if r.StepUp != "" {
		why = append(why, clip(oneLine(r.StepUp), maxStepUp)+".")
	}
	return strings.Join(why, " ")
}

// wantsTyping says on a card that approving asks for a typed value, and why; nothing where it does not.
func (s scene) wantsTyping(r approvers.Request) *prose {
	if !r.WantsTyping() {
		return new(prose)
	}
	what, _ := typedValue(r)
	return say("✍️ Approve… asks you to type " + what + ". " + whyTyped(r))
}

// mistyped is what is wrong with a typed value, or "". A number may be written in another way.
func mistyped(r approvers.Request, typed string) string {
	typed = strings.TrimSpace(typed)
	_, want := typedValue(r)
	if typed == want || sameNumber(typed, want) {
		return ""
	}
	return "This must be exactly " + Visible(want) + "."
}
