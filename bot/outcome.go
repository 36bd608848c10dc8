package bot

import (
	"context"
	"errors"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/directory"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/slackapi"
	"countersign/store"
)

// outcomes ends the handling of a click or a form. A refused attempt is recorded in the histories of its requests. If a
// click changed nothing, the person gets a private reply that says why. After a change, outcomes says nothing, because
// the messages in Slack show the change.
type outcomes struct {
	*core
	identities *Identities
	ephemeral  *ephemeral
}

// denialCodes maps the errors of targets to the codes of denials.
var denialCodes = []struct {
	err  error
	code approvers.Code
}{
	{errNotRecorded, approvers.DeniedUnrecorded}, {errUnrecorded, approvers.DeniedUnrecorded}, {errReplaced, approvers.DeniedReplaced},
	{errUnknown, approvers.DeniedNotFound},
	{errCopied, approvers.DeniedCopied}, {errForged, approvers.DeniedForged}, {control.ErrButtonToken, approvers.DeniedForged}, {errWorkspace, approvers.DeniedWorkspace},
}

// denialCode returns the code of the denial for an error of targets. For other errors, denialCode returns "".
func denialCode(err error) approvers.Code {
	for _, r := range denialCodes {
		if errors.Is(err, r.err) {
			return r.code
		}
	}
	return ""
}

// clickIDs returns the attributes of a log line about a click: the ids of the delivery and of what the button is about,
// and the attributes in more.
func clickIDs(d delivered, target form.ClickTarget, more ...any) []any {
	request, tool := target.Message.Request, ""
	if r := target.Request; r != nil {
		request, tool = r.ID, r.Tool
	}
	return append([]any{"inbox", d.id, "request", request, "conversation", target.Conversation.ID, "tool", tool}, more...)
}

// refuseTarget refuses a click on a stale or forged message, and tells the person why. refuseTarget records the attempt
// in the history of each request that the click names.
func (b *outcomes) refuseTarget(ctx context.Context, d delivered, to ephemeralReply, click workflow.Click, target form.ClickTarget, err error) error {
	words, err := b.refuse(ctx, d, to, click, target, err)
	if err == nil {
		b.ephemeral.reply(ctx, to, words)
	}
	return err
}

// refuse records the refusal of a click, and returns the text for the person. If the click must be tried again, refuse
// returns an error.
func (b *outcomes) refuse(ctx context.Context, d delivered, to ephemeralReply, click workflow.Click, target form.ClickTarget, cause error) (*block.RichText, error) {
	erased, err := b.erasedRequest(ctx, cause, target)
	if err != nil {
		return nil, err
	}
	if errors.Is(cause, errNotRecorded) && erased == "" && d.tries < clickTries {
		return nil, cause
	}
	code := denialCode(cause)
	if code == "" {
		return nil, cause
	}
	who, unknown := b.users.Who(ctx, to.user, false)
	switch {
	case unknown != nil && mayRetry(d, b.Now(), unknown):
		return nil, unknown
	case unknown != nil:
		return form.UnidentifiedText(), b.refuseUnknown(ctx, d, to, click, target, unknown)
	}
	click.Inbox, click.At, click.Who, click.User = d.id, d.at, who, to.user
	b.Log.WarnContext(ctx, "a click was refused", clickIDs(d, target, "user", to.user, "cause", cause)...)
	refused := &approvers.Denied{Code: code}
	words, redraw := form.DeniedText(refused, nil, target.Policy), ""
	switch {
	case erased != "":
		refused.Code, words = approvers.DeniedNotFound, form.ErasedText(erased)
	case code == approvers.DeniedUnrecorded && target.Message.TS != "" && target.Message.Channel == click.Channel && target.Message.TS == click.MessageTS:
		redraw = target.Message.ID
	}
	return words, b.Requests.Refuse(ctx, click, refused, redraw, target.Named()...)
}

// erasedRequest returns the id of the clicked request if the texts of the request were erased. This is so if the store
// no longer has the clicked message or version, and the request's history has a record of the erasure. Otherwise
// erasedRequest returns "".
func (b *outcomes) erasedRequest(ctx context.Context, cause error, target form.ClickTarget) (string, error) {
	request := target.Token.Ref
	if target.Request != nil {
		request = target.Request.ID
	}
	if request == "" || !errors.Is(cause, errUnknown) && !errors.Is(cause, errErased) {
		return "", nil
	}
	history, err := b.Views.Chain(ctx, request)
	if err != nil && !store.OnlyDamaged(err) {
		return "", err
	}
	if !slices.ContainsFunc(history, func(a approvers.AuditRecord) bool { return a.Kind == approvers.AuditErased }) {
		return "", nil
	}
	return request, nil
}

func (b *outcomes) decide(ctx context.Context, to ephemeralReply, target form.ClickTarget, click workflow.Click) error {
	r, err := b.Requests.Decide(ctx, click)
	return b.answer(ctx, to, &r, target.Policy, err)
}

// decideAll decides all calls that the clicked version offered for decision. If one call can't be decided, decideAll
// decides no call.
func (b *outcomes) decideAll(ctx context.Context, to ephemeralReply, target form.ClickTarget, click workflow.Click) error {
	inTheWay, err := b.Requests.DecideAll(ctx, click, target.Shown.Shows)
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.ephemeral.reply(ctx, to, form.DeniedAllText(d, inTheWay, target.Policy))
	return nil
}

// answer tells a person why their click changed nothing. After a successful change, the function says nothing, because
// the messages in Slack show the change.
func (b *outcomes) answer(ctx context.Context, to ephemeralReply, r *approvers.Request, p *approvers.Policy, err error) error {
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.ephemeral.reply(ctx, to, form.DeniedText(d, r, p))
	return nil
}

// answerReport tells a person why their report about a run changed nothing.
func (b *outcomes) answerReport(ctx context.Context, to ephemeralReply, target form.ClickTarget, err error) error {
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.ephemeral.reply(ctx, to, form.DeniedReportText(d, target))
	return nil
}

// unknownClicker handles a click if Slack does not identify the person who clicked. After a few tries, the bot refuses
// and records the click, and tells the person.
func (b *outcomes) unknownClicker(ctx context.Context, d delivered, to ephemeralReply, click workflow.Click, target form.ClickTarget, cause error) error {
	if mayRetry(d, b.Now(), cause) {
		return cause
	}
	if err := b.refuseUnknown(ctx, d, to, click, target, cause); err != nil {
		return err
	}
	b.ephemeral.reply(ctx, to, form.UnidentifiedText())
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
	if code != "" && !slackapi.IsServerFailure(code) || errors.Is(cause, directory.ErrAboutAnother) {
		return false
	}
	return d.tries < clickTries
}

// refuseUnknown refuses a click if Slack can't identify the person who clicked, and records the refusal.
func (b *outcomes) refuseUnknown(ctx context.Context, d delivered, to ephemeralReply, click workflow.Click, target form.ClickTarget, cause error) error {
	b.Log.ErrorContext(ctx, "Slack could not say who clicked, so the click was refused", clickIDs(d, target, "user", to.user, "error", cause)...)
	click.Inbox, click.At, click.User = d.id, d.at, to.user
	return b.Requests.Refuse(ctx, click, &approvers.Denied{Code: approvers.DeniedUnidentified}, "", target.Named()...)
}
