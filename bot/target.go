package bot

import (
	"bytes"
	"context"
	"errors"

	"countersign/bot/render"
	"countersign/bot/slackapi"
	"countersign/internal/tracing"
	"countersign/store"
)

var (
	// errNotRecorded says that the clicked version is not stored yet: Slack showed the version before the bot received
	// Slack's answer to the post.
	errNotRecorded = errors.New("the clicked version is not recorded yet")
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

// targets finds what a click or a form is about, such as a request or a grant. It validates the click against the
// stored rendering. targets does not identify the person, and does not decide what the click does.
type targets struct{ *core }

// find returns the subject of a button token, such as a request or a grant. It validates the token against the stored
// rendering. If action is not empty, the rendering must contain a button with this action.
func (b *targets) find(ctx context.Context, token render.ButtonToken, action string) (render.ClickTarget, error) {
	s := render.ClickTarget{Token: token}
	shown, recorded := b.Views.Rendering(ctx, token.Message, token.Post) // read first, so that the view is at least as new as the rendering
	vm, err := b.Views.Message(ctx, token.Message)
	if errors.Is(err, store.ErrNotFound) {
		return s, errUnknown
	}
	if err != nil {
		return s, err
	}
	s.Model = vm
	traced(ctx, vm, tracing.SpanClick)
	if s.Message.Kind == store.OutboxHome { // the stored Home tab does not name its requests; the clicked button names one
		if err := b.Views.AddNamed(ctx, &s.Model, token.Ref); err != nil {
			return s, err
		}
	}
	if errors.Is(recorded, store.ErrNotFound) {
		return s, errNotRecorded
	}
	if recorded != nil {
		return s, recorded
	}
	s.Shown = shown
	value := `"` + token.String() + `"`
	switch {
	case bytes.Contains(s.Shown.Body, []byte(value)):
	case s.MayHaveShown(token):
		return s, errUnrecorded
	default:
		return s, errForged
	}
	if action != "" && !bytes.Contains(s.Shown.Body, []byte(`"action_id":"`+action+`","value":`+value)) {
		return s, errForged
	}
	if s.Message.Kind == store.OutboxBundle {
		s.SelectRequest()
	}
	return s, nil
}

// ofClick finds the subject of a click, such as a request, and validates the click. The button must belong to the bot,
// must be in the bot's workspace, and must be on the message that the bot posted.
func (b *targets) ofClick(ctx context.Context, i interaction, a action, channel, ts string) (render.ClickTarget, error) {
	token, err := render.ParseButtonToken(a.Value)
	if err != nil {
		return render.ClickTarget{}, err
	}
	if err := b.checkOrigin(ctx, i.origin()); err != nil {
		return render.ClickTarget{Token: token}, err
	}
	named := a.ActionID
	if named == render.ActFeedback { // its two buttons share one action, which is not beside the value of a button
		named = ""
	}
	s, err := b.find(ctx, token, named)
	switch {
	case err != nil:
		return s, err
	case s.Message.Kind == store.OutboxHome:
		if i.View.Type == "home" && s.Message.To == store.ToUser+i.User.ID {
			return s, nil
		}
		return s, errCopied
	case s.Message.Channel == channel && s.Message.TS == ts:
		return s, nil
	case s.Message.Round > 0: // the outbox message was lost and reposted
		return s, errReplaced
	}
	me, err := b.whoAmI(ctx)
	if err != nil {
		return s, err
	}
	if _, _, err := b.Views.Delivery(ctx, channel, ts); errors.Is(err, store.ErrNotFound) && i.postedBy(me) {
		// The bot posted the message twice, because Slack's answer to the first post was lost.
		if _, _, err := b.api.DeleteMessageContext(ctx, channel, ts); err != nil && !slackapi.IsMessageLost(slackapi.ErrorCode(err)) {
			b.Log.Info("a duplicate of a card can't be deleted; the deletion is tried again later", "error", slackapi.Explain(err))
			if err := b.Outbox.LeftOver(ctx, s.Message.ID, channel, ts, slackapi.Explain(err)); err != nil {
				return s, err
			}
		}
		return s, errReplaced
	}
	return s, errCopied
}

// ofForm finds and validates the subject of a submitted form, as ofClick does for buttons.
func (b *targets) ofForm(ctx context.Context, i interaction, f render.FormToken) (render.ClickTarget, error) {
	if err := b.checkOrigin(ctx, i.origin()); err != nil {
		return render.ClickTarget{Token: f.ButtonToken}, err
	}
	s, err := b.find(ctx, f.ButtonToken, "")
	switch {
	case err != nil:
		return s, err
	case s.Request == nil && !formsWithoutRequest[i.View.Callback]:
		return s, errForged
	}
	return s, nil
}

// formsWithoutRequest lists the forms that are not about a single request.
var formsWithoutRequest = map[string]bool{render.ActHappened: true, render.ActWithdrawSome: true, render.ActRejectAll: true, render.ActAway: true, render.ActFillIn: true}

// ofDetails finds the subject of a click in the modal of Details….
func (b *targets) ofDetails(ctx context.Context, i interaction) (render.ClickTarget, error) {
	f, err := render.ParseFormToken(i.View.Metadata)
	if err != nil {
		return render.ClickTarget{}, err
	}
	s, err := b.ofForm(ctx, i, f)
	if err == nil && (s.Request == nil || i.View.Callback != render.ActArguments) {
		err = errForged
	}
	return s, err
}
