package render

import (
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// Additional buttons of a bundle.
const (
	ActApart      = "apart" // moves a call to a card of its own
	ActApproveAll = "approve_all"
	ActRejectAll  = "reject_all"
)

// SelectRequest selects the request of the bundle that the button is about. It selects none if the button is about all
// of them.
func (s *ClickTarget) SelectRequest() {
	for _, c := range s.Calls {
		if c.Request.ID == s.Token.Ref {
			s.Request, s.Execution, s.Call = c.Request, c.Execution, &c.Call
		}
	}
}

// Offered returns the calls that the clicked version of a bundle offered for decision.
func (s ClickTarget) Offered() (calls []view.Call) {
	for _, c := range s.Calls {
		if c.Request != nil && slices.ContainsFunc(s.Shown.Shows, func(o store.Shown) bool { return o.Request == c.Request.ID }) {
			calls = append(calls, c)
		}
	}
	return calls
}

// DeniedAll says why none of several calls was decided, and which call prevented it.
func DeniedAll(d *approvers.Denied, r approvers.Request, p *approvers.Policy) *RichText {
	if r.ID == "" {
		return Denied(d, nil, p)
	}
	return Say("None of them was decided, because of ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)).Say(". ").also(Denied(d, &r, p))
}

// RejectAllForm asks for one reason to reject all calls of a bundle.
func RejectAllForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	calls := s.Offered()
	if len(calls) == 0 {
		return Refusal(ActRejectAll, Denied(&approvers.Denied{Code: approvers.DeniedNothing}, nil, s.Policy))
	}
	lines := []*RichText{Say("None of these will run:")}
	for _, c := range calls {
		one := s
		one.Request = c.Request
		if d := Precheck(*c.Request, one, who); d != nil {
			return Refusal(ActRejectAll, DeniedAll(d, *c.Request, s.Policy))
		}
		lines = append(lines, Say("• ").Strong(Clip(whatHappens(c.Request.Preview, c.Request.Tool), maxBundleText)))
	}
	p := new(BlockBuilder)
	p.Para(lines...)
	p.Blocks = append(p.Blocks, textInput(FieldReason, "Why?", "The person who asked and the agent are told this for each of them.", "", true, false))
	return submittable(Modal(FormTitles[ActRejectAll], p), ActRejectAll, "Reject all", FormToken{ButtonToken: s.Token})
}
