package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
)

// clickHandler handles clicks on buttons. It validates the click, identifies the person, and calls one use case of the
// workflow or opens a form. The workflow decides whether the person may do the action.
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
		switch _, form := render.FormTitles[a.ActionID]; {
		case form:
			return b.forms.openWithin(ctx, d, i)
		case a.ActionID == render.ActApart:
			return b.forms.unbundleWithin(ctx, d, i)
		}
		return b.forms.turnPage(ctx, d, i)
	}
	if strings.HasPrefix(a.ActionID, render.ActHome+"_") {
		return b.homes.turn(ctx, d, i)
	}
	if a.ActionID == render.ActPause {
		return b.pause.clicked(ctx, d, i)
	}
	channel, ts := i.message()
	r := ephemeralReply{user: i.User.ID, channel: channel, thread: i.Posted.ThreadTS, responseURL: i.ResponseURL}
	c := workflow.Click{Channel: channel, MessageTS: ts}
	s, err := b.targets.ofClick(ctx, i, a, channel, ts)
	if err != nil {
		return b.outcomes.refuseTarget(ctx, d, r, c, s, err)
	}
	b.posts.replaced.noteClick(s.Message.ID, i.ResponseURL, d.at)
	action := render.ActionOf(a.ActionID)
	if _, form := render.FormTitles[action]; form {
		return b.forms.open(ctx, formClick{d, action, r, s, func(v slack.ModalViewRequest) error { return b.modals.fill(ctx, d.id, d.at, v) }})
	}
	return b.act(ctx, d, r, s, action, c)
}

// act performs a button's action.
func (b *clickHandler) act(ctx context.Context, d delivered, w ephemeralReply, s render.ClickTarget, action string, c workflow.Click) error {
	who, err := b.identities.authority(ctx, w.user, s, action)
	if err != nil {
		return b.outcomes.unknownClicker(ctx, d, w, c, s, err)
	}
	c.Inbox, c.At, c.Who, c.User = d.id, d.at, who, w.user
	c.Digest, c.Whole, c.Rendering, c.FirstSeen = s.ShownRequest().Digest, s.ShownRequest().Whole, s.RenderingHash(), s.ShownRequest().Since
	r := s.Request
	if s.Grant != nil {
		return b.grant.clicked(ctx, w, s, action, c)
	}
	switch action {
	case render.ActApprove:
		c.Request, c.Kind = s.Token.Ref, approvers.Approve
		return b.outcomes.decide(ctx, w, s, c)
	case render.ActApproveAll:
		c.Kind = approvers.Approve
		return b.outcomes.decideAll(ctx, w, s, c)
	case render.ActApart: // only on cards of earlier versions of the bot; now the button is in Details…
		c.Request = s.Token.Ref
		var after approvers.Request
		after, err = b.Requests.Unbundle(ctx, c)
		r = &after
	case render.ActWithdraw:
		c.Request = s.Token.Ref
		var after approvers.Request
		after, err = b.Requests.Withdraw(ctx, c)
		r = &after
	case render.ActWithdrawAll:
		c.Turn = s.Token.Ref
		err = b.Requests.WithdrawAll(ctx, c)
	case render.ActFeedback:
		return b.rate(ctx, w, s, c)
	case render.ActStop:
		c.Turn = s.Token.Ref
		err = b.Turns.StopBy(ctx, c)
	case render.ActTryAgain:
		c.Turn = s.Token.Ref
		err = b.Turns.TryAgain(ctx, c)
	case render.ActDidNot:
		c.Execution = s.Token.Ref
		return b.outcomes.answerReport(ctx, w, s, b.Runs.Report(ctx, c, workflow.DidNot))
	case render.ActAskAgain:
		c.Execution = s.Token.Ref
		return b.outcomes.answerReport(ctx, w, s, b.Runs.RetryUnknown(ctx, c))
	case render.ActBack:
		return b.absence.backClicked(ctx, w, c)
	case render.ActResume:
		return b.pause.answer(ctx, w, s.Policy, b.Pauses.ResumeBy(ctx, c))
	case render.ActVisited:
		c.Elicitation = s.Token.Ref
		err = b.Questions.Respond(ctx, c, nil)
	case render.ActNoAnswer:
		c.Elicitation = s.Token.Ref
		err = b.Questions.Decline(ctx, c)
	case render.ActLeave:
		c.Execution = s.Token.Ref
		return b.outcomes.answerReport(ctx, w, s, b.Runs.Report(ctx, c, workflow.Leave))
	default:
		option, isChoice := render.ChoiceOf(action)
		if !isChoice {
			return fmt.Errorf("%w: no button does %q", errPayload, action)
		}
		c.Call = s.Token.Ref
		err = b.Questions.Answer(ctx, c, option)
	}
	return b.outcomes.answer(ctx, w, r, s.Policy, err)
}

// rate records a rating of an answer, and confirms it.
func (b *clickHandler) rate(ctx context.Context, r ephemeralReply, s render.ClickTarget, c workflow.Click) error {
	turn, good := strings.CutPrefix(s.Token.Ref, render.FeedbackGood)
	turn, poor := strings.CutPrefix(turn, render.FeedbackPoor)
	if good == poor {
		return fmt.Errorf("%w: the button's value is not a rating", errPayload)
	}
	c.Turn = turn
	err := b.Turns.AddFeedback(ctx, c, good)
	var d *approvers.Denied
	switch {
	case errors.As(err, &d) && (d.Code == approvers.DeniedGuest || d.Code == approvers.DeniedForeign || d.Code == approvers.DeniedBot):
		b.ephemeral.reply(ctx, r, render.Say("Only those who may ask the agent can rate its answers. Nothing was changed."))
		return nil
	case err != nil:
		return b.outcomes.answer(ctx, r, nil, s.Policy, err)
	case poor:
		b.ephemeral.reply(ctx, r, render.Say("Noted, thank you. If something should be done differently, write it here: the agent reads it, and its operator sees how the answers are rated."))
	default:
		b.ephemeral.reply(ctx, r, render.Say("Noted, thank you."))
	}
	return nil
}
