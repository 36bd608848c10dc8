package render

import (
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/slackapi"
)

// moves adds the buttons: the decisions, and below them the other actions. A copy for one person offers the actions
// still open to that person. A card in a channel looks the same to everybody; a person without permission gets an
// explanation on a click.
func (v View) moves(p *BlockBuilder, r approvers.Request, whole bool) {
	value := v.token(r.ID)
	ask := button(ActAsk, "Ask…", value, slack.StyleDefault)
	comment := button(ActComment, "Comment…", value, slack.StyleDefault)
	handOn := button(ActHandOn, "Hand on…", value, slack.StyleDefault)
	takeBack := button(ActTakeBack, "Take back…", value, slack.StyleDefault)
	switch {
	case r.State == approvers.Approved:
		p.buttons("", takeBack)
	case r.State != approvers.Pending:
	case v.hadTheirSay(r):
		p.Para(Say("☑️ You have agreed. Others are still needed."))
		p.buttons("", comment, takeBack)
	case len(r.Standing()) > 0 && !v.ownCopy():
		v.choices(p, r, whole)
		p.buttons("", append([]slack.BlockElement{ask, comment, handOn, takeBack}, v.reveal(r)...)...)
	default:
		v.choices(p, r, whole)
		p.buttons("", append(v.andMore(r, whole, ask, comment, handOn), v.reveal(r)...)...)
	}
	if r.State == approvers.Pending {
		p.Small(v.hint(r))
	}
}

func (v View) ownCopy() bool { return strings.HasPrefix(v.Message.To, "user:") }

// hadTheirSay reports whether the owner of this copy has already approved. Each person counts once.
func (v View) hadTheirSay(r approvers.Request) bool {
	user, own := strings.CutPrefix(v.Message.To, "user:")
	return own && slices.ContainsFunc(r.Standing(), func(d approvers.Decision) bool { return d.By.User() == user })
}

// choices adds the decision buttons of a card.
func (v View) choices(p *BlockBuilder, r approvers.Request, whole bool) {
	p.Para(v.wantsTyping(r))
	p.buttons("", v.decisions(r, whole, slack.StylePrimary)...)
}

// decisions returns the decision buttons. A call that is not shown whole can't be approved here.
func (v View) decisions(r approvers.Request, whole bool, style slack.Style) []slack.BlockElement {
	value := v.token(r.ID)
	what := inFull(r.Preview, r.Tool, r.Args, r.Secrets)
	_, risk := riskWords(r.Plan.Risk, r.Effect)
	var row []slack.BlockElement
	switch {
	case whole && r.WantsTyping():
		row = append(row, button(ActTyped, "Approve…", value, style))
	case whole:
		rest := "\n\n" + risk + "."
		if doubt := twice(r); doubt != "" {
			rest += "\n\n" + doubt
		}
		ask := confirm("Approve this?", Clip(what, slackapi.MaxConfirm-Width(rest))+rest, "Approve", "Not yet", slack.StylePrimary)
		row = append(row, button(ActApprove, "Approve", value, style).WithConfirm(ask))
	default:
		row = append(row, button(ActArguments, "Open all arguments", value, style))
	}
	if whole && toolPreviewCut(r) {
		row = append(row, button(ActArguments, "Open whole preview", value, slack.StyleDefault))
	}
	return append(row, button(ActReject, "Reject…", value, slack.StyleDanger), button(ActModify, "Modify…", value, slack.StyleDefault))
}

// hint explains what the button labels can't.
func (v View) hint(r approvers.Request) string {
	if v.hadTheirSay(r) {
		return "Take back… ends the request for good, with a reason."
	}
	note := "Modify… changes the arguments before approving. Ask… writes to the requester's thread, Comment… only here."
	if v.allowsMore(r) {
		note += " Allow more… approves this and lets calls like it run without asking, for a while."
	}
	if !r.Plan.SelfOK {
		note += " Those who asked for it can't decide."
	}
	return note
}
