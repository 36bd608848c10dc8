package render

import (
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/store"
)

// A reminder says what waits, for whom, since when and until when, with a link to the card; later it shows the outcome.
func TestReminders(t *testing.T) {
	since := func(r approvers.Request) approvers.Request {
		r.StageAt, r.Reminded = bottest.Noon.Add(-20*time.Minute), 2
		return r
	}
	staged := since(bottest.Request(bottest.RefundArgs))
	staged.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 1}}
	next := staged
	next.Stage, next.StageAt = 1, bottest.Noon.Add(time.Minute)
	two := since(bottest.Request(bottest.RefundArgs))
	two.Plan.Stages[0].Quorum = 2
	for name, r := range map[string]approvers.Request{
		"reminder":         since(bottest.Request(bottest.RefundArgs)),
		"reminder_decided": bottest.ApprovedBy(two, "U0002", "Teo", "team-lead", 0),
		"reminder_passed":  next,
		"reminder_over":    bottest.Closed(since(bottest.Request(bottest.RefundArgs)), approvers.Rejected, "U0001", "team-lead", "refunded already"),
	} {
		t.Run(name, func(t *testing.T) {
			s := bottest.ViewModel(r)
			s.Message = store.OutboxMessage{ID: "s_2", Kind: store.OutboxNotice, Note: store.NoteReminder, Ref: r.ID, Request: r.ID, To: "user:U0002", CreatedAt: bottest.Noon}
			s.Cards = []store.OutboxMessage{{Kind: store.OutboxCard, To: "channel:#support-approvals", Channel: "C0002", TS: "1772452801.000200"}}
			bottest.Golden(t, name, drawn(t, s).Messages[0])
		})
	}
}

// A notice asking for a decision is not posted after the request has ended. A posted one shows the outcome.
func TestLateNotices(t *testing.T) {
	over := bottest.Closed(bottest.Request(bottest.RefundArgs), approvers.Expired, "", "", "nobody decided in time")
	for _, note := range []store.Note{store.NoteReminder, store.NoteTurn, store.NoteInvited, store.NoteFallen, store.NoteAnswered} {
		for _, ts := range []string{"", "1772452801.000200"} {
			for _, r := range []approvers.Request{bottest.Request(bottest.RefundArgs), over} {
				s := bottest.ViewModel(r)
				s.Message = store.OutboxMessage{ID: "s_2", Kind: store.OutboxNotice, Note: note, Ref: r.ID, Request: r.ID, To: "user:U0002", TS: ts}
				asks := note != store.NoteFallen && note != store.NoteAnswered
				if got, want := drawn(t, s).Expired, asks && ts == "" && r.State == approvers.Expired; got != want {
					t.Errorf("%s of a request that is %s, shown at %q: too late %t, want %t", note, r.State, ts, got, want)
				}
			}
		}
	}
}

// A stand-in is told what they may decide, and when the absence ends.
func TestStandIns(t *testing.T) {
	a := approvers.Absence{
		Who: approvers.Who("T0001", "U0002"), Version: 3, Name: "Teo", From: bottest.Noon, Until: bottest.Noon.Add(72 * time.Hour), Delegate: approvers.Who("T0001", "U0003"),
		Covers: []approvers.Cover{{Role: "support-agent"}, {Role: "team-lead", Lacks: []string{"issue_refund", "cancel_account"}}, {Role: "finance-director", None: true}},
	}
	ended := a.Back(bottest.Noon.Add(-time.Minute))
	replaced := a
	replaced.Version = 4
	bare := a
	bare.Covers = nil
	for name, a := range map[string]approvers.Absence{"stand_in": a, "stand_in_over": ended, "stand_in_replaced": replaced, "stand_in_for_nothing": bare} {
		t.Run(name, func(t *testing.T) {
			s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
			s.Message = store.OutboxMessage{ID: "s_3", Kind: store.OutboxStandIn, Ref: string(a.Who), Step: 3, To: "user:U0003"}
			s.Request, s.Execution, s.Absence = nil, nil, &a
			bottest.Golden(t, name, drawn(t, s).Messages[0])
		})
	}
}
