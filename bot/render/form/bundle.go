package form

import (
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
)

// RejectAll asks for one reason to reject all calls of a bundle.
func RejectAll(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	calls := s.Offered()
	if len(calls) == 0 {
		return TextModal(control.ActRejectAll, DeniedText(&approvers.Denied{Code: approvers.DeniedNothing}, nil, s.Policy))
	}
	lines := []*block.RichText{nil}
	effect := "⛔ You reject these, and none of them will run:"
	for _, c := range calls {
		one := s
		one.Request = c.Request
		if d := Precheck(*c.Request, one, who); d != nil {
			return TextModal(control.ActRejectAll, DeniedAllText(d, *c.Request, s.Policy))
		}
		line := block.Say("• ").Strong(block.Clip(wording.WhatHappens(c.Request.Preview, c.Request.Tool), block.MaxBundleText))
		if need := c.Request.CurrentStage().Rejects; need > 1 {
			effect = "⛔ You reject these. Unless a call says otherwise, it will not run:"
			line.Say(fmt.Sprintf(" (will not run when %d people have rejected it)", need))
		}
		lines = append(lines, line)
	}
	lines[0] = block.Say(effect)
	p := new(block.Builder)
	p.Para(lines...)
	p.Blocks = append(p.Blocks, textInput(control.FieldReason, "Why?", reasonHint, "", true, false))
	return submittable(Modal(Titles[control.ActRejectAll], p), control.ActRejectAll, "Reject all", control.FormToken{ButtonToken: s.Token})
}

// DeniedAllText explains why none of several calls was decided, and names the call that prevented the decision.
func DeniedAllText(d *approvers.Denied, r approvers.Request, p *approvers.Policy) *block.RichText {
	if r.ID == "" {
		return DeniedText(d, nil, p)
	}
	return block.Say("None of them was decided, because of ").Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxQuote)).Say(". ").Add(DeniedText(d, &r, p))
}
