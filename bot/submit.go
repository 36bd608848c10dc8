package bot

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// formMark is a modal's metadata: the button that opened it, the execution that it shows, and the page.
type formMark struct {
	mark
	Execution string
	Page      int
}

func (f formMark) String() string {
	return f.mark.String() + " " + f.Execution + " " + strconv.Itoa(f.Page)
}

func readFormMark(s string) (formMark, error) {
	parts := strings.Split(s, " ")
	if len(parts) != 6 {
		return formMark{}, errMark
	}
	m, err := readMark(strings.Join(parts[:4], " "))
	if err != nil {
		return formMark{}, err
	}
	page, err := strconv.Atoi(parts[5])
	if err != nil || page < 0 {
		return formMark{}, errMark
	}
	return formMark{mark: m, Execution: parts[4], Page: page}, nil
}

// openForm fills the modal that a click opened.
func (b *Bot) openForm(ctx context.Context, d delivered, i interaction, w whisper, s seen) error {
	action := i.Actions[0].ActionID
	who, unknown := b.authority(ctx, w.user, s, action)
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
		v = refusal(action, unidentified())
	} else {
		v = b.form(action, s, who)
	}
	b.known(w.user).localizeBlocks(v.Blocks.BlockSet)
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
			b.tell(ctx, w, unidentified())
		case no != nil:
			b.tell(ctx, w, denied(no, s.Request, s.Policy))
		default:
			b.tell(ctx, w, say("The form could not be opened in time. Please click again."))
		}
	case err != nil && d.tries < clickTries:
		return err
	case err != nil:
		b.Log.Error("a form could not be filled in", "inbox", d.id, "error", err)
		b.tell(ctx, w, say("The form could not be opened, because Slack did not take it. Please click again."))
	}
	c := desk.Click{Inbox: d.id, At: d.at, Who: who, User: w.user, Channel: s.Surface.Channel, MessageTS: s.Surface.TS}
	switch {
	case unknown != nil:
		return b.refuseUnknown(ctx, d, w, c, s, unknown)
	case no != nil:
		return b.Desk.Refuse(ctx, c, no, "", s.mark.Ref)
	}
	return b.Desk.Done(ctx, c.Inbox, "")
}

// noForm is why a person gets no form for what they want to do, if that is because of who they are or what became of the request: then it is recorded that
// they tried.
func noForm(action string, s seen, who approvers.Identity) *approvers.Denied {
	if s.Elicitation != nil {
		return s.Elicitation.Answerable(who, s.Now)
	}
	if s.Request == nil {
		return nil
	}
	switch action {
	case actTyped, actReject, actModify, actReveal:
		return hindrance(*s.Request, s, who)
	}
	if !barred(who) {
		return nil
	}
	_, d := s.Request.Authority(s.Policy, who)
	return d
}

// barred reports whether somebody is shown and allowed nothing, whatever their roles.
func barred(who approvers.Identity) bool {
	return who.ID == "" || who.Foreign || who.Guest || who.Bot || who.Deleted
}

// form draws the modal of an action; for somebody who can't do it, it says why at once.
func (b *Bot) form(action string, s seen, who approvers.Identity) slack.ModalViewRequest {
	if action == actHappened {
		return reportForm(s)
	}
	switch action {
	case actRejectAll:
		return rejectAllForm(s, who)
	case actWithdrawSome:
		return withdrawForm(s)
	case actAway:
		return awayForm(s)
	case actFillIn:
		if s.Elicitation != nil {
			return b.elicitForm(s, who)
		}
	}
	if draw := peopleForms[action]; draw != nil && s.Request != nil {
		return draw(s, who)
	}
	if s.Request == nil {
		return refusal(action, denied(&approvers.Denied{Code: approvers.DeniedNotFound}, nil, s.Policy))
	}
	r := *s.Request
	if d := hindrance(r, s, who); d != nil && (action != actArguments || barred(who)) {
		return refusal(action, denied(d, &r, s.Policy))
	}
	f := formMark{mark: s.mark, Execution: r.Execution}
	switch action {
	case actReveal:
		return revealForm(r)
	case actTyped:
		return typedForm(r, f)
	case actReject:
		return rejectForm(r, f, s)
	case actModify:
		tool, ok := b.Tools.Tool(r.Tool)
		if !ok {
			return refusal(action, say("The tool is not available any more, so its arguments can't be changed. Reject the call, or let it expire."))
		}
		return modifyForm(r, f, tool)
	}
	_, may := r.Authority(s.Policy, who)
	return argumentsForm(r, f, may == nil && r.State == approvers.Pending)
}

// hindrance is why a person could not decide a request now. The desk checks again when they do; this is only to tell them early.
func hindrance(r approvers.Request, s seen, who approvers.Identity) *approvers.Denied {
	if r.State != approvers.Pending {
		return r.Over()
	}
	if s.was().Digest != r.Digest {
		return &approvers.Denied{Code: approvers.DeniedStale}
	}
	_, d := r.Authority(s.Policy, who)
	return d
}

// refusal is a modal that only says why there is no form.
func refusal(action string, why *prose) slack.ModalViewRequest {
	p := new(page)
	p.para(why)
	return modal(formTitles[action], p)
}

// examine holds a submitted form against what can be known at once. Its faults are shown beside the fields, and the form stays open.
func (b *Bot) examine(ctx context.Context, i interaction) (faults map[string]string, reply ack, err error) {
	f, err := readFormMark(i.View.Metadata)
	if errors.Is(err, errMark) {
		return nil, ack{}, nil // not one of our forms any more: set aside by whoever handles it
	}
	if err != nil {
		return nil, ack{}, err
	}
	if missing := wordsNeeded[i.View.Callback]; missing != "" && strings.TrimSpace(i.filled(fieldReason)) == "" {
		return map[string]string{fieldReason: missing}, ack{}, nil
	}
	if i.View.Callback == actAway {
		faults, err = b.examineAway(ctx, i)
		return faults, ack{}, err
	}
	if i.View.Callback == actFillIn {
		faults, err = b.examineElicitation(ctx, i, f)
		return faults, ack{}, err
	}
	r, err := b.Desk.Request(ctx, f.Ref)
	if errors.Is(err, store.ErrNotFound) || err == nil && (r.State != approvers.Pending || r.Execution != f.Execution) {
		return nil, ack{}, nil // too late, or not about a request: told when it is handled
	}
	if err != nil {
		return nil, ack{}, err
	}
	switch i.View.Callback {
	case actModify:
		tool, _ := b.Tools.Tool(r.Tool)
		_, faults = edit(r, tool, i.View)
		if typed := strings.TrimSpace(i.filled(fieldTyped)); typed != "" && typed != r.Tool {
			faults = map[string]string{fieldTyped: "This must be exactly " + Visible(r.Tool) + ", or empty."}
		}
	case actTyped, actArguments:
		if !r.WantsTyping() {
			break
		}
		if fault := mistyped(r, i.filled(fieldTyped)); fault != "" {
			faults = map[string]string{fieldTyped: fault}
		}
	case actHandOn:
		faults = b.examineColleague(ctx, r, i)
	case actAllow:
		_, faults = allowanceIn(r, b.Desk.Policy(), i)
	}
	return faults, ack{}, nil
}

// filled is what stands in a field.
func (i interaction) filled(block string) string {
	for _, in := range i.View.State.Values[block] {
		return in.text()
	}
	return ""
}

// submitted handles a submitted form.
func (b *Bot) submitted(ctx context.Context, d delivered, i interaction) error {
	w := whisper{user: i.User.ID}
	f, err := readFormMark(i.View.Metadata)
	if err != nil {
		return b.unseen(ctx, d, w, desk.Click{}, seen{}, err)
	}
	s, err := b.formOn(ctx, i, f)
	if err != nil {
		return b.unseen(ctx, d, w, desk.Click{}, s, err)
	}
	w.channel = s.Surface.Channel
	if strings.HasPrefix(s.Surface.To, "conversation:") {
		w.thread = s.Conversation.Thread
	}
	who, err := b.authority(ctx, w.user, s, i.View.Callback)
	if err != nil {
		return b.unknownClicker(ctx, d, w, desk.Click{Channel: s.Surface.Channel, MessageTS: s.Surface.TS}, s, err)
	}
	c := desk.Click{
		Inbox: d.id, At: d.at, Who: who, User: w.user, Request: f.Ref, Digest: s.was().Digest, Whole: s.was().Whole, Rendering: s.rendering(),
		FirstSeen: s.was().Since, Channel: s.Surface.Channel, MessageTS: s.Surface.TS, Reason: strings.TrimSpace(i.filled(fieldReason)),
	}
	switch i.View.Callback {
	case actTyped:
		c.Kind, c.Typed = approvers.Approve, mistyped(*s.Request, i.filled(fieldTyped)) == ""
	case actReject:
		c.Kind = approvers.Reject
	case actWithdrawSome:
		c.Request, c.Turn = "", f.Ref
		return b.withdrawSome(ctx, w, s, i, c)
	case actRejectAll:
		c.Kind = approvers.Reject
		return b.decideAll(ctx, w, s, c)
	case actModify:
		return b.submitEdit(ctx, w, s, f, i, c)
	case actArguments:
		c.Typed = mistyped(*s.Request, i.filled(fieldTyped)) == ""
		return b.approveWhole(ctx, d, w, s, f, c)
	case actAsk, actAnswer, actComment, actHandOn, actTakeBack:
		return b.submitPeople(ctx, d, w, s, i, c)
	case actAllow:
		return b.submitAllowance(ctx, w, s, i, c)
	case actAway:
		return b.submitAway(ctx, w, i, c)
	case actFillIn:
		if s.Elicitation == nil {
			return b.unseen(ctx, d, w, c, s, errForged)
		}
		return b.submitElicitation(ctx, w, s, i, c)
	case actHappened:
		c.Request, c.Execution, c.Reason = "", f.Ref, strings.TrimSpace(i.filled(fieldResult))
		return b.answerReport(ctx, w, s, b.Desk.Report(ctx, c, desk.Happened))
	default:
		return b.unseen(ctx, d, w, c, s, fmt.Errorf("%w: no form is named %q", errForged, i.View.Callback))
	}
	return b.decide(ctx, w, s, c)
}

// formOn finds what a submitted form is about, as clickedOn does for a button.
func (b *Bot) formOn(ctx context.Context, i interaction, f formMark) (seen, error) {
	if err := b.here(ctx, i.origin()); err != nil {
		return seen{mark: f.mark}, err
	}
	s, err := b.seen(ctx, f.mark, "")
	switch {
	case err != nil:
		return s, err
	case s.Request == nil && !aboutMore[i.View.Callback]:
		return s, errForged
	}
	return s, nil
}

// aboutMore are the forms that are about something else than one request.
var aboutMore = map[string]bool{actHappened: true, actWithdrawSome: true, actRejectAll: true, actAway: true, actFillIn: true}

// submitEdit hands changed arguments to the desk. They are spliced into the bytes that the form was made from.
func (b *Bot) submitEdit(ctx context.Context, w whisper, s seen, f formMark, i interaction, c desk.Click) error {
	c.Kind = approvers.Modify
	r := *s.Request
	if r.Execution != f.Execution || r.State != approvers.Pending { // the desk says which, and records that somebody tried
		c.Args, c.Digest = r.Args, s.was().Digest
		return b.decide(ctx, w, s, c)
	}
	tool, _ := b.Tools.Tool(r.Tool)
	args, faults := edit(r, tool, i.View)
	if len(faults) > 0 { // the form was good when it was sent; the tool changed since
		for _, fault := range faults {
			d := &approvers.Denied{Code: approvers.DeniedInvalidArgs, Detail: fault}
			b.tell(ctx, w, denied(d, &r, s.Policy))
			break
		}
		return b.Desk.Done(ctx, c.Inbox, "the edited arguments are not valid any more")
	}
	c.Args = args
	c.Whole = s.was().Whole || !hasLocked(tool.Schema, r)
	c.Typed = strings.TrimSpace(i.filled(fieldTyped)) == r.Tool
	return b.decide(ctx, w, s, c)
}

// approveWhole approves from the modal that showed the arguments whole. What it showed is what the named execution holds:
// executions never change, and the desk compares its digest with the request's. That the last page was before whoever approves was recorded when it was.
func (b *Bot) approveWhole(ctx context.Context, d delivered, w whisper, s seen, f formMark, c desk.Click) error {
	var shown approvers.Execution
	err := b.Desk.Store.View(ctx, func(r store.Reader) error {
		var err error
		shown, err = r.Execution(f.Execution)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		err = errMark
	}
	if err != nil {
		return err
	}
	if shown.Digest != c.Digest { // the card that the form was opened from showed others
		c.FirstSeen = time.Time{}
	}
	r := *s.Request
	r.Args = shown.Args
	body, err := wholeView(r)
	if err != nil {
		return err
	}
	c.Kind, c.Digest = approvers.Approve, shown.Digest
	if c.Rendering, c.Whole, err = b.Desk.HasViewed(ctx, r.ID, c.Who.ID, body); err != nil {
		return err
	}
	last := f.Page >= len(argumentPages(r))-1                                 // the form has its button on the last page only
	if !c.Whole && last && d.tries < clickTries && shown.Digest == r.Digest { // it may not be recorded yet that Slack showed it
		return errNotRecorded
	}
	return b.decide(ctx, w, s, c)
}
