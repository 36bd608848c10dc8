package bot

import (
	"context"
	"errors"
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// The buttons of a bundle, beside those that each call has on a card of its own.
const (
	actApart      = "apart" // a call gets a card of its own
	actApproveAll = "approve_all"
	actRejectAll  = "reject_all"
)

// pick finds the request of a bundle that a button is about; none for a button that is about all of them.
func (s *seen) pick() {
	for _, c := range s.Calls {
		if c.Request.ID == s.mark.Ref {
			s.Request, s.Execution, s.Call = c.Request, c.Execution, &c.Call
		}
	}
}

// offered are the calls that the clicked version of a bundle put up for decision.
func (s seen) offered() (calls []desk.CallSight) {
	for _, c := range s.Calls {
		if c.Request != nil && slices.ContainsFunc(s.shown.Shows, func(o store.Shown) bool { return o.Request == c.Request.ID }) {
			calls = append(calls, c)
		}
	}
	return calls
}

// clickerOfAll says who clicked on a button for all calls of a bundle, with what could give them authority over each.
func (b *Bot) clickerOfAll(ctx context.Context, user string, s seen) (who approvers.Identity, err error) {
	var tools, groups []string
	highest := approvers.Low
	for _, c := range s.offered() {
		highest = max(highest, stakes(s.Policy, c.Request))
	}
	for _, c := range s.offered() {
		if slices.Contains(tools, c.Request.Tool) {
			continue
		}
		tools = append(tools, c.Request.Tool)
		if who, err = b.clicker(ctx, user, s.Policy, c.Request.Tool, highest, c.Request); err != nil {
			return approvers.Identity{}, err
		}
		groups = append(groups, who.Groups...)
	}
	if who.ID == "" {
		return b.who(ctx, user, false)
	}
	slices.Sort(groups)
	who.Groups = slices.Compact(groups)
	return who, nil
}

// decideAll decides all calls that the clicked version put up, or none.
func (b *Bot) decideAll(ctx context.Context, w whisper, s seen, c desk.Click) error {
	inTheWay, err := b.Desk.DecideAll(ctx, c, s.shown.Shows)
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.tell(ctx, w, deniedAll(d, inTheWay, s.Policy))
	return nil
}

// deniedAll says why none of several calls was decided, and which one stood in the way.
func deniedAll(d *approvers.Denied, r approvers.Request, p *approvers.Policy) *prose {
	if r.ID == "" {
		return denied(d, nil, p)
	}
	return say("None of them was decided, because of ").strong(clip(whatHappens(r.Preview, r.Tool), maxQuote)).say(". ").also(denied(d, &r, p))
}

// rejectAllForm asks for the one reason for which all calls of a bundle are rejected.
func rejectAllForm(s seen, who approvers.Identity) slack.ModalViewRequest {
	calls := s.offered()
	if len(calls) == 0 {
		return refusal(actRejectAll, denied(&approvers.Denied{Code: approvers.DeniedNothing}, nil, s.Policy))
	}
	lines := []*prose{say("None of these will run:")}
	for _, c := range calls {
		one := s
		one.Request = c.Request
		if d := hindrance(*c.Request, one, who); d != nil {
			return refusal(actRejectAll, deniedAll(d, *c.Request, s.Policy))
		}
		lines = append(lines, say("• ").strong(clip(whatHappens(c.Request.Preview, c.Request.Tool), maxBundleText)))
	}
	p := new(page)
	p.para(lines...)
	p.blocks = append(p.blocks, textInput(fieldReason, "Why?", "The person who asked and the agent are told this for each of them.", "", true, false))
	return submittable(modal(formTitles[actRejectAll], p), actRejectAll, "Reject all", formMark{mark: s.mark})
}
