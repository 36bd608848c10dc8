package bot

import (
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
	"countersign/store"
)

// openForm fills the modal that a click opened.
func (b *Bot) openForm(ctx context.Context, d delivered, i interaction, r ephemeralReply, s render.ClickTarget) error {
	action := i.Actions[0].ActionID
	who, unknown := b.authority(ctx, r.user, s, action)
	if unknown != nil && passes(d, unknown) {
		return unknown
	}
	no := noForm(action, s, who)
	if unknown == nil {
		if err := b.noteItem(ctx, s, who); err != nil {
			return err
		}
	}
	var v slack.ModalViewRequest
	if unknown != nil {
		v = render.Refusal(action, render.Unidentified())
	} else {
		v = b.form(action, s, who)
	}
	b.known(r.user).LocalizeBlocks(v.Blocks.BlockSet)
	err := b.fill(ctx, d.id, v)
	switch {
	case err == nil && who.ID != "":
		if err := errors.Join(b.noteWhole(ctx, s, who, v), b.noteReveal(ctx, s, who, v)); err != nil {
			return err
		}
	case errors.Is(err, errNoForm):
		b.Log.Info("a form could not be filled in", "inbox", d.id, "cause", err)
		switch {
		case unknown != nil:
			b.replyEphemeral(ctx, r, render.Unidentified())
		case no != nil:
			b.replyEphemeral(ctx, r, render.Denied(no, s.Request, s.Policy))
		default:
			b.replyEphemeral(ctx, r, render.Say("The form could not be opened in time. Please click again."))
		}
	case err != nil && d.tries < clickTries:
		return err
	case err != nil:
		b.Log.Error("a form could not be filled in", "inbox", d.id, "error", err)
		b.replyEphemeral(ctx, r, render.Say("The form could not be opened, because Slack did not take it. Please click again."))
	}
	c := workflow.Click{Inbox: d.id, At: d.at, Who: who, User: r.user, Channel: s.Message.Channel, MessageTS: s.Message.TS}
	switch {
	case unknown != nil:
		return b.refuseUnknown(ctx, d, r, c, s, unknown)
	case no != nil:
		return b.Workflow.Refuse(ctx, c, no, "", s.Token.Ref)
	}
	return b.Workflow.Done(ctx, c.Inbox, "")
}

// noForm returns the reason why a person gets no form, if it is their authority or the request's state. The attempt is
// then recorded.
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

// form draws the modal of an action. If the person can't perform the action, the modal says why.
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
	f := render.FormToken{ButtonToken: s.Token, Execution: r.Execution}
	switch action {
	case render.ActReveal:
		return render.RevealForm(r)
	case render.ActTyped:
		return render.TypedForm(r, f)
	case render.ActReject:
		return render.RejectForm(r, f, s)
	case render.ActModify:
		tool, ok := b.Tools.Tool(r.Tool)
		if !ok {
			return render.Refusal(action, render.Say("The tool is not available any more, so its arguments can't be changed. Reject the call, or let it expire."))
		}
		return render.ModifyForm(r, f, tool)
	}
	_, may := r.Authority(s.Policy, who)
	return render.ArgumentsForm(r, f, may == nil && r.State == approvers.Pending)
}

// examine validates a submitted form as far as possible at once. Its faults are shown beside the fields, and the form
// stays open.
func (b *Bot) examine(ctx context.Context, i interaction) (faults map[string]string, reply ack, err error) {
	f, err := render.ParseFormToken(i.View.Metadata)
	if errors.Is(err, render.ErrButtonToken) {
		return nil, ack{}, nil // no longer a valid form: the handler sets it aside
	}
	if err != nil {
		return nil, ack{}, err
	}
	if missing := render.WordsNeeded[i.View.Callback]; missing != "" && strings.TrimSpace(i.filled(render.FieldReason)) == "" {
		return map[string]string{render.FieldReason: missing}, ack{}, nil
	}
	if i.View.Callback == render.ActAway {
		faults, err = b.examineAway(ctx, i)
		return faults, ack{}, err
	}
	if i.View.Callback == render.ActFillIn {
		faults, err = b.examineElicitation(ctx, i, f)
		return faults, ack{}, err
	}
	r, err := b.Workflow.Request(ctx, f.Ref)
	if errors.Is(err, store.ErrNotFound) || err == nil && (r.State != approvers.Pending || r.Execution != f.Execution) {
		return nil, ack{}, nil // too late, or not about a request: the handler tells the person
	}
	if err != nil {
		return nil, ack{}, err
	}
	switch i.View.Callback {
	case render.ActModify:
		tool, _ := b.Tools.Tool(r.Tool)
		_, faults = render.EditArgs(r, tool, i.View.answers)
		if typed := strings.TrimSpace(i.filled(render.FieldTyped)); typed != "" && typed != r.Tool {
			faults = map[string]string{render.FieldTyped: "This must be exactly " + render.Visible(r.Tool) + ", or empty."}
		}
	case render.ActTyped, render.ActArguments:
		if !r.WantsTyping() {
			break
		}
		if fault := render.TypedError(r, i.filled(render.FieldTyped)); fault != "" {
			faults = map[string]string{render.FieldTyped: fault}
		}
	case render.ActHandOn:
		faults = b.examineColleague(ctx, r, i)
	case render.ActAllow:
		_, faults = render.ParseAllowance(r, b.Workflow.Policy(), i.View.answers)
	}
	return faults, ack{}, nil
}

// filled returns the value of a field.
func (i interaction) filled(block string) string {
	text, _ := i.View.answers(block)
	return text
}

// submitted handles a submitted form.
func (b *Bot) submitted(ctx context.Context, d delivered, i interaction) error {
	r := ephemeralReply{user: i.User.ID}
	f, err := render.ParseFormToken(i.View.Metadata)
	if err != nil {
		return b.rejectClick(ctx, d, r, workflow.Click{}, render.ClickTarget{}, err)
	}
	s, err := b.formOn(ctx, i, f)
	if err != nil {
		return b.rejectClick(ctx, d, r, workflow.Click{}, s, err)
	}
	r.channel = s.Message.Channel
	if strings.HasPrefix(s.Message.To, "conversation:") {
		r.thread = s.Conversation.Thread
	}
	who, err := b.authority(ctx, r.user, s, i.View.Callback)
	if err != nil {
		return b.unknownClicker(ctx, d, r, workflow.Click{Channel: s.Message.Channel, MessageTS: s.Message.TS}, s, err)
	}
	c := workflow.Click{
		Inbox: d.id, At: d.at, Who: who, User: r.user, Request: f.Ref, Digest: s.ShownRequest().Digest, Whole: s.ShownRequest().Whole, Rendering: s.RenderingHash(),
		FirstSeen: s.ShownRequest().Since, Channel: s.Message.Channel, MessageTS: s.Message.TS, Reason: strings.TrimSpace(i.filled(render.FieldReason)),
	}
	switch i.View.Callback {
	case render.ActTyped:
		c.Kind, c.Typed = approvers.Approve, render.TypedError(*s.Request, i.filled(render.FieldTyped)) == ""
	case render.ActReject:
		c.Kind = approvers.Reject
	case render.ActWithdrawSome:
		c.Request, c.Turn = "", f.Ref
		return b.withdrawSome(ctx, r, s, i, c)
	case render.ActRejectAll:
		c.Kind = approvers.Reject
		return b.decideAll(ctx, r, s, c)
	case render.ActModify:
		return b.submitEdit(ctx, r, s, f, i, c)
	case render.ActArguments:
		c.Typed = render.TypedError(*s.Request, i.filled(render.FieldTyped)) == ""
		return b.approveWhole(ctx, d, r, s, f, c)
	case render.ActAsk, render.ActAnswer, render.ActComment, render.ActHandOn, render.ActTakeBack:
		return b.submitPeople(ctx, d, r, s, i, c)
	case render.ActAllow:
		return b.submitAllowance(ctx, r, s, i, c)
	case render.ActAway:
		return b.submitAway(ctx, r, i, c)
	case render.ActFillIn:
		if s.Elicitation == nil {
			return b.rejectClick(ctx, d, r, c, s, errForged)
		}
		return b.submitElicitation(ctx, r, s, i, c)
	case render.ActHappened:
		c.Request, c.Execution, c.Reason = "", f.Ref, strings.TrimSpace(i.filled(render.FieldResult))
		return b.answerReport(ctx, r, s, b.Workflow.Report(ctx, c, workflow.Happened))
	default:
		return b.rejectClick(ctx, d, r, c, s, fmt.Errorf("%w: no form is named %q", errForged, i.View.Callback))
	}
	return b.decide(ctx, r, s, c)
}

// formOn finds the subject of a submitted form and validates it, as clickedOn does for buttons.
func (b *Bot) formOn(ctx context.Context, i interaction, f render.FormToken) (render.ClickTarget, error) {
	if err := b.here(ctx, i.origin()); err != nil {
		return render.ClickTarget{Token: f.ButtonToken}, err
	}
	s, err := b.findClickTarget(ctx, f.ButtonToken, "")
	switch {
	case err != nil:
		return s, err
	case s.Request == nil && !aboutMore[i.View.Callback]:
		return s, errForged
	}
	return s, nil
}

// aboutMore lists the forms that are not about a single request.
var aboutMore = map[string]bool{render.ActHappened: true, render.ActWithdrawSome: true, render.ActRejectAll: true, render.ActAway: true, render.ActFillIn: true}

// submitEdit passes edited arguments to the workflow. They are spliced into the bytes from which the form was made.
func (b *Bot) submitEdit(ctx context.Context, w ephemeralReply, s render.ClickTarget, f render.FormToken, i interaction, c workflow.Click) error {
	c.Kind = approvers.Modify
	r := *s.Request
	if r.Execution != f.Execution || r.State != approvers.Pending { // the workflow reports the reason, and records the attempt
		c.Args, c.Digest = r.Args, s.ShownRequest().Digest
		return b.decide(ctx, w, s, c)
	}
	tool, _ := b.Tools.Tool(r.Tool)
	args, faults := render.EditArgs(r, tool, i.View.answers)
	if len(faults) > 0 { // the form was valid on submission; the tool has changed since
		for _, fault := range faults {
			d := &approvers.Denied{Code: approvers.DeniedInvalidArgs, Detail: fault}
			b.replyEphemeral(ctx, w, render.Denied(d, &r, s.Policy))
			break
		}
		return b.Workflow.Done(ctx, c.Inbox, "the edited arguments are not valid any more")
	}
	c.Args = args
	c.Whole = s.ShownRequest().Whole || !render.HasLockedFields(tool.Schema, r)
	c.Typed = strings.TrimSpace(i.filled(render.FieldTyped)) == r.Tool
	return b.decide(ctx, w, s, c)
}

// approveWhole approves from the modal that showed all arguments. The modal showed the arguments of the named
// execution: executions never change, and the workflow compares its digest with the request's. A separate record says
// that the person saw the last page.
func (b *Bot) approveWhole(ctx context.Context, d delivered, w ephemeralReply, s render.ClickTarget, f render.FormToken, c workflow.Click) error {
	shown, err := b.Workflow.Execution(ctx, f.Execution)
	if errors.Is(err, store.ErrNotFound) {
		err = render.ErrButtonToken
	}
	if err != nil {
		return err
	}
	if shown.Digest != c.Digest { // the card from which the form was opened showed others
		c.FirstSeen = time.Time{}
	}
	r := *s.Request
	r.Args = shown.Args
	body, err := render.WholeView(r)
	if err != nil {
		return err
	}
	c.Kind, c.Digest = approvers.Approve, shown.Digest
	if c.Rendering, c.Whole, err = b.Workflow.HasViewed(ctx, r.ID, c.Who.ID, body); err != nil {
		return err
	}
	last := f.Page >= len(render.ArgumentPages(r))-1                          // the form has its button only on the last page
	if !c.Whole && last && d.tries < clickTries && shown.Digest == r.Digest { // the record that Slack showed it may still be missing
		return errNotRecorded
	}
	return b.decide(ctx, w, s, c)
}
