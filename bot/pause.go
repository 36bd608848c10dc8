package bot

import (
	"context"
	"errors"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
)

// pauseAsked answers /countersign pause. pauseAsked says what a pause would stop. It offers the button for a pause to
// people who may pause.
func (b *Bot) pauseAsked(ctx context.Context, c command, reason string) (*render.BlockBuilder, error) {
	policy := b.Views.Policy()
	who, err := b.pauser(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	if no := policy.MayPause(who); no != nil {
		return render.Paragraph(render.DeniedPause(no, policy)), nil
	}
	sum, p, err := b.Views.PauseImpact(ctx)
	switch {
	case err != nil:
		return nil, err
	case p.On:
		return render.Paragraph(render.PausedBy(p), new(render.RichText).Code(c.Command+" resume").Say(" resumes everything.")), nil
	case reason == "":
		return nil, notClear("Say why, everybody who waits is told: %s pause we are looking into wrong refunds", c.Command)
	case render.Width(reason) > render.MaxPauseReason:
		return nil, notClear("Say why in at most %d characters.", render.MaxPauseReason)
	}
	return render.PauseImpact(sum, reason), nil
}

// pauseClicked pauses everything. The button holds only the reason that the person typed earlier. So pauseClicked
// checks, at the click, whether the person may pause.
func (b *Bot) pauseClicked(ctx context.Context, d delivered, i interaction) error {
	channel, ts := i.message()
	r := ephemeralReply{user: i.User.ID, channel: channel, responseURL: i.ResponseURL, replace: true}
	policy := b.Views.Policy()
	who, err := b.pauser(ctx, r.user, policy)
	if err != nil {
		return b.unknownClicker(ctx, d, r, workflow.Click{Channel: channel, MessageTS: ts}, render.ClickTarget{}, err)
	}
	c := workflow.Click{Inbox: d.id, At: d.at, Who: who, Reason: render.Clip(strings.TrimSpace(i.Actions[0].Value), render.MaxPauseReason), Channel: channel, MessageTS: ts}
	err = b.Pauses.PauseBy(ctx, c)
	if err == nil {
		b.replyEphemeral(ctx, r, render.Say("⏸️ ").Strong("Everything is paused.").Say(" You and all who may end it have a direct message with a Resume button."))
	}
	return b.answerPause(ctx, r, policy, err)
}

// resumeAsked answers /countersign resume.
func (b *Bot) resumeAsked(ctx context.Context, c command, reason string) (*render.BlockBuilder, error) {
	policy := b.Views.Policy()
	who, err := b.pauser(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	err = b.Pauses.ResumeBy(ctx, workflow.Click{Inbox: c.inbox, At: b.Now(), Who: who, Reason: render.Clip(reason, render.MaxPauseReason), Channel: c.Channel})
	var no *approvers.Denied
	switch {
	case errors.As(err, &no):
		return render.Paragraph(render.DeniedPause(no, policy)), nil
	case err != nil:
		return nil, err
	}
	return render.Paragraph(render.Say("▶️ ").Strong("Everything is resumed.")), nil
}

// answerPause tells a person why their click on a pause changed nothing.
func (b *Bot) answerPause(ctx context.Context, r ephemeralReply, p *approvers.Policy, err error) error {
	var no *approvers.Denied
	if !errors.As(err, &no) {
		return err
	}
	b.replyEphemeral(ctx, r, render.DeniedPause(no, p))
	return nil
}

// pauser returns a person's current identity, with the user groups that may pause. pauser uses no cached answer of
// Slack.
func (b *Bot) pauser(ctx context.Context, user string, p *approvers.Policy) (approvers.Identity, error) {
	var groups []string
	for _, name := range p.PausedBy {
		role, _ := p.Role(name)
		groups = append(groups, role.Groups()...)
	}
	return b.users.Identify(ctx, user, groups, true)
}
