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
	"countersign/bot/render"
	"countersign/store"
)

// formOpener opens forms, and handles the clicks within Details…. It records what the person was shown, because a
// decision needs this record. If the person may not do the action, the form says why, and the attempt is recorded.
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
	s, err := b.targets.ofDetails(ctx, i)
	r, c := ephemeralReply{user: i.User.ID, channel: s.Message.Channel}, workflow.Click{Channel: s.Message.Channel, MessageTS: s.Message.TS}
	if err != nil {
		return b.outcomes.refuseTarget(ctx, d, r, c, s, err)
	}
	who, err := b.identities.authority(ctx, r.user, s, render.ActApart)
	if err != nil {
		return b.outcomes.unknownClicker(ctx, d, r, c, s, err)
	}
	c.Inbox, c.At, c.Who, c.User, c.Request = d.id, d.at, who, r.user, s.Token.Ref
	c.Digest, c.Whole, c.Rendering, c.FirstSeen = s.ShownRequest().Digest, s.ShownRequest().Whole, s.RenderingHash(), s.ShownRequest().Since
	after, err := b.Requests.Unbundle(ctx, c)
	words := render.Say("↗️ It has a card of its own now, with everything that you can do about it.")
	var denied *approvers.Denied
	switch {
	case errors.As(err, &denied):
		words = render.Denied(denied, &after, s.Policy)
	case err != nil:
		return err
	}
	err = b.modals.show(render.Refusal(render.ActArguments, words), func(v slack.ModalViewRequest) error { return b.modals.updateClicked(ctx, v, i) })
	if err != nil {
		b.Log.Info("Details… could not show the outcome of a click", "inbox", d.id, "cause", err)
		b.ephemeral.reply(ctx, r, words)
	}
	return nil
}

// openWithin replaces the modal of Details… with the form of one of the modal's buttons.
func (b *formOpener) openWithin(ctx context.Context, d delivered, i interaction) error {
	r := ephemeralReply{user: i.User.ID}
	s, err := b.targets.ofDetails(ctx, i)
	if err != nil {
		return b.outcomes.refuseTarget(ctx, d, r, workflow.Click{}, s, err)
	}
	r.channel = s.Message.Channel
	return b.open(ctx, formClick{d, i.Actions[0].ActionID, r, s, func(v slack.ModalViewRequest) error {
		return b.modals.show(v, func(v slack.ModalViewRequest) error { return b.modals.updateClicked(ctx, v, i) })
	}})
}

// formClick is a click that opens a form, on a message or in Details….
type formClick struct {
	d      delivered
	action string
	reply  ephemeralReply
	target render.ClickTarget
	show   func(slack.ModalViewRequest) error
}

// open draws the form and shows it.
func (b *formOpener) open(ctx context.Context, f formClick) error {
	d, action, r, s := f.d, f.action, f.reply, f.target
	who, unknown := b.identities.authority(ctx, r.user, s, action)
	if unknown != nil && mayRetry(d, b.Now(), unknown) {
		return unknown
	}
	no := noForm(action, s, who)
	if unknown == nil {
		if err := b.recordItemSeen(ctx, s, who); err != nil {
			return err
		}
	}
	if err := b.readAbout(ctx, action, &s); err != nil {
		return err
	}
	var v slack.ModalViewRequest
	if unknown != nil {
		v = render.Refusal(action, render.Unidentified())
	} else {
		v = b.form(action, s, who)
	}
	b.identities.known(r.user).LocalizeBlocks(v.Blocks.BlockSet)
	err := f.show(v)
	switch {
	case err == nil && who.ID != "":
		if err := errors.Join(b.recordAllSeen(ctx, s, who, v), b.recordReveal(ctx, s, who, v)); err != nil {
			return err
		}
	case errors.Is(err, errNoForm):
		b.Log.Info("a form could not be shown", "inbox", d.id, "cause", err)
		switch {
		case unknown != nil:
			b.ephemeral.reply(ctx, r, render.Unidentified())
		case no != nil:
			b.ephemeral.reply(ctx, r, render.Denied(no, s.Request, s.Policy))
		default:
			b.ephemeral.reply(ctx, r, formNotOpened(err))
		}
	case errors.Is(err, errFormRefused): // the modal shows the refusal
	case err != nil && d.tries < clickTries:
		return err
	case err != nil:
		b.Log.Error("a form could not be shown", "inbox", d.id, "error", err)
		b.ephemeral.reply(ctx, r, render.Say("The form could not be opened. Please click again."))
	}
	c := workflow.Click{Inbox: d.id, At: d.at, Who: who, User: r.user, Channel: s.Message.Channel, MessageTS: s.Message.TS}
	switch {
	case unknown != nil:
		return b.outcomes.refuseUnknown(ctx, d, r, c, s, unknown)
	case no != nil:
		return b.Requests.Refuse(ctx, c, no, "", s.Token.Ref)
	}
	return b.Intake.Done(ctx, c.Inbox, "")
}

// readAbout reads the additional data that Details… shows about a request.
func (b *formOpener) readAbout(ctx context.Context, action string, s *render.ClickTarget) error {
	if action != render.ActArguments || s.Request == nil {
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
	s.About = render.About{WorkspaceURL: me.URL, Tool: render.DescribeTool(b.Tools, s.Model), History: history}
	return nil
}

// noForm returns the reason why a person gets no form, or nil. The reason is missing authority, or a state of the
// request that does not allow the action. If there is a reason, the caller records the attempt.
func noForm(action string, s render.ClickTarget, who approvers.Identity) *approvers.Denied {
	if s.Elicitation != nil {
		return s.Elicitation.Answerable(who, s.Now)
	}
	if s.Request == nil {
		return nil
	}
	switch action {
	case render.ActTyped, render.ActReject, render.ActModify, render.ActReveal:
		return render.Precheck(*s.Request, s, who)
	}
	if !directory.Barred(who) {
		return nil
	}
	_, d := s.Request.Authority(s.Policy, who)
	return d
}

// form draws the modal of an action. If the person can't perform the action, the modal says why. For an action that
// needs no form, the modal can't be submitted.
func (b *formOpener) form(action string, s render.ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	if action == render.ActHappened {
		return render.ReportForm(s)
	}
	switch action {
	case render.ActRejectAll:
		return render.RejectAllForm(s, who)
	case render.ActWithdrawSome:
		return render.WithdrawForm(s)
	case render.ActAway:
		return render.AwayForm(s)
	case render.ActFillIn:
		if s.Elicitation != nil {
			return render.ElicitationForm(s, who)
		}
	}
	if draw := render.PeopleForms[action]; draw != nil && s.Request != nil {
		return draw(s, who)
	}
	if s.Request == nil {
		return render.Refusal(action, render.Denied(&approvers.Denied{Code: approvers.DeniedNotFound}, nil, s.Policy))
	}
	r := *s.Request
	if d := render.Precheck(r, s, who); d != nil && (action != render.ActArguments || directory.Barred(who)) {
		return render.Refusal(action, render.Denied(d, &r, s.Policy))
	}
	if (action == render.ActTyped || action == render.ActModify) && r.MustReveal(s.Policy, who.ID) {
		return render.Refusal(action, render.Denied(&approvers.Denied{Code: approvers.DeniedMasked}, &r, s.Policy))
	}
	f := render.FormToken{ButtonToken: s.Token, Execution: r.Execution}
	switch action {
	case render.ActReveal:
		return render.RevealForm(r, f)
	case render.ActTyped:
		return render.TypedForm(r, f)
	case render.ActReject:
		return render.RejectForm(r, f, s)
	case render.ActArguments:
		return render.DetailsForm(s, f, who)
	case render.ActModify:
		tool, ok := workflow.ToolOf(b.Tools, r.Tool, r.ToolHash)
		if !ok {
			return render.Refusal(action, render.Say("The tool is not available any more, so its arguments can't be changed. Reject the call, or let it expire."))
		}
		return render.ModifyForm(s, who, f, tool, nil)
	}
	return render.Refusal(action, render.Say("This button has no form. Nothing was changed."))
}

// turnPage shows another page of the arguments.
func (b *formOpener) turnPage(ctx context.Context, d delivered, i interaction) error {
	r := ephemeralReply{user: i.User.ID}
	f, err := render.ParseFormToken(i.View.Metadata)
	if err != nil {
		return b.outcomes.refuseTarget(ctx, d, r, workflow.Click{}, render.ClickTarget{}, err)
	}
	form := render.ActArguments
	if i.View.Callback == render.ActReveal {
		form = render.ActReveal
	}
	switch i.Actions[0].Value {
	case "1":
		f.Page++
	case "-1":
		f.Page = max(0, f.Page-1)
	default:
		return fmt.Errorf("%w: the button names no page", errPayload)
	}
	s, err := b.targets.find(ctx, f.ButtonToken, "")
	if err != nil {
		return b.outcomes.refuseTarget(ctx, d, r, workflow.Click{}, s, err)
	}
	var viewer approvers.Identity
	v := render.Refusal(form, render.Denied(&approvers.Denied{Code: approvers.DeniedStale}, s.Request, s.Policy))
	if s.Request != nil && s.Request.Execution == f.Execution {
		who, err := b.identities.authority(ctx, i.User.ID, s, form)
		if err != nil {
			return b.outcomes.unknownClicker(ctx, d, r, workflow.Click{}, s, err)
		}
		viewer = who
		if err := b.readAbout(ctx, form, &s); err != nil {
			return err
		}
		denied := render.Precheck(*s.Request, s, who)
		switch {
		case form == render.ActArguments:
			v = render.DetailsForm(s, f, who)
		case denied != nil:
			v = render.Refusal(form, render.Denied(denied, s.Request, s.Policy))
		default:
			v = render.RevealForm(*s.Request, f)
		}
		b.identities.known(i.User.ID).LocalizeBlocks(v.Blocks.BlockSet)
	}
	err = b.modals.show(v, func(v slack.ModalViewRequest) error { return b.modals.updateClicked(ctx, v, i) })
	switch {
	case err == nil:
		if err := errors.Join(b.recordAllSeen(ctx, s, viewer, v), b.recordReveal(ctx, s, viewer, v)); err != nil {
			return err
		}
	case errors.Is(err, errFormRefused): // the modal shows the refusal
	case errors.Is(err, errNoForm) && formRefusal(err) != "":
		b.ephemeral.reply(ctx, r, formNotOpened(err))
	case !errors.Is(err, errNoForm) && d.tries < clickTries:
		return err
	default:
		b.Log.Info("a page could not be turned: the form was closed or changed", "inbox", d.id, "cause", err)
	}
	if err := b.Intake.Done(ctx, d.id, ""); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// If the modal shows the last page, recordAllSeen records that the person has seen all arguments. The person can
// approve in the modal only after the bot has written this record.
func (b *formOpener) recordAllSeen(ctx context.Context, s render.ClickTarget, who approvers.Identity, v slack.ModalViewRequest) error {
	if v.CallbackID != render.ActArguments || v.Submit == nil {
		return nil
	}
	body, err := render.WholeView(*s.Request)
	if err != nil {
		return err
	}
	_, err = b.Outbox.Viewed(ctx, workflow.Viewing{Request: s.Request.ID, Digest: s.Request.Digest, Who: who.ID, As: "view", Body: body})
	return err
}

// If the modal shows the last page, recordReveal records that the person has seen the request's masked values. The
// record has the names of the masked arguments, but not their values. The digest in the record covers the values.
func (b *formOpener) recordReveal(ctx context.Context, s render.ClickTarget, who approvers.Identity, v slack.ModalViewRequest) error {
	if v.CallbackID != render.ActReveal || !render.LastPage(v) {
		return nil
	}
	var names []string
	for _, one := range render.SecretsIn(s.Request.Args, s.Request.Secrets) {
		names = append(names, one.Path)
	}
	if len(names) == 0 {
		return nil
	}
	body, err := render.Paragraph(render.Say("Revealed, to one person alone: " + strings.Join(names, ", "))).Message().Body()
	if err != nil {
		return err
	}
	c := workflow.Click{Who: who, Request: s.Request.ID, Digest: s.Request.Digest, Rendering: view.HashOf(body)}
	return b.Requests.Reveal(ctx, c, s.Request.Secrets, body)
}

// If a person acts on a request on the Home tab, recordItemSeen records what the tab showed of this request. The bot
// does not record the other renderings of a Home tab, because a tab is redrawn too often.
func (b *formOpener) recordItemSeen(ctx context.Context, s render.ClickTarget, who approvers.Identity) error {
	if s.Message.Kind != store.OutboxHome || s.Request == nil || s.ShownRequest().Digest == "" {
		return nil
	}
	_, err := b.Outbox.Viewed(ctx, workflow.Viewing{Request: s.Request.ID, Digest: s.ShownRequest().Digest, Who: who.ID, As: string(store.OutboxHome), Body: s.ItemBody()})
	return err
}
