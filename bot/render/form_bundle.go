package render

import (
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// RejectAllForm asks for one reason to reject all calls of a bundle.
func RejectAllForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	calls := s.Offered()
	if len(calls) == 0 {
		return Refusal(ActRejectAll, Denied(&approvers.Denied{Code: approvers.DeniedNothing}, nil, s.Policy))
	}
	lines := []*RichText{nil}
	effect := "⛔ You reject these, and none of them will run:"
	for _, c := range calls {
		one := s
		one.Request = c.Request
		if d := Precheck(*c.Request, one, who); d != nil {
			return Refusal(ActRejectAll, DeniedAll(d, *c.Request, s.Policy))
		}
		line := Say("• ").Strong(Clip(whatHappens(c.Request.Preview, c.Request.Tool), maxBundleText))
		if need := c.Request.CurrentStage().Rejects; need > 1 {
			effect = "⛔ You reject these. Unless a call says otherwise, it will not run:"
			line.Say(fmt.Sprintf(" (will not run when %d people have rejected it)", need))
		}
		lines = append(lines, line)
	}
	lines[0] = Say(effect)
	p := new(BlockBuilder)
	p.Para(lines...)
	p.Blocks = append(p.Blocks, textInput(FieldReason, "Why?", reasonHint, "", true, false))
	return submittable(Modal(FormTitles[ActRejectAll], p), ActRejectAll, "Reject all", FormToken{ButtonToken: s.Token})
}

// DeniedAll explains why none of several calls was decided, and names the call that prevented the decision.
func DeniedAll(d *approvers.Denied, r approvers.Request, p *approvers.Policy) *RichText {
	if r.ID == "" {
		return Denied(d, nil, p)
	}
	return Say("None of them was decided, because of ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)).Say(". ").add(Denied(d, &r, p))
}
