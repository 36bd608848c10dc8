package render

import (
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
)

func TestExplanation(t *testing.T) {
	r := bottest.ApprovedBy(bottest.Request(bottest.RefundArgs), "U0002", "Teo", "team-lead", 0)
	r.Plan.Stages = append(r.Plan.Stages, approvers.Stage{Approver: "support-agent", Or: []string{"finance-director"}, Group: "audit", Quorum: 2})
	r.Stage, r.Joined = 1, []string{"finance-director"}
	at := func(i int, kind approvers.AuditKind, who approvers.PersonID, facts map[string]string) approvers.AuditRecord {
		return approvers.AuditRecord{Seq: uint64(i), At: bottest.Noon.Add(time.Duration(i) * time.Minute), Kind: kind, Actor: who, Facts: facts}
	}
	teo := approvers.Who("T0001", "U0002")
	records := []approvers.AuditRecord{
		at(1, approvers.AuditProposed, "", nil), at(2, approvers.AuditShown, "", map[string]string{"to": "role:team-lead"}), at(3, approvers.AuditShown, "", map[string]string{"to": "user:U0002"}),
		at(4, approvers.AuditShown, teo, map[string]string{"surface": "view", "to": "user:U0002"}), at(5, approvers.AuditShown, teo, map[string]string{"surface": control.ActReveal, "to": "user:U0002"}),
		at(6, approvers.AuditDenied, teo, map[string]string{"kind": "approve"}), at(7, approvers.AuditDecided, teo, map[string]string{"kind": "approve", "role": "team-lead"}),
		at(8, approvers.AuditAdvanced, "", map[string]string{"stage": "2", "risk": "high"}), at(9, approvers.AuditEscalated, "", map[string]string{"role": "finance-director"}),
		at(10, approvers.AuditEscalated, "", map[string]string{"again": "1"}), at(11, approvers.AuditReminded, "", map[string]string{"people": "2"}),
		at(12, approvers.AuditInvited, teo, map[string]string{"person": "T0001/U0003", "role": "finance-director"}), at(13, approvers.AuditRemarked, teo, map[string]string{"kind": "question"}),
		at(14, approvers.AuditMessageEdited, "", nil), at(15, approvers.AuditReplanned, "", nil), at(16, approvers.AuditReopened, "", nil), at(17, approvers.AuditClosed, teo, map[string]string{"state": "rejected"}),
		at(18, approvers.AuditExecuting, "", nil), at(19, approvers.AuditExecuted, "", map[string]string{"state": "succeeded"}), at(20, approvers.AuditReturned, "", nil),
	}
	s := bottest.ViewModel(r)
	x := form.Explainer{Policy: s.Policy, Now: s.Now}
	p := new(block.Builder)
	x.Explanation(p, r, records)
	form := form.Modal(form.Titles[control.ExplainShortcut], p)
	viewWithin(t, form)
	bottest.Golden(t, "modal_explain", form)
	bottest.Golden(t, "history_request", block.Paragraph(x.Timeline(records)...).Message())
	withinLimits(t, block.Paragraph(x.Timeline(records)...).Message())
}
