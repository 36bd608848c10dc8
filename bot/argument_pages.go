package bot

import (
	"context"
	"errors"
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
	"countersign/bot/slackapi"
	"countersign/store"
)

// turnPage shows another page of the arguments.
func (b *Bot) turnPage(ctx context.Context, d delivered, i interaction) error {
	r := ephemeralReply{user: i.User.ID}
	f, err := render.ParseFormToken(i.View.Metadata)
	if err != nil {
		return b.rejectClick(ctx, d, r, workflow.Click{}, render.ClickTarget{}, err)
	}
	switch i.Actions[0].Value {
	case "1":
		f.Page++
	case "-1":
		f.Page = max(0, f.Page-1)
	default:
		return fmt.Errorf("%w: no page there", errPayload)
	}
	s, err := b.findClickTarget(ctx, f.ButtonToken, "")
	if err != nil {
		return b.rejectClick(ctx, d, r, workflow.Click{}, s, err)
	}
	var viewer approvers.Identity
	v := render.Refusal(render.ActArguments, render.Denied(&approvers.Denied{Code: approvers.DeniedStale}, s.Request, s.Policy))
	if s.Request != nil && s.Request.Execution == f.Execution {
		who, err := b.authority(ctx, i.User.ID, s, render.ActArguments)
		if err != nil {
			return b.unknownClicker(ctx, d, r, workflow.Click{}, s, err)
		}
		viewer = who
		_, denied := s.Request.Authority(s.Policy, who)
		v = render.ArgumentsForm(*s.Request, f, denied == nil && s.Request.State == approvers.Pending)
	}
	if _, err := b.api.UpdateViewContext(ctx, v, "", i.View.Hash, i.View.ID); err != nil {
		if slackapi.ErrorCode(err) == "" && d.tries < clickTries {
			return slackapi.WithDelay(err)
		}
		b.Log.Info("a page could not be turned: the form was closed or changed", "inbox", d.id, "cause", err)
	} else if err := b.noteWhole(ctx, s, viewer, v); err != nil {
		return err
	}
	if err := b.Workflow.Done(ctx, d.id, ""); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// noteWhole records that a person has seen all arguments, once the last page is shown. Only then can they approve from
// the modal.
func (b *Bot) noteWhole(ctx context.Context, s render.ClickTarget, who approvers.Identity, v slack.ModalViewRequest) error {
	if v.CallbackID != render.ActArguments || v.Submit == nil {
		return nil
	}
	body, err := render.WholeView(*s.Request)
	if err != nil {
		return err
	}
	_, err = b.Workflow.Viewed(ctx, workflow.Viewing{Request: s.Request.ID, Digest: s.Request.Digest, Who: who.ID, As: "view", Body: body})
	return err
}
