package bot

import (
	"context"
	"errors"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
)

// withdrawSome withdraws the selected calls.
func (b *Bot) withdrawSome(ctx context.Context, w ephemeralReply, s render.ClickTarget, i interaction, c workflow.Click) error {
	r, err := b.Workflow.WithdrawSome(ctx, c, i.chosen(render.FieldCalls))
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	if r.ID == "" {
		b.replyEphemeral(ctx, w, render.Denied(d, nil, s.Policy))
		return nil
	}
	b.replyEphemeral(ctx, w, render.Denied(d, &r, s.Policy))
	return nil
}

// chosen returns the selected values of a list.
func (i interaction) chosen(block string) (values []string) {
	for _, in := range i.View.State.Values[block] {
		for _, o := range in.Many {
			values = append(values, o.Value)
		}
	}
	return values
}
