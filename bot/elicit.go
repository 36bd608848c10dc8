package bot

import (
	"context"
	"errors"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
	"countersign/store"
)

// examineElicitation returns the errors of a form that a tool asked for, to be shown beside the fields.
func (b *Bot) examineElicitation(ctx context.Context, i interaction, f render.FormToken) (map[string]string, error) {
	q, err := b.Workflow.Elicitation(ctx, f.Ref)
	if errors.Is(err, store.ErrNotFound) || err == nil && q.State != approvers.ElicitationOpen {
		return nil, nil // the handler tells the person
	}
	if err != nil {
		return nil, err
	}
	_, faults := render.ElicitationValues(q, i.View.answers, b.Workflow.Admits)
	return faults, nil
}

// submitElicitation passes the values of a form to the waiting run.
func (b *Bot) submitElicitation(ctx context.Context, r ephemeralReply, s render.ClickTarget, i interaction, c workflow.Click) error {
	c.Request, c.Elicitation = "", s.Elicitation.ID
	values, faults := render.ElicitationValues(*s.Elicitation, i.View.answers, b.Workflow.Admits)
	if len(faults) > 0 { // the form was validated against the same schema on submission, so this is not one of the bot's forms
		values = []byte("{}")
	}
	return b.answerClick(ctx, r, nil, s.Policy, b.Workflow.Respond(ctx, c, values))
}
