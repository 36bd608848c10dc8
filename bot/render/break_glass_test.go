package render

import (
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/store"
)

// broken returns a request with two stages, the second of which an operator skipped.
func broken(state approvers.State) approvers.Request {
	anna := approvers.Operates(approvers.Operator("anna"))
	r := bottest.Request(bottest.RefundArgs)
	r.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
	r = bottest.ApprovedBy(r, "U0002", "Teo", "team-lead", 0)
	r.Decisions = append(r.Decisions, approvers.Decision{
		Kind: approvers.Approve, By: anna.ID, Name: anna.Name, Stage: 1, Digest: r.Digest, At: bottest.Noon.Add(5 * time.Minute), BreakGlass: true,
		Reason: "checkout is down,\nand *nobody* of <!channel> answers",
	})
	r.Stage = 1
	return closedBy(r, state, anna, "")
}

func closedBy(r approvers.Request, state approvers.State, who approvers.Identity, reason string) approvers.Request {
	r = bottest.Closed(r, state, "U0002", "", reason)
	r.ClosedBy, r.ClosedName, r.ClosedRole = who.ID, who.Name, ""
	return r
}

func TestOperatorsMovesOnCards(t *testing.T) {
	anna := approvers.Operates(approvers.Operator("anna"))
	stopped := closedBy(bottest.Request(bottest.RefundArgs), approvers.Rejected, anna, "a flood of refunds")
	stopped.Decisions = []approvers.Decision{{Kind: approvers.Reject, By: anna.ID, Name: anna.Name, Digest: stopped.Digest, Reason: "a flood of refunds", At: stopped.ClosedAt}}
	taken := broken(approvers.Revoked)
	taken.ClosedBy, taken.ClosedName, taken.ClosedRole, taken.Reason = ingrid, "Ingrid", "finance-director", "not that customer"
	for name, s := range map[string]view.Model{
		"card_glass":           bottest.ViewModel(broken(approvers.Approved)),
		"card_overruled":       bottest.ViewModel(stopped),
		"card_glass_revoked":   bottest.ViewModel(taken),
		"notice_glass":         as(copyFor(broken(approvers.Approved), ingrid), store.OutboxNotice, store.NoteBreakGlass, 2),
		"notice_glass_began":   as(copyFor(broken(approvers.Consumed), ingrid), store.OutboxNotice, store.NoteBreakGlass, 2),
		"notice_glass_revoked": as(copyFor(taken, ingrid), store.OutboxNotice, store.NoteBreakGlass, 2),
	} {
		t.Run(name, func(t *testing.T) { bottest.Golden(t, name, drawn(t, s).Messages[0]) })
	}
}
