package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/directory"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/internal/visible"
	"countersign/store"
)

// objection is the reason why a submitted form is not accepted. objection has errors for the form's fields, or another
// form that replaces the submitted form.
type objection struct {
	faults  map[string]string
	instead *slack.ModalViewRequest
}

// answer returns the acknowledgement that keeps the form open, or nil if there is no objection.
func (o objection) answer() any {
	switch {
	case len(o.faults) > 0:
		return map[string]any{"response_action": "errors", "errors": form.FitErrors(o.faults)}
	case o.instead != nil:
		return map[string]any{"response_action": "update", "view": o.instead}
	}
	return nil
}

// submissionHandler handles submitted forms. examine runs while Slack waits, and returns the errors that the form
// shows. handle runs later, validates the form again, and passes the person's action to the workflow.
type submissionHandler struct {
	*core
	identities *Identities
	ephemeral  *ephemeral
	targets    *targets
	outcomes   *outcomes
	absence    *absenceHandler
	grant      *grantHandler
}

// examine validates a submitted form as far as possible while Slack waits for the acknowledgement.
func (b *submissionHandler) examine(ctx context.Context, i interaction) (objection, error) {
	f, err := control.ParseFormToken(i.View.Metadata)
	if errors.Is(err, control.ErrButtonToken) {
		return objection{}, nil // not a valid form: the handler sets the delivery aside
	}
	if err != nil {
		return objection{}, err
	}
	if missing := form.WordsNeeded[i.View.Callback]; missing != "" && i.written(control.FieldReason) == "" {
		return objection{faults: map[string]string{control.FieldReason: missing}}, nil
	}
	var faults map[string]string
	switch i.View.Callback {
	case control.ActAway:
		return objection{faults: b.absence.examine(ctx, i)}, nil
	case control.ActFillIn:
		faults, err = b.examineElicitation(ctx, i, f)
		return objection{faults: faults}, err
	}
	r, err := b.Views.Request(ctx, f.Ref)
	if errors.Is(err, store.ErrNotFound) || err == nil && (r.State != approvers.Pending || r.Execution != f.Execution) {
		return objection{}, nil // not about a pending request with these arguments: the handler checks the form
	}
	if err != nil {
		return objection{}, err
	}
	switch i.View.Callback {
	case control.ActModify:
		return b.examineEdit(ctx, r, f, i), nil
	case control.ActTyped, control.ActArguments:
		if !r.WantsTyping() {
			break
		}
		if fault := form.TypedError(r, i.filled(control.FieldTyped)); fault != "" {
			faults = map[string]string{control.FieldTyped: fault}
		}
	case control.ActHandOn:
		faults = b.examineColleague(ctx, r, i)
	case control.ActAllow:
		faults = b.examineAllowance(ctx, r, i)
	}
	return objection{faults: faults}, nil
}

// examineEdit validates changed arguments. If the effect of the changed arguments differs from the effect that the
// pressed button names, the form is shown again. The new button of the form names the actual effect. The form is also
// shown again if it has not yet warned of invisible characters in these arguments. If Slack does not identify the
// person in time, or the clicked version can't be read, this form names the same effect as before.
func (b *submissionHandler) examineEdit(ctx context.Context, r approvers.Request, f control.FormToken, i interaction) objection {
	tool, _ := workflow.ToolOf(b.Tools, r.Tool, r.ToolHash)
	args, faults := form.EditArgs(r, tool, i.View.answers)
	if typed := strings.TrimSpace(i.filled(control.FieldTyped)); typed != "" && typed != r.Tool {
		faults = map[string]string{control.FieldTyped: "This must be exactly " + block.Visible(r.Tool) + ", or empty."}
	}
	if len(faults) > 0 || i.View.Submit.Text == "" {
		return objection{faults: faults}
	}
	who, known := b.identities.identifyQuickly(ctx, i.User.ID, r)
	target, err := b.targets.find(ctx, f.ButtonToken, "")
	if denialCode(err) != "" && !errors.Is(err, errNotRecorded) || err == nil && target.Request == nil {
		return objection{} // the handler refuses the form
	}
	effect := form.ShownEffect(i.View.Submit.Text, i.View.answers)
	if known && err == nil {
		effect = target.EditEffect(who, tool, args, false)
	}
	if effect.Submit == i.View.Submit.Text && !lacksWarning(r, tool, args, i) {
		return objection{}
	}
	v := form.Modify(r, f, tool, effect, i.View.answers)
	if raw, err := json.Marshal(v); err != nil || len(raw) > maxFormAnswer {
		return objection{}
	}
	return objection{instead: &v}
}

// lacksWarning reports whether changed arguments have invisible characters of which the form has not warned.
func lacksWarning(r approvers.Request, tool workflow.Tool, args []byte, i interaction) bool {
	return form.WarnsOfUnseen(r, tool, i.View.answers) && control.WarnedDigest(i.View.blockIDs()) != approvers.Digest(r.Execution, r.Tool, r.ToolHash, args)
}

// maxFormAnswer is the maximum size in bytes of a form in an acknowledgement. On a socket Slack silently drops
// acknowledgements of 20 KB or more.
const maxFormAnswer = 16 << 10

// filled returns the value of a field.
func (i interaction) filled(block string) string {
	text, _ := i.View.answers(block)
	return text
}

// written returns the text in a field without surrounding space. A text without a visible character counts as empty.
func (i interaction) written(block string) string {
	text := strings.TrimSpace(i.filled(block))
	if visible.Blank(text) {
		return ""
	}
	return text
}

// handle handles a submitted form.
func (b *submissionHandler) handle(ctx context.Context, d delivered, i interaction) error {
	to := ephemeralReply{user: i.User.ID}
	f, err := control.ParseFormToken(i.View.Metadata)
	if err != nil {
		return b.outcomes.refuseTarget(ctx, d, to, workflow.Click{}, form.ClickTarget{}, err)
	}
	target, err := b.targets.ofForm(ctx, i, f)
	if err != nil {
		return b.outcomes.refuseTarget(ctx, d, to, workflow.Click{}, target, err)
	}
	to.channel = target.Message.Channel
	if strings.HasPrefix(target.Message.To, store.ToConversation) {
		to.thread = target.Conversation.Thread
	}
	who, err := b.identities.authority(ctx, to.user, target, i.View.Callback)
	if err != nil {
		return b.outcomes.unknownClicker(ctx, d, to, workflow.Click{Channel: target.Message.Channel, MessageTS: target.Message.TS}, target, err)
	}
	click := workflow.Click{
		Inbox: d.id, At: d.at, Who: who, User: to.user, Request: f.Ref, Channel: target.Message.Channel, MessageTS: target.Message.TS, Reason: i.written(control.FieldReason),
	}
	seen(&click, target)
	switch i.View.Callback {
	case control.ActTyped:
		click.Kind, click.Typed = approvers.Approve, form.TypedError(*target.Request, i.filled(control.FieldTyped)) == ""
	case control.ActReject:
		click.Kind = approvers.Reject
	case control.ActWithdrawSome:
		click.Request, click.Turn = "", f.Ref
		return b.withdrawSome(ctx, to, target, i, click)
	case control.ActRejectAll:
		click.Kind = approvers.Reject
		return b.outcomes.decideAll(ctx, to, target, click)
	case control.ActModify:
		return b.submitEdit(ctx, to, target, f, i, click)
	case control.ActArguments:
		click.Typed = form.TypedError(*target.Request, i.filled(control.FieldTyped)) == ""
		return b.approveWhole(ctx, d, to, target, f, click)
	case control.ActAsk, control.ActAnswer, control.ActComment, control.ActHandOn, control.ActTakeBack:
		return b.submitPeople(ctx, d, to, target, i, click)
	case control.ActAllow:
		return b.grant.submitted(ctx, to, target, i, click)
	case control.ActAway:
		return b.absence.submitted(ctx, to, i, click)
	case control.ActFillIn:
		if target.Elicitation == nil {
			return b.outcomes.refuseTarget(ctx, d, to, click, target, errForged)
		}
		return b.submitElicitation(ctx, to, target, i, click)
	case control.ActHappened:
		click.Request, click.Execution, click.Reason = "", f.Ref, i.written(control.FieldResult)
		return b.outcomes.answerReport(ctx, to, target, b.Runs.Report(ctx, click, workflow.Happened))
	default:
		return b.outcomes.refuseTarget(ctx, d, to, click, target, fmt.Errorf("%w: no form is named %q", errForged, i.View.Callback))
	}
	return b.outcomes.decide(ctx, to, target, click)
}

// submitEdit passes edited arguments to the workflow. The changes are inserted into the bytes of the arguments from
// which the form was made. If the form could not warn of invisible characters in time, the change is not an approval.
// If the pressed button says that the change is an approval, but the change does not count as one, the person is told
// why.
func (b *submissionHandler) submitEdit(ctx context.Context, to ephemeralReply, target form.ClickTarget, f control.FormToken, i interaction, click workflow.Click) error {
	click.Kind = approvers.Modify
	r := *target.Request
	if r.Execution != f.Execution || r.State != approvers.Pending { // the workflow reports the reason, and records the attempt
		click.Args, click.Digest = r.Args, target.ShownRequest().Digest
		return b.outcomes.decide(ctx, to, target, click)
	}
	tool, _ := workflow.ToolOf(b.Tools, r.Tool, r.ToolHash)
	args, faults := form.EditArgs(r, tool, i.View.answers)
	if len(faults) > 0 { // the form was valid on submission, but the tool has changed meanwhile
		for _, fault := range faults {
			d := &approvers.Denied{Code: approvers.DeniedInvalidArgs, Detail: fault}
			b.ephemeral.reply(ctx, to, form.DeniedText(d, &r, target.Policy))
			break
		}
		return b.Intake.Done(ctx, click.Inbox, "the edited arguments are not valid any more")
	}
	unwarned := lacksWarning(r, tool, args, i)
	click.Args = args
	click.Whole = !form.SendsOnly(i.View.Submit.Text) && target.SeenWhole(tool) && !unwarned
	click.Typed = strings.TrimSpace(i.filled(control.FieldTyped)) == r.Tool
	effect := target.EditEffect(click.Who, tool, args, unwarned)
	after, err := b.Requests.Decide(ctx, click)
	approves := slices.ContainsFunc(after.ValidApprovals(), func(d approvers.Decision) bool { return d.By == click.Who.ID })
	if err == nil && !approves && form.PromisesApproval(i.View.Submit.Text, click.Typed) {
		b.ephemeral.reply(ctx, to, effect.NotApproval()...)
	}
	return b.outcomes.answer(ctx, to, &after, target.Policy, err)
}

// approveWhole approves a call from the modal that showed all arguments. The form token names the execution whose
// arguments the modal showed. The bot can rely on the token, because an execution's arguments never change. The
// workflow also compares the execution's digest with the request's digest. A separate record states that the person saw
// the last page.
func (b *submissionHandler) approveWhole(ctx context.Context, d delivered, to ephemeralReply, target form.ClickTarget, f control.FormToken, click workflow.Click) error {
	shown, err := b.Views.Execution(ctx, f.Execution)
	if errors.Is(err, store.ErrNotFound) {
		err = control.ErrButtonToken
	}
	if err != nil {
		return err
	}
	if shown.Digest != click.Digest { // the card from which the form was opened showed other arguments
		click.FirstSeen = time.Time{}
	}
	r := *target.Request
	r.Args = shown.Args
	body, err := form.WholeView(r)
	if err != nil {
		return err
	}
	click.Kind, click.Digest = approvers.Approve, shown.Digest
	if click.Rendering, click.Whole, err = b.Views.HasViewed(ctx, r.ID, click.Who.ID, body); err != nil {
		return err
	}
	last := f.Page >= len(form.ArgumentPages(r))-1                                // the form has its button only on the last page
	if !click.Whole && last && d.tries < clickTries && shown.Digest == r.Digest { // the record that Slack showed the last page may still be missing
		return errNotRecorded
	}
	return b.outcomes.decide(ctx, to, target, click)
}

// examineColleague returns an error for the field if the chosen colleague can't decide. If a problem is not found in
// time, it is reported after the submission.
func (b *submissionHandler) examineColleague(ctx context.Context, r approvers.Request, i interaction) map[string]string {
	user := i.filled(control.FieldColleague)
	if user == "" {
		return map[string]string{control.FieldColleague: "Choose a colleague."}
	}
	p := b.Views.Policy()
	to, known := b.identities.identifyQuickly(ctx, user, r)
	if !known {
		return nil
	}
	var by approvers.PersonID // matters only if the person chose themselves
	if user == i.User.ID {
		by = to.ID
	}
	if _, d := approvers.HandOnRole(r, p, by, to); d != nil {
		return map[string]string{control.FieldColleague: block.Clip(block.PlainWords(form.DeniedText(d, &r, p)), form.MaxErrorText)}
	}
	return nil
}

// examineAllowance returns the errors of the form for a grant. If Slack does not identify the person in time,
// examineAllowance does not check the person's limits. In this case, the person learns only after the submission that a
// number is too high.
func (b *submissionHandler) examineAllowance(ctx context.Context, r approvers.Request, i interaction) map[string]string {
	in := approvers.DecisionContext{Policy: b.Views.Policy(), Now: b.Now()}
	a, faults := form.ParseAllowance(r, in.Policy, i.View.answers)
	if len(faults) > 0 {
		return faults
	}
	who, known := b.identities.identifyQuickly(ctx, i.User.ID, r)
	if !known {
		return nil
	}
	return form.AllowanceFaults(r, in, who, a)
}

// submitPeople passes a person's action to the workflow, if the action is not a decision.
func (b *submissionHandler) submitPeople(ctx context.Context, d delivered, to ephemeralReply, target form.ClickTarget, i interaction, click workflow.Click) error {
	var r approvers.Request
	var err error
	switch i.View.Callback {
	case control.ActAsk:
		r, err = b.Requests.Say(ctx, click, approvers.Question)
	case control.ActComment:
		r, err = b.Requests.Say(ctx, click, approvers.Comment)
	case control.ActAnswer:
		r, err = b.Requests.Reply(ctx, click, target.Message.Step)
	case control.ActTakeBack:
		r, err = b.Requests.Revoke(ctx, click)
	case control.ActHandOn:
		risk := directory.IdentityRisk(target.Policy, target.Request)
		colleague, unknown := b.users.Clicker(ctx, i.filled(control.FieldColleague), target.Policy, target.Request.Tool, risk, target.Request)
		if unknown != nil {
			return b.outcomes.unknownClicker(ctx, d, to, click, target, unknown)
		}
		r, err = b.Requests.HandOn(ctx, click, colleague)
	default:
		return b.outcomes.refuseTarget(ctx, d, to, click, target, fmt.Errorf("%w: no form about a request is named %q", errForged, i.View.Callback))
	}
	return b.outcomes.answer(ctx, to, &r, target.Policy, err)
}

// withdrawSome withdraws the selected calls.
func (b *submissionHandler) withdrawSome(ctx context.Context, to ephemeralReply, target form.ClickTarget, i interaction, click workflow.Click) error {
	r, err := b.Requests.WithdrawSome(ctx, click, i.chosen(control.FieldCalls))
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	if r.ID == "" {
		b.ephemeral.reply(ctx, to, form.DeniedText(d, nil, target.Policy))
		return nil
	}
	b.ephemeral.reply(ctx, to, form.DeniedText(d, &r, target.Policy))
	return nil
}

// chosen returns the selected values of a list.
func (i interaction) chosen(block string) (values []string) {
	for _, in := range i.View.State.Values[block] {
		for _, o := range in.Many {
			values = append(values, o.Value)
		}
	}
	return values
}

// examineElicitation returns the errors, by field, of a form that a running tool asked the requester to fill in.
func (b *submissionHandler) examineElicitation(ctx context.Context, i interaction, f control.FormToken) (map[string]string, error) {
	q, err := b.Views.Elicitation(ctx, f.Ref)
	if errors.Is(err, store.ErrNotFound) || err == nil && q.State != approvers.ElicitationOpen {
		return nil, nil // the handler tells the person
	}
	if err != nil {
		return nil, err
	}
	_, faults := form.ElicitationValues(q, i.View.answers, b.Admits)
	return faults, nil
}

// submitElicitation passes the values of a form to the waiting run.
func (b *submissionHandler) submitElicitation(ctx context.Context, to ephemeralReply, target form.ClickTarget, i interaction, click workflow.Click) error {
	click.Request, click.Elicitation = "", target.Elicitation.ID
	values, faults := form.ElicitationValues(*target.Elicitation, i.View.answers, b.Admits)
	if len(faults) > 0 { // not a form of the bot: the bot's forms were validated against the same schema on submission
		values = []byte("{}")
	}
	return b.outcomes.answer(ctx, to, nil, target.Policy, b.Questions.Respond(ctx, click, values))
}
