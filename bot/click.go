package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/render/thread"
	"countersign/store"
)

// clickHandler handles clicks on buttons. clickHandler validates the click, identifies the person, and calls one use
// case of the workflow or opens a form. The workflow decides whether the person may do the action.
type clickHandler struct {
	*core
	identities *Identities
	ephemeral  *ephemeral
	posts      *posts
	homes      *homeTabs
	modals     *modals
	targets    *targets
	outcomes   *outcomes
	forms      *formOpener
	pause      *pauseHandler
	absence    *absenceHandler
	grant      *grantHandler
}

// handle handles a click on a button.
func (b *clickHandler) handle(ctx context.Context, d delivered, i interaction) error {
	if len(i.Actions) == 0 {
		return fmt.Errorf("%w: no action in it", errPayload)
	}
	a := i.Actions[0]
	if i.View.modal() {
		switch _, form := form.Titles[a.ActionID]; {
		case form:
			return b.forms.openWithin(ctx, d, i)
		case a.ActionID == control.ActApart:
			return b.forms.unbundleWithin(ctx, d, i)
		}
		return b.forms.turnPage(ctx, d, i)
	}
	if strings.HasPrefix(a.ActionID, control.ActHome+"_") {
		return b.homes.turn(ctx, d, i)
	}
	if a.ActionID == control.ActPause {
		return b.pause.clicked(ctx, d, i)
	}
	channel, ts := i.message()
	to := ephemeralReply{user: i.User.ID, channel: channel, thread: i.Posted.ThreadTS, responseURL: i.ResponseURL}
	click := workflow.Click{Channel: channel, MessageTS: ts}
	action := control.ActionOf(a.ActionID)
	target, err := b.targets.ofClick(ctx, i, a, channel, ts)
	if _, form := form.Titles[action]; form && err != nil {
		return b.forms.refuse(ctx, d, action, to, click, target, err)
	}
	if err != nil {
		return b.outcomes.refuseTarget(ctx, d, to, click, target, err)
	}
	b.posts.replaced.noteClick(target.Message.ID, i.ResponseURL, d.at)
	if _, form := form.Titles[action]; form {
		return b.forms.open(ctx, formClick{d, action, to, target, func(v slack.ModalViewRequest) error { return b.modals.fill(ctx, d.id, d.at, v) }})
	}
	return b.act(ctx, d, to, target, action, click)
}

// seen sets what the person saw: how the clicked version shows the request.
func seen(click *workflow.Click, target form.ClickTarget) {
	shown := target.ShownRequest()
	click.Digest, click.Stage, click.Whole, click.FirstSeen, click.Rendering = shown.Digest, shown.Stage, shown.Whole, shown.Since, target.RenderingHash()
	if target.Message.Kind != store.OutboxHome {
		click.Message = target.Message.ID
	}
}

// act performs a button's action.
func (b *clickHandler) act(ctx context.Context, d delivered, to ephemeralReply, target form.ClickTarget, action string, click workflow.Click) error {
	who, err := b.identities.authority(ctx, to.user, target, action)
	if err != nil {
		return b.outcomes.unknownClicker(ctx, d, to, click, target, err)
	}
	click.Inbox, click.At, click.Who, click.User = d.id, d.at, who, to.user
	seen(&click, target)
	r := target.Request
	if target.Grant != nil {
		return b.grant.clicked(ctx, to, target, action, click)
	}
	switch action {
	case control.ActApprove:
		click.Request, click.Kind = target.Token.Ref, approvers.Approve
		return b.outcomes.decide(ctx, to, target, click)
	case control.ActApproveAll:
		click.Kind = approvers.Approve
		return b.outcomes.decideAll(ctx, to, target, click)
	case control.ActApart: // only on cards of earlier versions of the bot; now the button is in Details…
		click.Request = target.Token.Ref
		var after approvers.Request
		after, err = b.Requests.Unbundle(ctx, click)
		r = &after
	case control.ActWithdraw:
		click.Request = target.Token.Ref
		var after approvers.Request
		after, err = b.Requests.Withdraw(ctx, click)
		r = &after
	case control.ActWithdrawAll:
		click.Turn = target.Token.Ref
		err = b.Requests.WithdrawAll(ctx, click)
	case control.ActFeedback:
		return b.rate(ctx, to, target, click)
	case control.ActStop:
		click.Turn = target.Token.Ref
		err = b.Turns.StopBy(ctx, click)
	case control.ActTryAgain:
		click.Turn = target.Token.Ref
		err = b.Turns.TryAgain(ctx, click)
	case control.ActDidNot:
		click.Execution = target.Token.Ref
		return b.outcomes.answerReport(ctx, to, target, b.Runs.Report(ctx, click, workflow.DidNot))
	case control.ActAskAgain:
		click.Execution = target.Token.Ref
		return b.outcomes.answerReport(ctx, to, target, b.Runs.RetryUnknown(ctx, click))
	case control.ActBack:
		return b.absence.backClicked(ctx, to, click)
	case control.ActResume:
		return b.pause.answer(ctx, to, target.Policy, b.Pauses.ResumeBy(ctx, click))
	case control.ActVisited:
		click.Elicitation = target.Token.Ref
		err = b.Questions.Respond(ctx, click, nil)
	case control.ActNoAnswer:
		click.Elicitation = target.Token.Ref
		err = b.Questions.Decline(ctx, click)
	case control.ActLeave:
		click.Execution = target.Token.Ref
		return b.outcomes.answerReport(ctx, to, target, b.Runs.Report(ctx, click, workflow.Leave))
	default:
		option, isChoice := thread.ChoiceOf(action)
		if !isChoice {
			return fmt.Errorf("%w: no button does %q", errPayload, action)
		}
		click.Call = target.Token.Ref
		err = b.Questions.Answer(ctx, click, option)
	}
	return b.outcomes.answer(ctx, to, r, target.Policy, err)
}

// rate records a rating of an answer, and confirms it.
func (b *clickHandler) rate(ctx context.Context, to ephemeralReply, target form.ClickTarget, click workflow.Click) error {
	turn, good := strings.CutPrefix(target.Token.Ref, control.FeedbackGood)
	turn, poor := strings.CutPrefix(turn, control.FeedbackPoor)
	if good == poor {
		return fmt.Errorf("%w: the button's value is not a rating", errPayload)
	}
	click.Turn = turn
	err := b.Turns.AddFeedback(ctx, click, good)
	var d *approvers.Denied
	switch {
	case errors.As(err, &d) && (d.Code == approvers.DeniedGuest || d.Code == approvers.DeniedForeign || d.Code == approvers.DeniedBot):
		b.ephemeral.reply(ctx, to, block.Say("Only those who may ask the agent can rate its answers. Nothing was changed."))
		return nil
	case err != nil:
		return b.outcomes.answer(ctx, to, nil, target.Policy, err)
	case poor:
		b.ephemeral.reply(ctx, to, block.Say("Noted, thank you. If something should be done differently, write it here: the agent reads it, and its operator sees how the answers are rated."))
	default:
		b.ephemeral.reply(ctx, to, block.Say("Noted, thank you."))
	}
	return nil
}
