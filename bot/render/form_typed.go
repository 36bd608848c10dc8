package render

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// sameNumber reports whether two texts are the same number.
func sameNumber(a, b string) bool {
	if !plainNumber.MatchString(a) || !plainNumber.MatchString(b) {
		return false
	}
	x, ok := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok && ok2 && x.Cmp(y) == 0
}

// TypedForm asks an approver to type one of the call's values, and says why the value is required. Typing prevents
// approval out of habit.
func TypedForm(r approvers.Request, f FormToken) slack.ModalViewRequest {
	p := new(BlockBuilder)
	sign, risk := riskWords(r.Plan.Risk, r.Effect)
	p.Para(new(RichText).Strong(Clip(whatHappens(r.Preview, r.Tool), maxHeadline)), Say(sign+" "+risk))
	if no := previewSaysNo(r); no != "" {
		p.Para(Say("⛔ ").Strong(no))
	}
	if doubt := twiceWarning(r); doubt != "" {
		p.Para(Say("⚠️ " + doubt))
	}
	p.preformatted(argumentsOf(r))
	p.Blocks = append(p.Blocks, typedInput(r))
	return submittable(Modal(FormTitles[ActTyped], p), ActTyped, "Approve", f)
}

func typedInput(r approvers.Request) slack.Block {
	what, value := typedValue(r)
	return textInput(FieldTyped, fmt.Sprintf("To approve, type %s: %s", what, Visible(value)), whyTyped(r), "", false, false)
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
