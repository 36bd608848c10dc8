package bot

import (
	"context"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
)

// noteReveal records that a person was shown a request's secrets. The record contains their names; the digest covers
// their values.
func (b *Bot) noteReveal(ctx context.Context, s render.ClickTarget, who approvers.Identity, v slack.ModalViewRequest) error {
	if v.CallbackID != render.ActReveal {
		return nil
	}
	var names []string
	for _, one := range render.SecretsIn(s.Request.Args, s.Request.Secrets) {
		names = append(names, one.Path)
	}
	body, err := render.Paragraph(render.Say("Revealed, to one person alone: " + strings.Join(names, ", "))).Message().Body()
	if err != nil {
		return err
	}
	_, err = b.Workflow.Viewed(ctx, workflow.Viewing{Request: s.Request.ID, Digest: s.Request.Digest, Who: who.ID, As: render.ActReveal, Body: body})
	return err
}
