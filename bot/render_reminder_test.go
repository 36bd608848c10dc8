package bot

import (
	"testing"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// A reminder says what waits, for whom, since when and until when, and leads to the card; later, what became of it.
func TestReminders(t *testing.T) {
	since := func(r approvers.Request) approvers.Request {
		r.StageAt, r.Reminded = noon.Add(-20*time.Minute), 2
		return r
	}
	staged := since(testRequest(refundArgs))
	staged.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
	next := staged
	next.Stage, next.StageAt = 1, noon.Add(time.Minute)
	two := since(testRequest(refundArgs))
	two.Plan.Stages[0].Quorum = 2
	for name, r := range map[string]approvers.Request{
		"reminder":         since(testRequest(refundArgs)),
		"reminder_decided": approvedBy(two, "U0002", "Teo", "team-lead", 0),
		"reminder_passed":  next,
		"reminder_over":    closed(since(testRequest(refundArgs)), approvers.Rejected, "U0001", "team-lead", "refunded already"),
	} {
		t.Run(name, func(t *testing.T) {
			s := sightOf(r)
			s.Surface = store.Surface{ID: "s_2", Kind: store.SurfaceNotice, Note: store.NoteReminder, Ref: r.ID, Request: r.ID, To: "user:U0002", CreatedAt: noon}
			s.Cards = []store.Surface{{Kind: store.SurfaceCard, To: "channel:#support-approvals", Channel: "C0002", TS: "1772452801.000200"}}
			golden(t, name, drawn(t, s).messages[0])
		})
	}
}

// What asks somebody to decide, and was not shown until it was too late, is not shown any more. What was shown says what became of it.
func TestLateNotices(t *testing.T) {
	over := closed(testRequest(refundArgs), approvers.Expired, "", "", "nobody decided in time")
	for _, note := range []store.Note{store.NoteReminder, store.NoteTurn, store.NoteInvited, store.NoteFallen, store.NoteAnswered} {
		for _, ts := range []string{"", "1772452801.000200"} {
			for _, r := range []approvers.Request{testRequest(refundArgs), over} {
				s := sightOf(r)
				s.Surface = store.Surface{ID: "s_2", Kind: store.SurfaceNotice, Note: note, Ref: r.ID, Request: r.ID, To: "user:U0002", TS: ts}
				asks := note != store.NoteFallen && note != store.NoteAnswered
				if got, want := drawn(t, s).over, asks && ts == "" && r.State == approvers.Expired; got != want {
					t.Errorf("%s of a request that is %s, shown at %q: too late %t, want %t", note, r.State, ts, got, want)
				}
			}
		}
	}
}

// Whoever stands in is told what they may and may not decide, and when it is over.
func TestStandIns(t *testing.T) {
	a := approvers.Absence{
		Who: approvers.Who("T0001", "U0002"), Version: 3, Name: "Teo", From: noon, Until: noon.Add(72 * time.Hour), Delegate: approvers.Who("T0001", "U0003"),
		Covers: []approvers.Cover{{Role: "support-agent"}, {Role: "team-lead", Lacks: []string{"issue_refund", "cancel_account"}}, {Role: "finance-director", None: true}},
	}
	ended := a.Back(noon.Add(-time.Minute))
	replaced := a
	replaced.Version = 4
	bare := a
	bare.Covers = nil
	for name, a := range map[string]approvers.Absence{"stand_in": a, "stand_in_over": ended, "stand_in_replaced": replaced, "stand_in_for_nothing": bare} {
		t.Run(name, func(t *testing.T) {
			s := sightOf(testRequest(refundArgs))
			s.Surface = store.Surface{ID: "s_3", Kind: store.SurfaceStandIn, Ref: string(a.Who), Step: 3, To: "user:U0003"}
			s.Request, s.Execution, s.Absence = nil, nil, &a
			golden(t, name, drawn(t, s).messages[0])
		})
	}
}
