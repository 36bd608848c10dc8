package form

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
)

// sameNumber reports whether two texts are the same number.
func sameNumber(a, b string) bool {
	if !argument.PlainNumber.MatchString(a) || !argument.PlainNumber.MatchString(b) {
		return false
	}
	x, ok := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok && ok2 && x.Cmp(y) == 0
}

// Typed asks an approver to type one of the call's values, and says why the value is required. Typing prevents
// approval out of habit.
func Typed(r approvers.Request, f control.FormToken) slack.ModalViewRequest {
	p := new(block.Builder)
	sign, risk := wording.RiskWords(r.Plan.Risk, r.Effect)
	p.Para(new(block.RichText).Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxHeadline)), block.Say(sign+" "+risk))
	if no := wording.PreviewSaysNo(r); no != "" {
		p.Para(block.Say("⛔ ").Strong(no))
	}
	if doubt := wording.TwiceWarning(r); doubt != "" {
		p.Para(block.Say("⚠️ " + doubt))
	}
	p.Preformatted(argument.OfRequest(r))
	p.Blocks = append(p.Blocks, typedInput(r))
	return submittable(Modal(Titles[control.ActTyped], p), control.ActTyped, "Approve", f)
}

func typedInput(r approvers.Request) slack.Block {
	what, value := argument.TypedValue(r)
	return textInput(control.FieldTyped, fmt.Sprintf("To approve, type %s: %s", what, block.Visible(value)), wording.WhyTyped(r), "", false, false)
}

// TypedError returns the error in a typed value, or "". A number may be written in another form.
func TypedError(r approvers.Request, typed string) string {
	typed = strings.TrimSpace(typed)
	_, want := argument.TypedValue(r)
	if typed == want || sameNumber(typed, want) {
		return ""
	}
	return "This must be exactly " + block.Visible(want) + "."
}
