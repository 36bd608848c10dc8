package bot

import (
	"context"
	"errors"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render/block"
	"countersign/bot/render/form"
	"countersign/bot/render/notice"
	"countersign/bot/render/wording"
)

// pauseHandler handles the commands and the buttons that pause and resume all work. pauseHandler identifies each person
// without cached answers of Slack.
type pauseHandler struct {
	*core
	identities *Identities
	ephemeral  *ephemeral
	outcomes   *outcomes
}

// asked answers /countersign pause. For people who may pause and gave a reason, the answer lists the work that a pause
// would stop, and has the button for a pause.
func (b *pauseHandler) asked(ctx context.Context, c command, reason string) (*block.Builder, error) {
	policy := b.Views.Policy()
	who, err := b.identities.pauser(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	if no := policy.MayPause(who); no != nil {
		return block.Paragraph(form.DeniedPauseText(no, policy)), nil
	}
	sum, p, err := b.Views.PauseImpact(ctx)
	switch {
	case err != nil:
		return nil, err
	case p.On:
		return block.Paragraph(wording.Paused(p), new(block.RichText).Code(c.Command+" resume").Say(" resumes everything.")), nil
	case reason == "":
		return nil, notClear("Say why; everybody who waits is told: %s pause we are looking into wrong refunds", c.Command)
	case block.Width(reason) > notice.MaxPauseReason:
		return nil, notClear("Say why in at most %d characters.", notice.MaxPauseReason)
	}
	return notice.PauseImpact(sum, reason), nil
}

// clicked pauses everything. The button holds only the reason that the person typed earlier. So clicked checks, at the
// click, whether the person may pause.
func (b *pauseHandler) clicked(ctx context.Context, d delivered, i interaction) error {
	channel, ts := i.message()
	to := ephemeralReply{user: i.User.ID, channel: channel, responseURL: i.ResponseURL, replace: true}
	policy := b.Views.Policy()
	who, err := b.identities.pauser(ctx, to.user, policy)
	if err != nil {
		return b.outcomes.unknownClicker(ctx, d, to, workflow.Click{Channel: channel, MessageTS: ts}, form.ClickTarget{}, err)
	}
	click := workflow.Click{Inbox: d.id, At: d.at, Who: who, Reason: block.Clip(strings.TrimSpace(i.Actions[0].Value), notice.MaxPauseReason), Channel: channel, MessageTS: ts}
	err = b.Pauses.PauseBy(ctx, click)
	if err == nil {
		b.ephemeral.reply(ctx, to, block.Say("⏸️ ").Strong("Everything is paused.").Say(" You and all who may end it have a direct message with a Resume button."))
	}
	return b.answer(ctx, to, policy, err)
}

// resumeAsked answers /countersign resume.
func (b *pauseHandler) resumeAsked(ctx context.Context, c command, reason string) (*block.Builder, error) {
	policy := b.Views.Policy()
	who, err := b.identities.pauser(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	err = b.Pauses.ResumeBy(ctx, workflow.Click{Inbox: c.inbox, At: b.Now(), Who: who, Reason: block.Clip(reason, notice.MaxPauseReason), Channel: c.Channel})
	var no *approvers.Denied
	switch {
	case errors.As(err, &no):
		return block.Paragraph(form.DeniedPauseText(no, policy)), nil
	case err != nil:
		return nil, err
	}
	return block.Paragraph(block.Say("▶️ ").Strong("Everything is resumed.")), nil
}

// answer tells a person why their click on a pause changed nothing.
func (b *pauseHandler) answer(ctx context.Context, to ephemeralReply, p *approvers.Policy, err error) error {
	var no *approvers.Denied
	if !errors.As(err, &no) {
		return err
	}
	b.ephemeral.reply(ctx, to, form.DeniedPauseText(no, p))
	return nil
}
