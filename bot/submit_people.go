package bot

import (
	"context"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/directory"
	"countersign/bot/render"
)

// examineColleague returns an error beside the field if the chosen colleague can't decide. What can't be found out in
// time is reported later.
func (b *Bot) examineColleague(ctx context.Context, r approvers.Request, i interaction) map[string]string {
	user := i.filled(render.FieldColleague)
	if user == "" {
		return map[string]string{render.FieldColleague: "Choose a colleague."}
	}
	ctx, cancel := context.WithTimeout(ctx, colleagueWait)
	defer cancel()
	p := b.Workflow.Policy()
	to, err := b.users.Clicker(ctx, user, p, r.Tool, approvers.Low, &r)
	if err != nil {
		return nil
	}
	if _, d := r.Peer(p, to); d != nil {
		d = &approvers.Denied{Code: approvers.DeniedNotPeer, Role: r.CurrentStage().Title(p)}
		return map[string]string{render.FieldColleague: render.Clip(render.PlainWords(render.Denied(d, &r, p)), render.MaxErrorText)}
	}
	return nil
}

// submitPeople passes an action other than a decision to the workflow.
func (b *Bot) submitPeople(ctx context.Context, d delivered, w ephemeralReply, s render.ClickTarget, i interaction, c workflow.Click) error {
	var r approvers.Request
	var err error
	switch i.View.Callback {
	case render.ActAsk:
		r, err = b.Workflow.Say(ctx, c, approvers.Question)
	case render.ActComment:
		r, err = b.Workflow.Say(ctx, c, approvers.Comment)
	case render.ActAnswer:
		r, err = b.Workflow.Reply(ctx, c, s.Message.Step)
	case render.ActTakeBack:
		r, err = b.Workflow.Revoke(ctx, c)
	case render.ActHandOn:
		to, unknown := b.users.Clicker(ctx, i.filled(render.FieldColleague), s.Policy, s.Request.Tool, directory.IdentityRisk(s.Policy, s.Request), s.Request)
		if unknown != nil {
			return b.unknownClicker(ctx, d, w, c, s, unknown)
		}
		r, err = b.Workflow.HandOn(ctx, c, to)
	}
	return b.answerClick(ctx, w, &r, s.Policy, err)
}

// colleagueWait is the time limit for looking up a colleague while Slack waits for the form's acknowledgement.
const colleagueWait = time.Second
