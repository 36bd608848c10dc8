package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/bot/directory"
	"countersign/bot/render"
	"countersign/bot/slackapi"
	"countersign/store"
)

// formOf returns the modal that a click opens.
func formOf(i interaction) (string, bool) {
	if i.Type == interactionShortcut {
		return i.Callback, i.TriggerID != ""
	}
	if i.Type != "block_actions" || i.View.modal() || len(i.Actions) == 0 || i.TriggerID == "" {
		return "", false
	}
	form := render.ActionOf(i.Actions[0].ActionID)
	_, ok := render.FormTitles[form]
	return form, ok
}

// openWait is the time limit for opening a loading view. The limit is short, because the click's trigger id expires
// after three seconds.
const openWait = 4 * time.Second

// openAgain is the pause between two tries to fill a loading view that another replica opens.
const openAgain = 200 * time.Millisecond

// forms tracks the loading views that this process opened, by inbox id.
type forms struct {
	mu   sync.Mutex
	open map[string]*opening
}

type opening struct {
	done chan struct{}
	err  error
	at   time.Time
}

// openLoading immediately opens a modal with a loading text. The handler of the click later replaces the modal's
// content. The modal's external id is the click's id.
func (b *Bot) openLoading(id, trigger, form string) {
	o := &opening{done: make(chan struct{}), at: b.Now()}
	if !b.forms.add(id, o) {
		return // a duplicate delivery, whose trigger id is already used
	}
	b.side.Go(func() {
		defer close(o.done)
		ctx, cancel := context.WithTimeout(slackapi.WithCallPriority(context.Background(), slackapi.CallPriority{Priority: slackapi.PriorityUrgent}), openWait)
		defer cancel()
		_, o.err = b.api.OpenViewContext(ctx, trigger, render.LoadingView(id, form))
	})
}

// add registers a loading view. If a loading view with this id is registered, add returns false.
func (f *forms) add(id string, o *opening) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = map[string]*opening{}
	}
	for old, was := range f.open { // entries are kept for a minute, so that a click that is delivered twice opens only one modal
		if o.at.Sub(was.at) > time.Minute {
			delete(f.open, old)
		}
	}
	if f.open[id] != nil {
		return false
	}
	f.open[id] = o
	return true
}

var (
	// errNoForm says that the loading view does not exist: Slack did not open it, or the person closed it.
	errNoForm = errors.New("the form is not open")
	// errFormRefused says that Slack refused the form. The person sees the refusal in place of the loading view.
	errFormRefused = errors.New("Slack refused the form")
)

// formRefusal returns Slack's code if Slack refused a form permanently. formRefusal returns "" if another click may
// help.
func formRefusal(err error) string {
	code := slackapi.ErrorCode(err)
	switch code {
	case "expired_trigger_id", "trigger_expired", "exchanged_trigger_id", "trigger_exchanged", "not_found", "view_not_found", "hash_conflict":
		return ""
	}
	if !slackapi.IsRefused(err) {
		return ""
	}
	return cmp.Or(code, "no such method")
}

// fill replaces the loading view of a click with the form. The parameter at is the time of the click. If Slack refuses
// the form, fill shows the refusal instead.
func (b *Bot) fill(ctx context.Context, id string, at time.Time, v slack.ModalViewRequest) error {
	b.forms.mu.Lock()
	o := b.forms.open[id]
	b.forms.mu.Unlock()
	if o != nil {
		select {
		case <-o.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if o.err != nil {
			logRefusedForm(b, "views.open", v, o.err)
			return fmt.Errorf("%w: %w", errNoForm, o.err)
		}
	}
	show := func() error {
		return showForm(b, v, func(v slack.ModalViewRequest) error {
			v.ExternalID = render.ExternalID(id)
			_, err := b.api.UpdateViewContext(ctx, v, v.ExternalID, "", "")
			return err
		})
	}
	err := show()
	if elsewhere := o == nil && (Replicas{b}).others(); elsewhere { // another replica opens the loading view
		for errors.Is(err, errNoForm) && b.Now().Sub(at) < openWait {
			if stopped := slackapi.Sleep(ctx, openAgain); stopped != nil {
				return stopped
			}
			err = show()
		}
	}
	if err != nil {
		return err
	}
	b.forms.mu.Lock()
	delete(b.forms.open, id)
	b.forms.mu.Unlock()
	return nil
}

// showForm shows a form in a modal that is already open. If Slack refuses the form, showForm shows the refusal instead
// and logs Slack's reason.
func showForm(b *Bot, v slack.ModalViewRequest, update func(slack.ModalViewRequest) error) error {
	cause := update(v)
	code := formRefusal(cause)
	switch {
	case cause == nil:
		return nil
	case code == "":
		return notUpdated(cause)
	}
	logRefusedForm(b, "views.update", v, cause)
	if update(render.RefusedForm(v.Title.Text, code)) != nil {
		return fmt.Errorf("%w: %w", errNoForm, cause)
	}
	return fmt.Errorf("%w: %w", errFormRefused, cause)
}

// logRefusedForm logs a form that Slack refused permanently, with Slack's reason.
func logRefusedForm(b *Bot, method string, v slack.ModalViewRequest, cause error) {
	if formRefusal(cause) != "" {
		b.Log.Error("Slack refused a form", "method", method, "form", v.Title.Text, "cause", slackapi.Explain(cause))
	}
}

// formNotOpened tells a person that a click opened no form.
func formNotOpened(cause error) *render.RichText {
	if code := formRefusal(cause); code != "" {
		return render.FormRefused(code)
	}
	return render.Say("The form could not be opened in time. Please click again.")
}

// notUpdated returns the error for a modal that was not updated. notUpdated wraps errNoForm if the modal is closed or
// has changed.
func notUpdated(err error) error {
	switch slackapi.ErrorCode(err) {
	case "not_found", "view_not_found", "expired_trigger_id", "hash_conflict":
		return fmt.Errorf("%w: %w", errNoForm, err)
	}
	return fmt.Errorf("views.update: %w", slackapi.WithDelay(err))
}

// inDetails finds the subject of a click in the modal of Details….
func inDetails(ctx context.Context, b *Bot, i interaction) (render.ClickTarget, error) {
	f, err := render.ParseFormToken(i.View.Metadata)
	if err != nil {
		return render.ClickTarget{}, err
	}
	s, err := b.formOn(ctx, i, f)
	if err == nil && (s.Request == nil || i.View.Callback != render.ActArguments) {
		err = errForged
	}
	return s, err
}

// unbundleWithin handles a button in the Details… of a call. The button moves the call from its bundle to a card of its
// own.
func unbundleWithin(ctx context.Context, b *Bot, d delivered, i interaction) error {
	s, err := inDetails(ctx, b, i)
	r, c := ephemeralReply{user: i.User.ID, channel: s.Message.Channel}, workflow.Click{Channel: s.Message.Channel, MessageTS: s.Message.TS}
	if err != nil {
		return b.rejectClick(ctx, d, r, c, s, err)
	}
	who, err := b.authority(ctx, r.user, s, render.ActApart)
	if err != nil {
		return b.unknownClicker(ctx, d, r, c, s, err)
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
	err = showForm(b, render.Refusal(render.ActArguments, words), func(v slack.ModalViewRequest) error { return updateClicked(ctx, b, v, i) })
	if err != nil {
		b.Log.Info("Details… could not show the outcome of a click", "inbox", d.id, "cause", err)
		b.replyEphemeral(ctx, r, words)
	}
	return nil
}

// openWithin replaces the modal of Details… with the form of one of the modal's buttons.
func (b *Bot) openWithin(ctx context.Context, d delivered, i interaction) error {
	r := ephemeralReply{user: i.User.ID}
	s, err := inDetails(ctx, b, i)
	if err != nil {
		return b.rejectClick(ctx, d, r, workflow.Click{}, s, err)
	}
	r.channel = s.Message.Channel
	return formClick{b, d, i.Actions[0].ActionID, r, s, func(v slack.ModalViewRequest) error {
		return showForm(b, v, func(v slack.ModalViewRequest) error { return updateClicked(ctx, b, v, i) })
	}}.open(ctx)
}

// updateClicked replaces the modal in which a person clicked.
func updateClicked(ctx context.Context, b *Bot, v slack.ModalViewRequest, i interaction) error {
	_, err := b.api.UpdateViewContext(ctx, v, "", i.View.Hash, i.View.ID)
	return err
}

// formClick is a click that opens a form, on a message or in Details….
type formClick struct {
	*Bot
	d      delivered
	action string
	reply  ephemeralReply
	target render.ClickTarget
	show   func(slack.ModalViewRequest) error
}

// open draws the form and shows it.
func (f formClick) open(ctx context.Context) error {
	b, d, action, r, s := f.Bot, f.d, f.action, f.reply, f.target
	who, unknown := b.authority(ctx, r.user, s, action)
	if unknown != nil && mayRetry(d, b.Now(), unknown) {
		return unknown
	}
	no := noForm(action, s, who)
	if unknown == nil {
		if err := b.recordItemSeen(ctx, s, who); err != nil {
			return err
		}
	}
	if err := readAbout(ctx, b, action, &s); err != nil {
		return err
	}
	var v slack.ModalViewRequest
	if unknown != nil {
		v = render.Refusal(action, render.Unidentified())
	} else {
		v = b.form(action, s, who)
	}
	b.known(r.user).LocalizeBlocks(v.Blocks.BlockSet)
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
			b.replyEphemeral(ctx, r, render.Unidentified())
		case no != nil:
			b.replyEphemeral(ctx, r, render.Denied(no, s.Request, s.Policy))
		default:
			b.replyEphemeral(ctx, r, formNotOpened(err))
		}
	case errors.Is(err, errFormRefused): // the modal shows the refusal
	case err != nil && d.tries < clickTries:
		return err
	case err != nil:
		b.Log.Error("a form could not be shown", "inbox", d.id, "error", err)
		b.replyEphemeral(ctx, r, render.Say("The form could not be opened. Please click again."))
	}
	c := workflow.Click{Inbox: d.id, At: d.at, Who: who, User: r.user, Channel: s.Message.Channel, MessageTS: s.Message.TS}
	switch {
	case unknown != nil:
		return b.refuseUnknown(ctx, d, r, c, s, unknown)
	case no != nil:
		return b.Requests.Refuse(ctx, c, no, "", s.Token.Ref)
	}
	return b.Intake.Done(ctx, c.Inbox, "")
}

// readAbout reads the additional data that Details… shows about a request.
func readAbout(ctx context.Context, b *Bot, action string, s *render.ClickTarget) error {
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
func (b *Bot) form(action string, s render.ClickTarget, who approvers.Identity) slack.ModalViewRequest {
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
func (b *Bot) turnPage(ctx context.Context, d delivered, i interaction) error {
	r := ephemeralReply{user: i.User.ID}
	f, err := render.ParseFormToken(i.View.Metadata)
	if err != nil {
		return b.rejectClick(ctx, d, r, workflow.Click{}, render.ClickTarget{}, err)
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
	s, err := b.findClickTarget(ctx, f.ButtonToken, "")
	if err != nil {
		return b.rejectClick(ctx, d, r, workflow.Click{}, s, err)
	}
	var viewer approvers.Identity
	v := render.Refusal(form, render.Denied(&approvers.Denied{Code: approvers.DeniedStale}, s.Request, s.Policy))
	if s.Request != nil && s.Request.Execution == f.Execution {
		who, err := b.authority(ctx, i.User.ID, s, form)
		if err != nil {
			return b.unknownClicker(ctx, d, r, workflow.Click{}, s, err)
		}
		viewer = who
		if err := readAbout(ctx, b, form, &s); err != nil {
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
		b.known(i.User.ID).LocalizeBlocks(v.Blocks.BlockSet)
	}
	err = showForm(b, v, func(v slack.ModalViewRequest) error { return updateClicked(ctx, b, v, i) })
	switch {
	case err == nil:
		if err := errors.Join(b.recordAllSeen(ctx, s, viewer, v), b.recordReveal(ctx, s, viewer, v)); err != nil {
			return err
		}
	case errors.Is(err, errFormRefused): // the modal shows the refusal
	case errors.Is(err, errNoForm) && formRefusal(err) != "":
		b.replyEphemeral(ctx, r, formNotOpened(err))
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

// When the modal shows the last page, recordAllSeen records that a person has seen all arguments. The person can
// approve in the modal only after the bot has written this record.
func (b *Bot) recordAllSeen(ctx context.Context, s render.ClickTarget, who approvers.Identity, v slack.ModalViewRequest) error {
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

// When the modal shows the last page, recordReveal records that a person was shown a request's masked values. The
// record has the names of the masked arguments, but not their values. The digest in the record covers the values.
func (b *Bot) recordReveal(ctx context.Context, s render.ClickTarget, who approvers.Identity, v slack.ModalViewRequest) error {
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
