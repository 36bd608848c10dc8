package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
)

// feedbackClicked records a rating of an answer, and confirms it.
func (b *Bot) feedbackClicked(ctx context.Context, r ephemeralReply, s render.ClickTarget, c workflow.Click) error {
	turn, good := strings.CutPrefix(s.Token.Ref, render.FeedbackGood)
	turn, poor := strings.CutPrefix(turn, render.FeedbackPoor)
	if good == poor {
		return fmt.Errorf("%w: no opinion in it", errPayload)
	}
	c.Turn = turn
	err := b.Workflow.AddFeedback(ctx, c, good)
	var d *approvers.Denied
	switch {
	case errors.As(err, &d) && (d.Code == approvers.DeniedGuest || d.Code == approvers.DeniedForeign || d.Code == approvers.DeniedBot):
		b.replyEphemeral(ctx, r, render.Say("Only those who may ask the agent can rate its answers. Nothing was changed."))
		return nil
	case err != nil:
		return b.answerClick(ctx, r, nil, s.Policy, err)
	case poor:
		b.replyEphemeral(ctx, r, render.Say("Noted, thank you. If something should be done differently, write it here: the agent reads it, and whoever runs it sees how its answers are rated."))
	default:
		b.replyEphemeral(ctx, r, render.Say("Noted, thank you."))
	}
	return nil
}
