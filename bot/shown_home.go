package bot

import (
	"context"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
	"countersign/store"
)

// noteItem records what a Home tab showed of a request, when a person acts on it. A Home tab is redrawn too often to
// record everything that it shows.
func (b *Bot) noteItem(ctx context.Context, s render.ClickTarget, who approvers.Identity) error {
	if s.Message.Kind != store.OutboxHome || s.Request == nil || s.ShownRequest().Digest == "" {
		return nil
	}
	_, err := b.Workflow.Viewed(ctx, workflow.Viewing{Request: s.Request.ID, Digest: s.ShownRequest().Digest, Who: who.ID, As: string(store.OutboxHome), Body: s.ItemBody()})
	return err
}
