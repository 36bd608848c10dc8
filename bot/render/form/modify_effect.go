package form

import (
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/bot/slackapi"
)

// EditEffect says what happens to the request if the person sends the changed arguments. The bot finds this out before
// the person sends them. The form's button names the effect.
type EditEffect struct {
	Submit string            // the label of the button
	typed  bool              // the form asks for the tool's name
	Lines  []*block.RichText // who has to agree after the change, and why the change is not an approval
}

// These are the labels of the button that sends changed arguments.
const (
	submitApprove = "Change and approve"
	submitEither  = "Change" // counts as an approval only if the tool's name is typed
	submitOnly    = "Change without approving"
	submitSend    = "Change and send on" // does not name the recipient, because the name is too long for the label
)

// SendsOnly reports whether the label of a form's button says that the change is not an approval.
func SendsOnly(submit string) bool {
	return submit != "" && submit != submitApprove && submit != submitEither
}

// PromisesApproval reports whether the label of a form's button says that the change is an approval. typed says that
// the person has typed the tool's name.
func PromisesApproval(submit string, typed bool) bool {
	return submit == submitApprove || submit == submitEither && typed
}

// ShownEffect returns the effect that the submitted form names. The form is shown again with this effect while Slack
// has not identified the person.
func ShownEffect(submit string, filled answers) EditEffect {
	e := EditEffect{Submit: submit}
	_, e.typed = filled(control.FieldTyped)
	if SendsOnly(submit) {
		e.Lines = []*block.RichText{block.Say("Your change is not an approval.")}
	}
	return e
}

// NotApproval returns the notice that a change did not count as an approval, although the form's button said so.
func (e EditEffect) NotApproval() []*block.RichText {
	if SendsOnly(e.Submit) {
		return e.Lines
	}
	return []*block.RichText{block.Say("Your change is not an approval. The new card says who decides.")}
}

// SeenWhole reports whether a person who changes arguments was shown all arguments, on the clicked message or in the
// form.
func (s ClickTarget) SeenWhole(tool workflow.Tool) bool {
	return s.ShownRequest().Whole || !hasLockedFields(tool.Schema, *s.Request)
}

// EditEffect determines the effect of a change. It makes the change on a copy of the request, as the workflow will make
// it when the form is sent. unwarned says that the arguments have invisible characters, and that the form does not warn
// of them.
func (s ClickTarget) EditEffect(who approvers.Identity, tool workflow.Tool, args []byte, unwarned bool) EditEffect {
	partly := unwarned || !s.SeenWhole(tool)
	alone, approves, denied := s.edited(who, args, partly, false)
	if denied != nil { // the workflow says why when the form is sent
		return EditEffect{Submit: submitEither}
	}
	t := wording.Titles{Policy: s.Policy}
	next := t.StageTitle(alone.CurrentStage())
	switch {
	case approves && alone.State == approvers.Approved:
		return EditEffect{Submit: submitApprove}
	case approves:
		return EditEffect{Submit: submitApprove, Lines: []*block.RichText{block.Say("Then it waits for ").Strong(next).Say(".")}}
	}
	if _, approves, _ := s.edited(who, args, partly, true); approves {
		return EditEffect{Submit: submitEither, typed: true, Lines: []*block.RichText{block.Say("Your change goes to ").Strong(next).Say(", unless you approve it too, below.")}}
	}
	why := block.Say("Your change is not an approval: " + s.whyNoApproval(who, alone, partly, unwarned) + ". ")
	if _, denied := alone.Authority(s.Policy, who); denied == nil {
		return EditEffect{Submit: submitOnly, Lines: []*block.RichText{why.Say("After you submit it, decide on the new card.")}}
	}
	submit := "Send to " + next
	if block.Width(submit) > slackapi.MaxModalTitle {
		submit = submitSend
	}
	return EditEffect{Submit: submit, Lines: []*block.RichText{why.Say("It goes to ").Strong(next).Say(".")}}
}

// edited returns a copy of the request after the change. The second result reports whether the change counts as the
// person's approval.
func (s ClickTarget) edited(who approvers.Identity, args []byte, partly, typed bool) (after approvers.Request, approves bool, denied *approvers.Denied) {
	r := *s.Request
	t, _ := s.Policy.Tool(r.Tool, r.Agent)
	values, err := approvers.StrictArgs(args, t.ReadsNumbers())
	if err != nil {
		return r, false, &approvers.Denied{Code: approvers.DeniedInvalidArgs}
	}
	e := approvers.Edited{Execution: r.Execution, Args: args, Digest: r.Digest, Plan: s.Policy.Plan(r.AsCall(values))}
	if r.ToolPreview != nil { // the changed call needs a new tool preview
		e.ToolPreview = &approvers.ToolPreview{State: approvers.ToolPreviewPending}
	}
	m := approvers.Action{Who: who, At: s.Now, Digest: r.Digest, Partly: partly, Typed: typed}
	after, _, denied = r.Modify(approvers.DecisionContext{Policy: s.Policy, Now: s.Now}, m, e)
	if denied != nil {
		return r, false, denied
	}
	return after, !after.Decisions[len(after.Decisions)-1].Fallen, nil
}

// whyNoApproval returns the reason why a change does not count as the person's approval, as the rest of a sentence.
func (s ClickTarget) whyNoApproval(who approvers.Identity, after approvers.Request, partly, unwarned bool) string {
	t := wording.Titles{Policy: s.Policy}
	role, _ := s.Request.Authority(s.Policy, who)
	_, denied := after.Authority(s.Policy, who)
	switch {
	case unwarned:
		return "it has characters that can't be seen, and the form did not warn you of them"
	case partly:
		return "part of it is too long to show here"
	case denied != nil && role.MaxRisk < after.Plan.Risk:
		return "it is " + after.Plan.Risk.String() + " risk, above what " + t.Title(role.Name) + " may approve"
	case denied != nil:
		return "a changed call starts again with " + t.StageTitle(after.CurrentStage()) + ", and you are not in that role"
	}
	return "it is critical, and its new preview comes first"
}
