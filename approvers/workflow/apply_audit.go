package workflow

import (
	"strconv"

	"countersign/approvers"
)

// auditEvents records events in the request's audit chain. The order is: escalations, reminders and similar events
// (auditAct), a changed plan (auditPlan), the request's new stage or state (auditTransition). auditEvents does not
// record decisions and remarks. The use case records decisions and remarks before it calls apply, because only the use
// case has the rendering that the person saw.
func (t recordsTx) auditEvents(r approvers.Request, events []approvers.Event) error {
	for _, record := range []func(approvers.Request, approvers.Event) error{t.auditAct, t.auditPlan, t.auditTransition} {
		for _, e := range events {
			if err := record(r, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// auditAct records escalations, reminders, added people, edited messages and tool previews.
func (t recordsTx) auditAct(r approvers.Request, e approvers.Event) error {
	switch e := e.(type) {
	case approvers.Escalated:
		facts := map[string]string{"role": e.Lead.Name, "digest": r.Digest}
		if e.Again {
			facts["again"] = strconv.Itoa(r.Rounds)
		}
		if call, ok := approvers.CallOf(r, e.Lead.Name); ok && !e.Again {
			facts["why"] = "nobody"
			if call.TooFew {
				facts["why"] = "too_few"
			}
			if len(call.Deactivated) > 0 {
				facts["why"], facts["person"] = "deactivated", string(call.Deactivated[0].Who)
			}
		}
		return t.audit(r.ID, approvers.AuditEscalated, "", facts, nil)
	case approvers.ReminderDue:
		return t.auditReminded(r, len(e.People))
	case approvers.PersonInvited:
		return t.auditInvited(r, e.Invite)
	case approvers.SourceEdited:
		return t.auditMessageEdit(r, r.Facts.MessageTS, r.Facts.MessageEdit, "")
	case approvers.AnswerEdited:
		answer := r.Remark(e.Index)
		return t.auditMessageEdit(r, answer.MessageTS, answer.MessageEdit, strconv.Itoa(e.Index+1))
	case approvers.PreviewMade:
		return t.auditToolPreview(r, string(r.ToolPreview.State), []byte(r.ToolPreview.Text+r.ToolPreview.Fault))
	}
	return nil
}

// auditPlan records the requirements of a request's new plan, if a changed policy has changed the plan.
func (t recordsTx) auditPlan(r approvers.Request, e approvers.Event) error {
	changed, ok := e.(approvers.PlanChanged)
	if !ok {
		return nil
	}
	facts := map[string]string{
		"policy": r.Plan.PolicyHash, "risk": r.Plan.Risk.String(), "stages": r.Plan.StageFacts(), "digest": r.Digest,
		approvers.FactRestarted: strconv.FormatBool(changed.Restarted),
	}
	r.Plan.NoteRules(facts)
	return t.audit(r.ID, approvers.AuditReplanned, "", facts, nil)
}

// auditTransition records the request's new stage or state. auditTransition records nothing for a new request, and for
// a request whose run starts. The use cases record these two transitions themselves, as "proposed" and "executing".
func (t recordsTx) auditTransition(r approvers.Request, e approvers.Event) error {
	facts := map[string]string{"tool": r.Tool, "state": string(r.State), "digest": r.Digest}
	switch e := e.(type) {
	case approvers.RequestReopened:
		facts["risk"], facts[approvers.FactStages] = r.Plan.Risk.String(), r.Plan.StageFacts()
		facts["why"] = "the policy became stricter after the approval"
		r.Plan.NoteRules(facts)
		return t.audit(r.ID, approvers.AuditReopened, "", facts, nil)
	case approvers.StageStarted:
		if !e.Advances() {
			return nil
		}
		facts["stage"] = strconv.Itoa(e.Stage + 1)
		facts["risk"], facts[approvers.FactStages] = r.Plan.Risk.String(), r.Plan.StageFacts()
		r.Plan.NoteRules(facts)
		return t.audit(r.ID, approvers.AuditAdvanced, "", facts, nil)
	case approvers.RequestApproved:
		facts[approvers.FactStages], facts[approvers.FactValidApprovals] = r.Plan.StageFacts(), r.ValidApprovalFacts()
		return t.audit(r.ID, approvers.AuditApproved, "", facts, nil)
	case approvers.RequestClosed:
		if r.Lost {
			facts["why"] = string(approvers.LossRestored)
		}
		return t.audit(r.ID, approvers.AuditClosed, r.ClosedBy, facts, map[string]string{"reason": r.Reason})
	}
	return nil
}

// auditReminded records how many people were reminded.
func (t recordsTx) auditReminded(r approvers.Request, people int) error {
	if people == 0 {
		return nil
	}
	return t.audit(r.ID, approvers.AuditReminded, "", map[string]string{
		"people": strconv.Itoa(people), "reminder": strconv.Itoa(r.Reminded), "round": strconv.Itoa(r.Told), "digest": r.Digest,
	}, nil)
}

// auditInvited records that a person was added to the stage. If the person is a stand-in, the record has no actor,
// because nobody added the stand-in by hand.
func (t recordsTx) auditInvited(r approvers.Request, i approvers.Invite) error {
	facts := map[string]string{"person": string(i.Who), "role": i.Role, "by": string(i.By), "digest": r.Digest}
	actor := i.By
	if i.Away {
		actor, facts["why"] = "", "away"
	}
	return t.audit(r.ID, approvers.AuditInvited, actor, facts, nil)
}

// auditMessageEdit records the edit or deletion of a message that led to a request, or that answered a question. The
// parameter remark is the answer's number among the request's remarks, counted from 1. For the message that led to the
// request, remark is empty.
func (t recordsTx) auditMessageEdit(r approvers.Request, message string, w *approvers.MessageEdit, remark string) error {
	what := map[bool]string{true: "deleted", false: "edited"}[w.Deleted]
	var words any
	if !w.Deleted {
		words = []byte(w.Text)
	}
	facts := map[string]string{"what": what, "message": message, "digest": r.Digest}
	if remark != "" {
		facts["remark"] = remark
	}
	return t.audit(r.ID, approvers.AuditMessageEdited, "", facts, words)
}

// auditToolPreview records that a tool was asked for a preview, or that the preview is ready or has failed.
func (t recordsTx) auditToolPreview(r approvers.Request, state string, body []byte) error {
	facts := map[string]string{"digest": r.Digest, "by": r.ToolPreview.By, "state": state, "try": strconv.Itoa(r.ToolPreview.Tries)}
	if r.ToolPreview.Dry {
		facts["dry_run"] = "true"
	}
	if r.ToolPreview.No != "" {
		facts["says"] = "no"
	}
	if body == nil {
		return t.audit(r.ID, approvers.AuditPreviewed, "", facts, nil)
	}
	return t.audit(r.ID, approvers.AuditPreviewed, "", facts, body)
}
