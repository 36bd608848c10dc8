package bot

import (
	"context"
	"errors"

	"countersign/approvers"
	"countersign/bot/render"
)

// answerReport tells a person why their report about a run changed nothing.
func (b *Bot) answerReport(ctx context.Context, r ephemeralReply, s render.ClickTarget, err error) error {
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.replyEphemeral(ctx, r, render.DeniedReport(d, s))
	return nil
}
