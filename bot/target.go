package bot

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/slackapi"
	"countersign/internal/tracing"
	"countersign/store"
)

var (
	// errNotRecorded says that the clicked version is not stored yet: Slack showed the version before the bot received
	// Slack's answer to the post.
	errNotRecorded = errors.New("the clicked version is not recorded yet")
	// errErased says that the clicked version is not stored, and that the message is about one request, which has ended.
	// Probably the version was erased with the texts of the request.
	errErased = fmt.Errorf("%w, or it was erased", errNotRecorded)
	// errUnknown says that no outbox message has the id in the button's token.
	errUnknown = errors.New("no such outbox message")
	// errUnrecorded says that Slack showed the clicked version, but the bot never recorded it. The bot stopped, or
	// redrew the message, before it recorded this version.
	errUnrecorded = errors.New("the clicked version was never recorded")
	// errReplaced says that the clicked message was marked as lost and has been reposted.
	errReplaced = errors.New("the clicked message was reposted")
	// errCopied says that the clicked button is not on the message that the bot posted.
	errCopied = errors.New("the button is not on the posted message")
	// errForged says that the bot never posted such a button on this message.
	errForged = errors.New("the bot never posted such a button there")
	// errWorkspace says that a delivery came from another workspace, or is for another app.
	errWorkspace = errors.New("the delivery came from another workspace, or is for another app")
)

// targets finds the subject of a click or a form, such as a request or a grant. targets validates the click against the
// stored rendering. targets does not identify the person, and does not perform the click's action.
type targets struct{ *core }

// find returns the subject of a button token, such as a request or a grant. find validates the token against the stored
// rendering. If action is not empty, the rendering must contain a button with this action.
func (b *targets) find(ctx context.Context, token control.ButtonToken, action string) (form.ClickTarget, error) {
	target := form.ClickTarget{Token: token}
	shown, recorded := b.Views.Rendering(ctx, token.Message, token.Post) // read first, so that the view is at least as new as the rendering
	vm, err := b.Views.Message(ctx, token.Message)
	if errors.Is(err, store.ErrNotFound) {
		return target, errUnknown
	}
	if err != nil {
		return target, err
	}
	target.Model = vm
	traced(ctx, vm, tracing.SpanClick)
	if target.Message.Kind == store.OutboxHome { // the stored Home tab does not name its requests; the clicked button names one
		if err := b.Views.AddNamed(ctx, &target.Model, token.Ref); err != nil {
			return target, err
		}
	}
	if errors.Is(recorded, store.ErrNotFound) {
		if target.MayBeErased(token) {
			return target, errErased
		}
		return target, errNotRecorded
	}
	if recorded != nil {
		return target, recorded
	}
	target.Shown = shown
	value := `"` + token.String() + `"`
	switch {
	case bytes.Contains(target.Shown.Body, []byte(value)):
	case target.MayHaveShown(token):
		return target, errUnrecorded
	default:
		return target, errForged
	}
	if action != "" && !bytes.Contains(target.Shown.Body, []byte(`"action_id":"`+action+`","value":`+value)) {
		return target, errForged
	}
	if target.Message.Kind == store.OutboxBundle {
		target.SelectRequest()
	}
	return target, nil
}

// ofClick finds the subject of a click, such as a request, and validates the click. The button must belong to the bot,
// must be in the bot's workspace, and must be on the message that the bot posted.
func (b *targets) ofClick(ctx context.Context, i interaction, a action, channel, ts string) (form.ClickTarget, error) {
	token, err := control.ParseButtonToken(a.Value)
	if err != nil {
		return form.ClickTarget{}, err
	}
	if err := b.checkOrigin(ctx, i.origin()); err != nil {
		return form.ClickTarget{Token: token}, err
	}
	named := a.ActionID
	if named == control.ActFeedback { // the JSON of a feedback button does not have the action ID before the value, so find looks only for the value
		named = ""
	}
	target, err := b.find(ctx, token, named)
	err = unlessErased(a.ActionID, err)
	if err != nil && !errors.Is(err, errUnrecorded) {
		return target, err
	}
	// A message with an unrecorded version (errUnrecorded) may also be a copy or a duplicate. If it is, ofClick returns
	// the error of checkPlace, because another click on this message can't help.
	if elsewhere := b.checkPlace(ctx, i, target, channel, ts); elsewhere != nil {
		return target, elsewhere
	}
	return target, err
}

// checkPlace returns an error if the clicked button is not on the message that the bot posted. If the bot posted the
// message twice, checkPlace deletes the duplicate.
func (b *targets) checkPlace(ctx context.Context, i interaction, target form.ClickTarget, channel, ts string) error {
	switch {
	case target.Message.Kind == store.OutboxHome:
		if i.View.Type == "home" && target.Message.To == store.ToUser+i.User.ID {
			return nil
		}
		return errCopied
	case target.Message.Channel == channel && target.Message.TS == ts:
		return nil
	case target.Message.Round > 0: // the outbox message was lost and reposted
		return errReplaced
	}
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	if _, _, err := b.Views.Delivery(ctx, channel, ts); errors.Is(err, store.ErrNotFound) && i.postedBy(me) {
		// The bot posted the message twice, because Slack's answer to the first post was lost.
		if _, _, err := b.api.DeleteMessageContext(ctx, channel, ts); err != nil && !slackapi.IsMessageLost(slackapi.ErrorCode(err)) {
			b.Log.InfoContext(ctx, "a duplicate of a card can't be deleted; the deletion is tried again later",
				"message", string(target.Message.Kind), "request", target.Message.Request, "conversation", target.Conversation.ID, "error", slackapi.Explain(err))
			if err := b.Outbox.LeftOver(ctx, target.Message.ID, channel, ts, slackapi.Explain(err)); err != nil {
				return err
			}
		}
		return errReplaced
	}
	return errCopied
}

// unlessErased returns the error of find for a click with an action. If the clicked version was erased, and the action
// only reads Details…, unlessErased returns nil: Details… shows the current state of the request, and not the version.
func unlessErased(action string, err error) error {
	if control.ActionOf(action) == control.ActArguments && errors.Is(err, errErased) {
		return nil
	}
	return err
}

// ofForm finds and validates the subject of a submitted form, as ofClick does for buttons.
func (b *targets) ofForm(ctx context.Context, i interaction, f control.FormToken) (form.ClickTarget, error) {
	if err := b.checkOrigin(ctx, i.origin()); err != nil {
		return form.ClickTarget{Token: f.ButtonToken}, err
	}
	target, err := b.find(ctx, f.ButtonToken, "")
	switch {
	case err != nil:
		return target, err
	case target.Request == nil && !formsWithoutRequest[i.View.Callback]:
		return target, errForged
	}
	return target, nil
}

// formsWithoutRequest lists the forms that are not about a single request.
var formsWithoutRequest = map[string]bool{control.ActHappened: true, control.ActWithdrawSome: true, control.ActRejectAll: true, control.ActAway: true, control.ActFillIn: true}

// ofDetails finds the subject of a click in the modal of Details….
func (b *targets) ofDetails(ctx context.Context, i interaction) (form.ClickTarget, error) {
	f, err := control.ParseFormToken(i.View.Metadata)
	if err != nil {
		return form.ClickTarget{}, err
	}
	target, err := b.ofForm(ctx, i, f)
	if err == nil && (target.Request == nil || i.View.Callback != control.ActArguments) {
		err = errForged
	}
	return target, err
}
