package render

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/block"
	"countersign/bot/render/form"
	"countersign/bot/render/notice"
	"countersign/bot/render/wording"
	"countersign/store"
)

func TestTurnNotices(t *testing.T) {
	pending := bottest.Request(bottest.RefundArgs)
	base := bottest.ViewModel(pending)
	base.Message.Ref = "turn_1"
	problem, queued, unknown, reported := base, base, base, base

	problem.Message.Kind = store.OutboxProblem
	problem.Turn = approvers.Turn{ID: "turn_1", State: approvers.TurnStopped, Problem: "The model could not be reached for five minutes.", CanRetry: true}
	again := problem
	again.Turn.State = approvers.TurnThinking

	queued.Message.Kind = store.OutboxQueued
	queued.Queued = []store.Message{{Text: "never mind"}}
	queued.Calls = []view.Call{{Call: store.Call{Tool: "issue_refund", Preview: pending.Preview}, Request: &pending}}
	taken := queued
	taken.Queued, taken.Turn.State = nil, approvers.TurnThinking

	reworded := queued
	reworded.Message.Kind = store.OutboxMessageEdit
	reworded.MessageEdit = &store.Message{Author: pending.Facts.Asker, AuthorName: "Sam", MessageEdit: &approvers.MessageEdit{At: bottest.Noon, Edit: "1772452900.000100", Text: "refund ORD-124"}}
	deleted := reworded
	deleted.MessageEdit = &store.Message{Author: pending.Facts.Asker, AuthorName: "Sam", MessageEdit: &approvers.MessageEdit{At: bottest.Noon, Deleted: true}}

	e := *base.Execution
	e.State, e.StartedAt = approvers.ExecutionUnknown, bottest.Noon
	unknown.Message.Kind, unknown.Message.Ref, unknown.Execution = store.OutboxUnknown, e.ID, &e
	settled := e
	settled.State, settled.ReportedBy, settled.FinishedAt, settled.Result = approvers.ExecutionSucceeded, approvers.Who("T0001", "U0002"), bottest.Noon.Add(time.Hour), "RF-9"
	reported.Message.Kind, reported.Execution = store.OutboxUnknown, &settled

	for name, s := range map[string]view.Model{
		"problem": problem, "problem_again": again, "queued": queued, "queued_taken": taken, "unknown": unknown, "unknown_reported": reported,
		"reworded": reworded, "reworded_deleted": deleted,
	} {
		t.Run(name, func(t *testing.T) { bottest.Golden(t, name, drawn(t, s).Messages[0]) })
	}
}

// A reminder says what waits, for whom, since when and until when, and links to the card. After the decision, the
// reminder shows the outcome.
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

// A notice that asks for a decision is not posted after the request has ended. A notice that was posted earlier shows
// the outcome.
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

// The answer to the command and the form say when somebody is away, who stands in, and how the absence can be ended.
func TestAwayMessages(t *testing.T) {
	a := approvers.Absence{
		Who: teo, Version: 3, Name: "Teo", From: bottest.Noon, Until: bottest.Noon.Add(72 * time.Hour), Delegate: approvers.Who("T0001", "U0003"), DelegateName: "Ingrid",
		Covers: []approvers.Cover{{Role: "support-agent"}, {Role: "team-lead", Lacks: []string{"issue_refund", "cancel_account"}}, {Role: "finance-director", None: true}},
	}
	later, alone, bare := a, a, a
	later.From = bottest.Noon.Add(24 * time.Hour)
	alone.Delegate, bare.Covers = "", nil
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]approvers.Absence{"away": a, "away_later": later, "away_alone": alone, "away_for_nothing": bare, "away_not": {}} {
		t.Run(name, func(t *testing.T) {
			m := block.Paragraph(notice.AbsenceOf(a, bottest.Policy(), "/countersign", bottest.Noon, block.Reader{Zone: berlin, Locale: "en-GB"})...).Message()
			withinLimits(t, m)
			bottest.Golden(t, name, m)
		})
	}
	s := form.ClickTarget{Token: testToken(bottest.Request(bottest.RefundArgs)).ButtonToken, Model: view.Model{Now: bottest.Noon}}
	v := form.Away(s)
	viewWithin(t, v)
	bottest.Golden(t, "modal_away", v)
}

// broken returns a request with two stages; an operator skipped the second.
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

func TestOperatorsActionsOnCards(t *testing.T) {
	anna := approvers.Operates(approvers.Operator("anna"))
	stopped := closedBy(bottest.Request(bottest.RefundArgs), approvers.Rejected, anna, "a flood of refunds")
	stopped.Decisions = []approvers.Decision{{Kind: approvers.Reject, By: anna.ID, Name: anna.Name, Digest: stopped.Digest, Reason: "a flood of refunds", At: stopped.ClosedAt}}
	taken := broken(approvers.Revoked)
	taken.ClosedBy, taken.ClosedName, taken.ClosedRole, taken.Reason = ingrid, "Ingrid", "finance-director", "not that customer"
	for name, s := range map[string]view.Model{
		"card_break_glass":           bottest.ViewModel(broken(approvers.Approved)),
		"card_overruled":             bottest.ViewModel(stopped),
		"card_break_glass_revoked":   bottest.ViewModel(taken),
		"notice_break_glass":         as(copyFor(broken(approvers.Approved), ingrid), store.OutboxNotice, store.NoteBreakGlass, 2),
		"notice_break_glass_began":   as(copyFor(broken(approvers.Consumed), ingrid), store.OutboxNotice, store.NoteBreakGlass, 2),
		"notice_break_glass_revoked": as(copyFor(taken, ingrid), store.OutboxNotice, store.NoteBreakGlass, 2),
	} {
		t.Run(name, func(t *testing.T) { bottest.Golden(t, name, drawn(t, s).Messages[0]) })
	}
}

// Old requests have no stored stage time. Such a request has waited since its creation, and not since the zero time.
func TestAReminderOfAnOldRequest(t *testing.T) {
	r := bottest.Request(bottest.RefundArgs)
	r.StageAt = time.Time{}
	s := bottest.ViewModel(r)
	s.Message.Kind, s.Message.Note, s.Message.To, s.Message.CreatedAt = store.OutboxNotice, store.NoteReminder, "user:U0002", bottest.Noon
	d, _, err := Draw(wording.View{Model: s})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := d.Messages[0].Text, "waits since <!date^"+strconv.FormatInt(r.CreatedAt.Unix(), 10)+"^"; !strings.Contains(got, want) {
		t.Errorf("%s\nlacks %s", got, want)
	}
}
