package bot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/directory"
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

// refusals maps the errors above to the codes of denials.
var refusals = []struct {
	err  error
	code approvers.Code
}{
	{errNotRecorded, approvers.DeniedUnrecorded}, {errUnrecorded, approvers.DeniedUnrecorded}, {errReplaced, approvers.DeniedReplaced},
	{errUnknown, approvers.DeniedNotFound},
	{errCopied, approvers.DeniedCopied}, {errForged, approvers.DeniedForged}, {render.ErrButtonToken, approvers.DeniedForged}, {errWorkspace, approvers.DeniedWorkspace},
}

// findClickTarget finds the subject of a button token, such as a request or a grant. It validates the token against the
// stored rendering. If action is not empty, the rendering must contain a button with this action.
func (b *Bot) findClickTarget(ctx context.Context, token render.ButtonToken, action string) (render.ClickTarget, error) {
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

// handleClick handles a click on a button.
func (b *Bot) handleClick(ctx context.Context, d delivered, i interaction) error {
	if len(i.Actions) == 0 {
		return fmt.Errorf("%w: no action in it", errPayload)
	}
	a := i.Actions[0]
	if i.View.modal() {
		switch _, form := render.FormTitles[a.ActionID]; {
		case form:
			return b.openWithin(ctx, d, i)
		case a.ActionID == render.ActApart:
			return unbundleWithin(ctx, b, d, i)
		}
		return b.turnPage(ctx, d, i)
	}
	if strings.HasPrefix(a.ActionID, render.ActHome+"_") {
		return b.turnHome(ctx, d, i)
	}
	if a.ActionID == render.ActPause {
		return b.pauseClicked(ctx, d, i)
	}
	channel, ts := i.message()
	r := ephemeralReply{user: i.User.ID, channel: channel, thread: i.Posted.ThreadTS, responseURL: i.ResponseURL}
	c := workflow.Click{Channel: channel, MessageTS: ts}
	s, err := b.clickedOn(ctx, i, a, channel, ts)
	if err != nil {
		return b.rejectClick(ctx, d, r, c, s, err)
	}
	b.replaced.noteClick(s.Message.ID, i.ResponseURL, d.at)
	action := render.ActionOf(a.ActionID)
	if _, form := render.FormTitles[action]; form {
		return formClick{b, d, action, r, s, func(v slack.ModalViewRequest) error { return b.fill(ctx, d.id, d.at, v) }}.open(ctx)
	}
	return b.act(ctx, d, r, s, action, c)
}

// clickedOn finds the subject of a click, such as a request, and validates the click. The button must belong to the
// bot, must be in the bot's workspace, and must be on the message that the bot posted.
func (b *Bot) clickedOn(ctx context.Context, i interaction, a action, channel, ts string) (render.ClickTarget, error) {
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
	s, err := b.findClickTarget(ctx, token, named)
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

// rejectClick rejects a click on a stale or forged message, and tells the person why. rejectClick records the attempt
// in the history of each request that the click names.
func (b *Bot) rejectClick(ctx context.Context, d delivered, w ephemeralReply, c workflow.Click, s render.ClickTarget, err error) error {
	if errors.Is(err, errNotRecorded) && d.tries < clickTries {
		return err
	}
	for _, r := range refusals {
		if !errors.Is(err, r.err) {
			continue
		}
		who, unknown := b.users.Who(ctx, w.user, false)
		if unknown != nil {
			return b.unknownClicker(ctx, d, w, c, s, unknown)
		}
		c.Inbox, c.At, c.Who, c.User = d.id, d.at, who, w.user
		b.Log.Warn("a click was refused", "inbox", d.id, "user", w.user, "cause", err)
		refused := &approvers.Denied{Code: r.code}
		redraw := ""
		if r.code == approvers.DeniedUnrecorded && s.Message.TS != "" && s.Message.Channel == c.Channel && s.Message.TS == c.MessageTS {
			redraw = s.Message.ID
		}
		if err := b.Requests.Refuse(ctx, c, refused, redraw, s.Named()...); err != nil {
			return err
		}
		b.replyEphemeral(ctx, w, render.Denied(refused, nil, s.Policy))
		return nil
	}
	return err
}

// act performs a button's action.
func (b *Bot) act(ctx context.Context, d delivered, w ephemeralReply, s render.ClickTarget, action string, c workflow.Click) error {
	who, err := b.authority(ctx, w.user, s, action)
	if err != nil {
		return b.unknownClicker(ctx, d, w, c, s, err)
	}
	c.Inbox, c.At, c.Who, c.User = d.id, d.at, who, w.user
	c.Digest, c.Whole, c.Rendering, c.FirstSeen = s.ShownRequest().Digest, s.ShownRequest().Whole, s.RenderingHash(), s.ShownRequest().Since
	r := s.Request
	if s.Grant != nil {
		return b.actOnGrant(ctx, w, s, action, c)
	}
	switch action {
	case render.ActApprove:
		c.Request, c.Kind = s.Token.Ref, approvers.Approve
		return b.decide(ctx, w, s, c)
	case render.ActApproveAll:
		c.Kind = approvers.Approve
		return b.decideAll(ctx, w, s, c)
	case render.ActApart: // only on cards of earlier versions of the bot; now the button is in Details…
		c.Request = s.Token.Ref
		var after approvers.Request
		after, err = b.Requests.Unbundle(ctx, c)
		r = &after
	case render.ActWithdraw:
		c.Request = s.Token.Ref
		var after approvers.Request
		after, err = b.Requests.Withdraw(ctx, c)
		r = &after
	case render.ActWithdrawAll:
		c.Turn = s.Token.Ref
		err = b.Requests.WithdrawAll(ctx, c)
	case render.ActFeedback:
		return b.feedbackClicked(ctx, w, s, c)
	case render.ActStop:
		c.Turn = s.Token.Ref
		err = b.Turns.StopBy(ctx, c)
	case render.ActTryAgain:
		c.Turn = s.Token.Ref
		err = b.Turns.TryAgain(ctx, c)
	case render.ActDidNot:
		c.Execution = s.Token.Ref
		return b.answerReport(ctx, w, s, b.Runs.Report(ctx, c, workflow.DidNot))
	case render.ActAskAgain:
		c.Execution = s.Token.Ref
		return b.answerReport(ctx, w, s, b.Runs.RetryUnknown(ctx, c))
	case render.ActBack:
		return b.backClicked(ctx, w, c)
	case render.ActResume:
		return b.answerPause(ctx, w, s.Policy, b.Pauses.ResumeBy(ctx, c))
	case render.ActVisited:
		c.Elicitation = s.Token.Ref
		err = b.Questions.Respond(ctx, c, nil)
	case render.ActNoAnswer:
		c.Elicitation = s.Token.Ref
		err = b.Questions.Decline(ctx, c)
	case render.ActLeave:
		c.Execution = s.Token.Ref
		return b.answerReport(ctx, w, s, b.Runs.Report(ctx, c, workflow.Leave))
	default:
		option, isChoice := render.ChoiceOf(action)
		if !isChoice {
			return fmt.Errorf("%w: no button does %q", errPayload, action)
		}
		c.Call = s.Token.Ref
		err = b.Questions.Answer(ctx, c, option)
	}
	return b.answerClick(ctx, w, r, s.Policy, err)
}

func (b *Bot) decide(ctx context.Context, w ephemeralReply, s render.ClickTarget, c workflow.Click) error {
	r, err := b.Requests.Decide(ctx, c)
	return b.answerClick(ctx, w, &r, s.Policy, err)
}

// answerClick tells a person why their click changed nothing. After a successful change, the function says nothing,
// because the messages in Slack show the change.
func (b *Bot) answerClick(ctx context.Context, w ephemeralReply, r *approvers.Request, p *approvers.Policy, err error) error {
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.replyEphemeral(ctx, w, render.Denied(d, r, p))
	return nil
}

// authority looks up the person who clicked. The identity includes the user groups that can give authority over the
// target. For a change of arguments, authority uses no cached answer, because the change may raise the risk.
func (b *Bot) authority(ctx context.Context, user string, s render.ClickTarget, action string) (approvers.Identity, error) {
	switch {
	case s.Request != nil && action == render.ActModify:
		return b.users.Clicker(ctx, user, s.Policy, s.Request.Tool, approvers.Critical, s.Request)
	case s.Request != nil:
		return b.users.Clicker(ctx, user, s.Policy, s.Request.Tool, directory.IdentityRisk(s.Policy, s.Request), s.Request)
	case s.Execution != nil:
		return b.users.Clicker(ctx, user, s.Policy, s.Execution.Tool, approvers.Critical, nil)
	case s.Grant != nil:
		return b.users.Clicker(ctx, user, s.Policy, s.Grant.Tool, approvers.Critical, nil)
	case s.Message.Kind == store.OutboxBundle:
		return b.identifyClickerOfAll(ctx, user, s)
	case s.Message.Kind == store.OutboxPause:
		return b.pauser(ctx, user, s.Policy)
	}
	return b.users.Who(ctx, user, false)
}

// unknownClicker handles a click if Slack does not identify the person who clicked. After a few tries, the bot refuses
// and records the click, and tells the person.
func (b *Bot) unknownClicker(ctx context.Context, d delivered, r ephemeralReply, c workflow.Click, s render.ClickTarget, cause error) error {
	if mayRetry(d, b.Now(), cause) {
		return cause
	}
	if err := b.refuseUnknown(ctx, d, r, c, s, cause); err != nil {
		return err
	}
	b.replyEphemeral(ctx, r, render.Unidentified())
	return nil
}

// clickPatience is how long a click waits while calls to Slack must wait: for a rate limit, or during an outage. If the
// click took effect much later, it would surprise the person.
const clickPatience = 2 * time.Minute

// mayRetry reports whether another try to identify the person may succeed. If calls must wait, the click is tried again
// for clickPatience. If Slack could not be reached, the click is tried again a few times. Refusals such as a missing
// scope are permanent.
func mayRetry(d delivered, now time.Time, cause error) bool {
	if slackapi.IsPutOff(cause) {
		return now.Add(slackapi.RetryDelay(cause)).Sub(d.at) <= clickPatience
	}
	code := slackapi.ErrorCode(cause)
	refused := code != "" && !slackapi.IsServerFailure(code) || errors.Is(cause, directory.ErrAboutAnother)
	return !refused && d.tries < clickTries
}

// refuseUnknown refuses a click if Slack can't identify the person who clicked, and records the refusal.
func (b *Bot) refuseUnknown(ctx context.Context, d delivered, r ephemeralReply, c workflow.Click, s render.ClickTarget, cause error) error {
	b.Log.Error("Slack could not say who clicked, so the click was refused", "inbox", d.id, "user", r.user, "error", cause)
	c.Inbox, c.At, c.User = d.id, d.at, r.user
	return b.Requests.Refuse(ctx, c, &approvers.Denied{Code: approvers.DeniedUnidentified}, "", s.Named()...)
}

// identifyClickerOfAll identifies a person who clicked a button for all calls of a bundle. The identity includes the
// user groups that can give authority over each call.
func (b *Bot) identifyClickerOfAll(ctx context.Context, user string, s render.ClickTarget) (approvers.Identity, error) {
	var requests []*approvers.Request
	for _, c := range s.Offered() {
		requests = append(requests, c.Request)
	}
	return b.users.ClickerOfAll(ctx, user, s.Policy, requests)
}

// decideAll decides all calls that the clicked version offered for decision. If one call can't be decided, decideAll
// decides no call.
func (b *Bot) decideAll(ctx context.Context, r ephemeralReply, s render.ClickTarget, c workflow.Click) error {
	inTheWay, err := b.Requests.DecideAll(ctx, c, s.Shown.Shows)
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.replyEphemeral(ctx, r, render.DeniedAll(d, inTheWay, s.Policy))
	return nil
}

// feedbackClicked records a rating of an answer, and confirms it.
func (b *Bot) feedbackClicked(ctx context.Context, r ephemeralReply, s render.ClickTarget, c workflow.Click) error {
	turn, good := strings.CutPrefix(s.Token.Ref, render.FeedbackGood)
	turn, poor := strings.CutPrefix(turn, render.FeedbackPoor)
	if good == poor {
		return fmt.Errorf("%w: the button's value is not a rating", errPayload)
	}
	c.Turn = turn
	err := b.Turns.AddFeedback(ctx, c, good)
	var d *approvers.Denied
	switch {
	case errors.As(err, &d) && (d.Code == approvers.DeniedGuest || d.Code == approvers.DeniedForeign || d.Code == approvers.DeniedBot):
		b.replyEphemeral(ctx, r, render.Say("Only those who may ask the agent can rate its answers. Nothing was changed."))
		return nil
	case err != nil:
		return b.answerClick(ctx, r, nil, s.Policy, err)
	case poor:
		b.replyEphemeral(ctx, r, render.Say("Noted, thank you. If something should be done differently, write it here: the agent reads it, and its operator sees how the answers are rated."))
	default:
		b.replyEphemeral(ctx, r, render.Say("Noted, thank you."))
	}
	return nil
}

// answerReport tells a person why their report about a run changed nothing.
func (b *Bot) answerReport(ctx context.Context, r ephemeralReply, s render.ClickTarget, err error) error {
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.replyEphemeral(ctx, r, render.DeniedReport(d, s))
	return nil
}
