package bot

import (
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// moves are the buttons: to decide, and below them what can be done beside deciding. A copy for one person offers what that person can still
// do; on a card in a channel, which looks the same to everybody, whoever can't do something is told why.
func (s scene) moves(p *page, r approvers.Request, whole bool) {
	value := s.mark(r.ID)
	ask := button(actAsk, "Ask…", value, slack.StyleDefault)
	comment := button(actComment, "Comment…", value, slack.StyleDefault)
	handOn := button(actHandOn, "Hand on…", value, slack.StyleDefault)
	takeBack := button(actTakeBack, "Take back…", value, slack.StyleDefault)
	switch {
	case r.State == approvers.Approved:
		p.buttons("", takeBack)
	case r.State != approvers.Pending:
	case s.hadTheirSay(r):
		p.para(say("☑️ You have agreed. Others are still needed."))
		p.buttons("", comment, takeBack)
	case len(r.Standing()) > 0 && !s.ownCopy():
		s.choices(p, r, whole)
		p.buttons("", append([]slack.BlockElement{ask, comment, handOn, takeBack}, s.reveal(r)...)...)
	default:
		s.choices(p, r, whole)
		p.buttons("", append(s.andMore(r, whole, ask, comment, handOn), s.reveal(r)...)...)
	}
	if r.State == approvers.Pending {
		p.small(s.hint(r))
	}
}

// ownCopy reports whether this copy is for one person.
func (s scene) ownCopy() bool { return strings.HasPrefix(s.Surface.To, "user:") }

// hadTheirSay reports whether whom this copy is for has agreed already. One person counts once.
func (s scene) hadTheirSay(r approvers.Request) bool {
	user, own := strings.CutPrefix(s.Surface.To, "user:")
	return own && slices.ContainsFunc(r.Standing(), func(d approvers.Decision) bool { return d.By.User() == user })
}

// choices are the decisions, as a card has them.
func (s scene) choices(p *page, r approvers.Request, whole bool) {
	p.para(s.wantsTyping(r))
	p.buttons("", s.decisions(r, whole, slack.StylePrimary)...)
}

// decisions are the buttons to decide. What can't be shown whole here can't be approved here.
func (s scene) decisions(r approvers.Request, whole bool, style slack.Style) []slack.BlockElement {
	value := s.mark(r.ID)
	what := inFull(r.Preview, r.Tool, r.Args, r.Secrets)
	_, risk := riskWords(r.Plan.Risk, r.Effect)
	var row []slack.BlockElement
	switch {
	case whole && r.WantsTyping():
		row = append(row, button(actTyped, "Approve…", value, style))
	case whole:
		rest := "\n\n" + risk + "."
		if doubt := twice(r); doubt != "" {
			rest += "\n\n" + doubt
		}
		ask := confirm("Approve this?", clip(what, maxConfirm-width(rest))+rest, "Approve", "Not yet", slack.StylePrimary)
		row = append(row, button(actApprove, "Approve", value, style).WithConfirm(ask))
	default:
		row = append(row, button(actArguments, "Open all arguments", value, style))
	}
	if whole && forecastCut(r) {
		row = append(row, button(actArguments, "Open whole preview", value, slack.StyleDefault))
	}
	return append(row, button(actReject, "Reject…", value, slack.StyleDanger), button(actModify, "Modify…", value, slack.StyleDefault))
}

// hint says what the buttons can't say themselves.
func (s scene) hint(r approvers.Request) string {
	if s.hadTheirSay(r) {
		return "Take back… ends the request for good, with a reason."
	}
	note := "Modify… changes the arguments before approving. Ask… writes to the requester's thread, Comment… only here."
	if s.allowsMore(r) {
		note += " Allow more… approves this and lets calls like it run without asking, for a while."
	}
	if !r.Plan.SelfOK {
		note += " Those who asked for it can't decide."
	}
	return note
}
