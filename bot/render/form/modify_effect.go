package form

import (
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render/block"
	"countersign/bot/render/wording"
	"countersign/bot/slackapi"
)

// editEffect says what happens to the request if the person sends the changed arguments. The bot finds this out before
// the person sends them. The form's button names the effect.
type editEffect struct {
	submit string            // the label of the button
	typed  bool              // the form asks for the tool's name
	lines  []*block.RichText // who has to agree after the change, and why the change is not an approval
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

// EditSubmit returns the label of the form's button, which names the effect of the changed arguments.
func (s ClickTarget) EditSubmit(who approvers.Identity, tool workflow.Tool, args []byte) string {
	return s.editEffect(who, tool, args).submit
}

// SeenWhole reports whether a person who changes arguments was shown all arguments, on the clicked message or in the
// form.
func (s ClickTarget) SeenWhole(tool workflow.Tool) bool {
	return s.ShownRequest().Whole || !hasLockedFields(tool.Schema, *s.Request)
}

// editEffect determines the effect of a change. It makes the change on a copy of the request, as the workflow will make
// it when the form is sent.
func (s ClickTarget) editEffect(who approvers.Identity, tool workflow.Tool, args []byte) editEffect {
	partly := !s.SeenWhole(tool)
	alone, approves, denied := s.edited(who, args, partly, false)
	if denied != nil { // the workflow says why when the form is sent
		return editEffect{submit: submitEither}
	}
	t := wording.Titles{Policy: s.Policy}
	next := t.StageTitle(alone.CurrentStage())
	switch {
	case approves && alone.State == approvers.Approved:
		return editEffect{submit: submitApprove}
	case approves:
		return editEffect{submit: submitApprove, lines: []*block.RichText{block.Say("Then it waits for ").Strong(next).Say(".")}}
	}
	if _, approves, _ := s.edited(who, args, partly, true); approves {
		return editEffect{submit: submitEither, typed: true, lines: []*block.RichText{block.Say("Your change goes to ").Strong(next).Say(", unless you approve it too, below.")}}
	}
	why := block.Say("Your change is not an approval: " + s.whyNoApproval(who, alone, partly) + ". ")
	if _, denied := alone.Authority(s.Policy, who); denied == nil {
		return editEffect{submit: submitOnly, lines: []*block.RichText{why.Say("Decide on the new card.")}}
	}
	submit := "Send to " + next
	if block.Width(submit) > slackapi.MaxModalTitle {
		submit = submitSend
	}
	return editEffect{submit: submit, lines: []*block.RichText{why.Say("It goes to ").Strong(next).Say(".")}}
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
func (s ClickTarget) whyNoApproval(who approvers.Identity, after approvers.Request, partly bool) string {
	t := wording.Titles{Policy: s.Policy}
	role, _ := s.Request.Authority(s.Policy, who)
	_, denied := after.Authority(s.Policy, who)
	switch {
	case partly:
		return "part of it is too long to show here"
	case denied != nil && role.MaxRisk < after.Plan.Risk:
		return "it is " + after.Plan.Risk.String() + " risk, above what " + t.Title(role.Name) + " may approve"
	case denied != nil:
		return "a changed call starts again with " + t.StageTitle(after.CurrentStage()) + ", and you are not in that role"
	}
	return "it is critical, and its new preview comes first"
}
