package bot

import (
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// broken is a request with two stages, of which an operator passed over the second.
func broken(state approvers.State) approvers.Request {
	anna := approvers.Operates(approvers.Operator("anna"))
	r := testRequest(refundArgs)
	r.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
	r = approvedBy(r, "U0002", "Teo", "team-lead", 0)
	r.Decisions = append(r.Decisions, approvers.Decision{
		Kind: approvers.Approve, By: anna.ID, Name: anna.Name, Stage: 1, Digest: r.Digest, At: noon.Add(5 * time.Minute), BreakGlass: true,
		Reason: "checkout is down,\nand *nobody* of <!channel> answers",
	})
	r.Stage = 1
	return closedBy(r, state, anna, "")
}

func closedBy(r approvers.Request, state approvers.State, who approvers.Identity, reason string) approvers.Request {
	r = closed(r, state, "U0002", "", reason)
	r.ClosedBy, r.ClosedName, r.ClosedRole = who.ID, who.Name, ""
	return r
}

func TestOperatorsMovesOnCards(t *testing.T) {
	anna := approvers.Operates(approvers.Operator("anna"))
	stopped := closedBy(testRequest(refundArgs), approvers.Rejected, anna, "a flood of refunds")
	stopped.Decisions = []approvers.Decision{{Kind: approvers.Reject, By: anna.ID, Name: anna.Name, Digest: stopped.Digest, Reason: "a flood of refunds", At: stopped.ClosedAt}}
	taken := broken(approvers.Revoked)
	taken.ClosedBy, taken.ClosedName, taken.ClosedRole, taken.Reason = ingrid, "Ingrid", "finance-director", "not that customer"
	for name, s := range map[string]desk.Sight{
		"card_glass":           sightOf(broken(approvers.Approved)),
		"card_overruled":       sightOf(stopped),
		"card_glass_revoked":   sightOf(taken),
		"notice_glass":         as(copyFor(broken(approvers.Approved), ingrid), store.SurfaceNotice, store.NoteGlass, 2),
		"notice_glass_began":   as(copyFor(broken(approvers.Consumed), ingrid), store.SurfaceNotice, store.NoteGlass, 2),
		"notice_glass_revoked": as(copyFor(taken, ingrid), store.SurfaceNotice, store.NoteGlass, 2),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, drawn(t, s).messages[0]) })
	}
}
