package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/bot/directory"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/render/wording"
	"countersign/store"
)

// formOpener opens forms, and handles the clicks within Details…. formOpener records the content that the person was
// shown, because a decision needs this record. If the person may not do the action, the form says why, and the attempt
// is recorded.
type formOpener struct {
	*core
	identities *Identities
	ephemeral  *ephemeral
	modals     *modals
	targets    *targets
	outcomes   *outcomes
}

// unbundleWithin handles a button in the Details… of a call. The button moves the call from its bundle to a card of its
// own.
func (b *formOpener) unbundleWithin(ctx context.Context, d delivered, i interaction) error {
	target, err := b.targets.ofDetails(ctx, i)
	to, click := ephemeralReply{user: i.User.ID, channel: target.Message.Channel}, workflow.Click{Channel: target.Message.Channel, MessageTS: target.Message.TS}
	if err != nil {
		return b.outcomes.refuseTarget(ctx, d, to, click, target, err)
	}
	who, err := b.identities.authority(ctx, to.user, target, control.ActApart)
	if err != nil {
		return b.outcomes.unknownClicker(ctx, d, to, click, target, err)
	}
	click.Inbox, click.At, click.Who, click.User, click.Request = d.id, d.at, who, to.user, target.Token.Ref
	seen(&click, target)
	after, err := b.Requests.Unbundle(ctx, click)
	words := block.Say("↗️ It has a card of its own now, with everything that you can do about it.")
	var denied *approvers.Denied
	switch {
	case errors.As(err, &denied):
		words = form.DeniedText(denied, &after, target.Policy)
	case err != nil:
		return err
	}
	err = b.modals.show(ctx, d.id, form.TextModal(control.ActArguments, words), func(v slack.ModalViewRequest) error { return b.modals.updateClicked(ctx, v, i) })
	if err != nil {
		b.Log.InfoContext(ctx, "the outcome of a click could not be shown in Details…", clickIDs(d, target, "cause", err)...)
		b.ephemeral.reply(ctx, to, words)
	}
	return nil
}

// openWithin replaces the modal of Details… with the form of one of the modal's buttons.
func (b *formOpener) openWithin(ctx context.Context, d delivered, i interaction) error {
	to := ephemeralReply{user: i.User.ID}
	target, err := b.targets.ofDetails(ctx, i)
	if err != nil {
		return b.outcomes.refuseTarget(ctx, d, to, workflow.Click{}, target, err)
	}
	to.channel = target.Message.Channel
	return b.open(ctx, formClick{d, i.Actions[0].ActionID, to, target, func(v slack.ModalViewRequest) error {
		return b.modals.show(ctx, d.id, v, func(v slack.ModalViewRequest) error { return b.modals.updateClicked(ctx, v, i) })
	}})
}

// refuse refuses a click that opens a form. The form says why. If the form is not open, the person gets a private reply.
func (b *formOpener) refuse(ctx context.Context, d delivered, action string, to ephemeralReply, click workflow.Click, target form.ClickTarget, cause error) error {
	words, err := b.outcomes.refuse(ctx, d, to, click, target, cause)
	if err != nil {
		return err
	}
	if err := b.modals.fill(ctx, d.id, d.at, form.TextModal(action, words)); err != nil {
		b.Log.InfoContext(ctx, "the refusal of a click could not be shown in a form", clickIDs(d, target, "cause", err)...)
		b.ephemeral.reply(ctx, to, words)
	}
	return nil
}

// formClick is a click that opens a form, on a message or in Details….
type formClick struct {
	d      delivered
	action string
	reply  ephemeralReply
	target form.ClickTarget
	show   func(slack.ModalViewRequest) error
}

// open draws the form and shows it.
func (b *formOpener) open(ctx context.Context, f formClick) error {
	d, action, to, target := f.d, f.action, f.reply, f.target
	who, unknown := b.identities.authority(ctx, to.user, target, action)
	if unknown != nil && mayRetry(d, b.Now(), unknown) {
		return unknown
	}
	no := noForm(action, target, who)
	if unknown == nil {
		if err := b.recordItemSeen(ctx, target, who); err != nil {
			return err
		}
	}
	if err := b.readAbout(ctx, action, &target); err != nil {
		return err
	}
	var v slack.ModalViewRequest
	if unknown != nil {
		v = form.TextModal(action, form.UnidentifiedText())
	} else {
		v = b.form(action, target, who)
	}
	b.identities.known(to.user).LocalizeBlocks(v.Blocks.BlockSet)
	err := f.show(v)
	switch {
	case err == nil && who.ID != "":
		if err := errors.Join(b.recordAllSeen(ctx, target, who, v), b.recordReveal(ctx, target, who, v)); err != nil {
			return err
		}
	case errors.Is(err, errNoForm):
		b.Log.InfoContext(ctx, "a form could not be shown", clickIDs(d, target, "cause", err)...)
		switch {
		case unknown != nil:
			b.ephemeral.reply(ctx, to, form.UnidentifiedText())
		case no != nil:
			b.ephemeral.reply(ctx, to, form.DeniedText(no, target.Request, target.Policy))
		default:
			b.ephemeral.reply(ctx, to, formNotOpened(err))
		}
	case errors.Is(err, errFormRefused): // the modal shows the refusal
	case err != nil && d.tries < clickTries:
		return err
	case err != nil:
		b.Log.ErrorContext(ctx, "a form could not be shown", clickIDs(d, target, "error", err)...)
		b.ephemeral.reply(ctx, to, block.Say("The form could not be opened. Please click again."))
	}
	click := workflow.Click{Inbox: d.id, At: d.at, Who: who, User: to.user, Channel: target.Message.Channel, MessageTS: target.Message.TS}
	switch {
	case unknown != nil:
		return b.outcomes.refuseUnknown(ctx, d, to, click, target, unknown)
	case no != nil:
		return b.Requests.Refuse(ctx, click, no, outdatedCard(target), target.Token.Ref)
	}
	return b.Outbox.Looked(ctx, click, outdatedCard(target))
}

// outdatedCard returns the id of the clicked outbox message if it must be rendered again, because it shows an earlier
// stage or plan of a pending request. Otherwise outdatedCard returns "". The bot updates Home tabs without a click.
func outdatedCard(target form.ClickTarget) string {
	if target.Message.Kind == store.OutboxHome || target.Request == nil || target.Request.State != approvers.Pending || target.Outdated() == nil {
		return ""
	}
	return target.Message.ID
}

// readAbout reads the additional data that Details… shows about a request.
func (b *formOpener) readAbout(ctx context.Context, action string, s *form.ClickTarget) error {
	if action != control.ActArguments || s.Request == nil {
		return nil
	}
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	history, err := b.Views.Chain(ctx, s.Request.ID)
	if err != nil {
		return err
	}
	s.About = form.About{WorkspaceURL: me.URL, Tool: wording.DescribeTool(b.Tools, s.Model), History: history}
	return nil
}

// noForm returns the reason why a person gets no form, or nil. The person may lack authority, or the state of the
// request may not allow the action. If there is a reason, the caller records the attempt.
func noForm(action string, target form.ClickTarget, who approvers.Identity) *approvers.Denied {
	if target.Elicitation != nil {
		return target.Elicitation.Answerable(who, target.Now)
	}
	if target.Request == nil {
		return nil
	}
	switch action {
	case control.ActTyped, control.ActReject, control.ActModify, control.ActReveal:
		return form.Precheck(*target.Request, target, who)
	}
	if !directory.Barred(who) {
		return nil
	}
	_, d := target.Request.Authority(target.Policy, who)
	return d
}

// form draws the modal of an action. If the person can't perform the action, the modal says why. For an action that
// needs no form, the modal can't be submitted.
func (b *formOpener) form(action string, target form.ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	if action == control.ActHappened {
		return form.Report(target)
	}
	switch action {
	case control.ActRejectAll:
		return form.RejectAll(target, who)
	case control.ActWithdrawSome:
		return form.Withdraw(target)
	case control.ActAway:
		return form.Away(target)
	case control.ActFillIn:
		if target.Elicitation != nil {
			return form.Elicitation(target, who)
		}
	}
	if draw := form.People[action]; draw != nil && target.Request != nil {
		return draw(target, who)
	}
	if target.Request == nil {
		return form.TextModal(action, form.DeniedText(&approvers.Denied{Code: approvers.DeniedNotFound}, nil, target.Policy))
	}
	r := *target.Request
	if d := form.Precheck(r, target, who); d != nil && (action != control.ActArguments || directory.Barred(who)) {
		return form.TextModal(action, form.DeniedText(d, &r, target.Policy))
	}
	if (action == control.ActTyped || action == control.ActModify) && r.MustReveal(target.Policy, who.ID) {
		return form.TextModal(action, form.DeniedText(&approvers.Denied{Code: approvers.DeniedMasked}, &r, target.Policy))
	}
	f := control.FormToken{ButtonToken: target.Token, Execution: r.Execution}
	switch action {
	case control.ActReveal:
		return form.Reveal(r, f)
	case control.ActTyped:
		return form.Typed(r, f)
	case control.ActReject:
		return form.Reject(r, f, target)
	case control.ActArguments:
		return form.Details(target, f, who)
	case control.ActModify:
		tool, ok := workflow.ToolOf(b.Tools, r.Tool, r.ToolHash)
		if !ok {
			return form.TextModal(action, block.Say("The tool is not available any more, so its arguments can't be changed. Reject the call, or let it expire."))
		}
		return form.Modify(r, f, tool, target.EditEffect(who, tool, r.Args, false), nil)
	}
	return form.TextModal(action, block.Say("This button has no form. Nothing was changed."))
}

// turnPage shows another page of the arguments.
func (b *formOpener) turnPage(ctx context.Context, d delivered, i interaction) error {
	to := ephemeralReply{user: i.User.ID}
	f, err := control.ParseFormToken(i.View.Metadata)
	if err != nil {
		return b.outcomes.refuseTarget(ctx, d, to, workflow.Click{}, form.ClickTarget{}, err)
	}
	action := control.ActArguments
	if i.View.Callback == control.ActReveal {
		action = control.ActReveal
	}
	switch i.Actions[0].Value {
	case "1":
		f.Page++
	case "-1":
		f.Page = max(0, f.Page-1)
	default:
		return fmt.Errorf("%w: the button names no page", errPayload)
	}
	target, err := b.targets.find(ctx, f.ButtonToken, "")
	if err := unlessErased(action, err); err != nil {
		return b.outcomes.refuseTarget(ctx, d, to, workflow.Click{}, target, err)
	}
	var viewer approvers.Identity
	v := form.TextModal(action, form.DeniedText(&approvers.Denied{Code: approvers.DeniedStale}, target.Request, target.Policy))
	if target.Request != nil && target.Request.Execution == f.Execution {
		who, err := b.identities.authority(ctx, i.User.ID, target, action)
		if err != nil {
			return b.outcomes.unknownClicker(ctx, d, to, workflow.Click{}, target, err)
		}
		viewer = who
		if err := b.readAbout(ctx, action, &target); err != nil {
			return err
		}
		denied := form.Precheck(*target.Request, target, who)
		switch {
		case action == control.ActArguments:
			v = form.Details(target, f, who)
		case denied != nil:
			v = form.TextModal(action, form.DeniedText(denied, target.Request, target.Policy))
		default:
			v = form.Reveal(*target.Request, f)
		}
		b.identities.known(i.User.ID).LocalizeBlocks(v.Blocks.BlockSet)
	}
	err = b.modals.show(ctx, d.id, v, func(v slack.ModalViewRequest) error { return b.modals.updateClicked(ctx, v, i) })
	switch {
	case err == nil:
		if err := errors.Join(b.recordAllSeen(ctx, target, viewer, v), b.recordReveal(ctx, target, viewer, v)); err != nil {
			return err
		}
	case errors.Is(err, errFormRefused): // the modal shows the refusal
	case errors.Is(err, errNoForm) && formRefusal(err) != "":
		b.ephemeral.reply(ctx, to, formNotOpened(err))
	case !errors.Is(err, errNoForm) && d.tries < clickTries:
		return err
	default:
		b.Log.InfoContext(ctx, "a page could not be turned: the form was closed or changed", clickIDs(d, target, "cause", err)...)
	}
	if err := b.Intake.Done(ctx, d.id, ""); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// recordAllSeen records that the person has seen all arguments, if the modal shows the last page. The person can
// approve in the modal only after the bot has written this record.
func (b *formOpener) recordAllSeen(ctx context.Context, target form.ClickTarget, who approvers.Identity, v slack.ModalViewRequest) error {
	if v.CallbackID != control.ActArguments || v.Submit == nil {
		return nil
	}
	body, err := form.WholeView(*target.Request)
	if err != nil {
		return err
	}
	_, err = b.Outbox.Viewed(ctx, workflow.Viewing{Request: target.Request.ID, Digest: target.Request.Digest, Who: who.ID, As: "view", Body: body})
	return err
}

// recordReveal records that the person has seen the request's masked values, if the modal shows the last page. The
// record has the names of the masked arguments, but not their values. The digest in the record covers the values.
func (b *formOpener) recordReveal(ctx context.Context, target form.ClickTarget, who approvers.Identity, v slack.ModalViewRequest) error {
	if v.CallbackID != control.ActReveal || !form.LastPage(v) {
		return nil
	}
	var names []string
	for _, one := range argument.SecretsIn(target.Request.Args, target.Request.Secrets) {
		names = append(names, one.Path)
	}
	if len(names) == 0 {
		return nil
	}
	body, err := block.Paragraph(block.Say("Revealed, to one person alone: " + strings.Join(names, ", "))).Message().Body()
	if err != nil {
		return err
	}
	click := workflow.Click{Who: who, Request: target.Request.ID, Digest: target.Request.Digest, Rendering: view.HashOf(body)}
	return b.Requests.Reveal(ctx, click, target.Request.Secrets, body)
}

// recordItemSeen records the content of a request on the Home tab, if a person acts on the request there. The bot does
// not record the other renderings of a Home tab, because a tab is redrawn too often.
func (b *formOpener) recordItemSeen(ctx context.Context, target form.ClickTarget, who approvers.Identity) error {
	if target.Message.Kind != store.OutboxHome || target.Request == nil || target.ShownRequest().Digest == "" {
		return nil
	}
	_, err := b.Outbox.Viewed(ctx, workflow.Viewing{
		Request: target.Request.ID, Digest: target.ShownRequest().Digest, Who: who.ID, As: string(store.OutboxHome), Body: target.ItemBody(),
	})
	return err
}
