package workflow_test

import (
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

func TestEscalationAndExpiry(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	h.clock.pass(escalateAfter - time.Microsecond)
	h.due()
	if got := h.request(r.ID); len(got.Joined) != 0 {
		t.Fatalf("escalated too early to %v", got.Joined)
	}
	h.clock.pass(time.Microsecond)
	h.due()
	h.clock.pass(escalateAfter)
	h.due()
	got := h.request(r.ID)
	if len(got.Joined) != 2 || got.State != approvers.Pending || !got.EscalateAt.IsZero() {
		t.Fatalf("joined by %v, %s, next escalation at %s", got.Joined, got.State, got.EscalateAt)
	}
	var told []string
	for _, s := range h.messagesOf(r.ID) {
		told = append(told, string(s.Kind)+" "+s.To)
	}
	want := []string{"card channel:#support-approvals", "escalation role:team-lead", "escalation role:finance-director"}
	if len(told) != len(want) || told[0] != want[0] || told[1] != want[1] || told[2] != want[2] {
		t.Errorf("shown at %q; want %q", told, want)
	}
	h.clock.pass(expiresAfter - 2*escalateAfter)
	h.due()
	h.wantState(r.ID, approvers.Expired)
	h.wantOutcome(r.Call, approvers.OutcomeExpired)
	h.wantKinds(r.ID, "proposed escalated escalated closed returned")
	for _, kind := range []store.TimerKind{store.TimerExpire, store.TimerEscalate, store.TimerRun} {
		if n := len(h.timers(kind)); n != 0 {
			t.Errorf("%d timers to %s are left", n, kind)
		}
	}
	// If the handler of a timer runs a second time, nothing changes.
	h.ok(h.Requests.Expire(h.ctx(), store.Timer{Kind: store.TimerExpire, Ref: r.ID}))
	h.ok(h.Requests.Escalate(h.ctx(), store.Timer{Kind: store.TimerEscalate, Ref: r.ID}))
	h.ok(h.Requests.Expire(h.ctx(), store.Timer{Kind: store.TimerExpire, Ref: "req_none"}))
	h.wantKinds(r.ID, "proposed escalated escalated closed returned")
}

// TestTheLeadIsGoneWhenTheEscalationIsDue checks an escalation to a lead that a new policy has removed. The bot
// notifies nobody, and the card does not announce the escalation any more.
func TestTheLeadIsGoneWhenTheEscalationIsDue(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	h.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Approvers[0].Lead = "" }))
	before := h.only(r.ID, store.OutboxCard).Revision
	h.clock.pass(escalateAfter)
	h.due()
	if got := h.wantState(r.ID, approvers.Pending); !got.EscalateAt.IsZero() || len(got.Joined) != 0 {
		t.Errorf("escalates at %s, joined by %v", got.EscalateAt, got.Joined)
	}
	if h.only(r.ID, store.OutboxCard).Revision == before {
		t.Error("the card is not shown again")
	}
}

func TestALeadMayDecideAfterTheEscalation(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`apply_discount {}`)
	_, err := h.Requests.Decide(h.ctx(), h.clickOn(lead, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedNotMember)
	h.clock.pass(escalateAfter)
	h.due()
	if out := h.approve(lead, r.ID); out.State != approvers.Approved || out.ClosedRole != "team-lead" {
		t.Errorf("%s by %s", out.State, out.ClosedRole)
	}
	h.run(r.Execution, "ok")
	h.clock.pass(24 * time.Hour)
	h.due()
	h.wantState(r.ID, approvers.Consumed)
	h.wantKinds(r.ID, "proposed denied escalated decided approved executing executed returned")
}

// TestAClickBeforeTheDeadlineIsHandledBeforeTheExpiry checks a click that arrives before the deadline. The click
// counts, even if the timer of the expiry is handled first.
func TestAClickBeforeTheDeadlineIsHandledBeforeTheExpiry(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	h.clock.pass(expiresAfter)
	c := h.clickOn(lead, approvers.Approve, r.ID) // received at the deadline
	h.clock.pass(time.Second)
	late := h.clickOn(lead, approvers.Reject, r.ID)
	expire := h.timers(store.TimerExpire)[r.ID]
	waits := []time.Duration{}
	for n := range 12 {
		h.ok(h.Requests.Expire(h.ctx(), expire))
		h.wantState(r.ID, approvers.Pending)
		if expire = h.timers(store.TimerExpire)[r.ID]; expire.Tries != n+1 {
			t.Errorf("try %d counts as %d", n+1, expire.Tries)
		}
		wait := expire.Due.Sub(h.clock.Now())
		if wait <= 0 {
			t.Fatal("the expiry is due again immediately")
		}
		waits = append(waits, wait)
		h.clock.pass(wait)
	}
	if first, last := waits[0], waits[len(waits)-1]; first > 100*time.Millisecond || last < time.Second || last > time.Minute {
		t.Errorf("the expiry is tried again after %s; want soon at first, and rarely while the click stays unhandled", waits)
	}
	_, err := h.Requests.Decide(h.ctx(), late)
	wantDenied(t, err, approvers.DeniedLate)
	out, err := h.Requests.Decide(h.ctx(), c)
	h.ok(err)
	if out.State != approvers.Approved {
		t.Errorf("%s", out.State)
	}
	h.ok(h.Requests.Expire(h.ctx(), store.Timer{Kind: store.TimerExpire, Ref: r.ID})) // the handler gets the timer as it was before the change
	h.wantState(r.ID, approvers.Approved)
}

func TestAnUnhandledDeliveryAfterTheDeadlineDelaysNothing(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	h.clock.pass(expiresAfter + time.Microsecond)
	c := h.clickOn(lead, approvers.Approve, r.ID)
	h.due()
	h.wantState(r.ID, approvers.Expired)
	_, err := h.Requests.Decide(h.ctx(), c)
	wantDenied(t, err, approvers.DeniedResolved)
}

// TestAnUnhandledMessageDelaysNoExpiry checks that only an unhandled click or form can delay the expiry of a request. A
// message that can't be handled because Slack is down does not delay the expiry.
func TestAnUnhandledMessageDelaysNoExpiry(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	_, err := h.Intake.Receive(h.ctx(), store.Inbox{ID: "Ev-9", Kind: store.InboxEvent, ReceivedAt: h.clock.Now(), Payload: []byte("{}")}, "")
	h.ok(err)
	h.clock.pass(expiresAfter)
	h.ok(h.Requests.Expire(h.ctx(), h.timers(store.TimerExpire)[r.ID]))
	h.wantState(r.ID, approvers.Expired)
	h.ok(h.Intake.Done(h.ctx(), "Ev-9", ""))
}

// TestAnEditMovesTheDeadline checks the timer of a deadline that an edit has moved. At the old deadline, the timer
// changes nothing, and is set to the new deadline.
func TestAnEditMovesTheDeadline(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	h.clock.pass(20 * time.Minute)
	_, err := h.Requests.Decide(h.ctx(), h.edit(lead, r.ID, `{"amount":900}`))
	h.ok(err)
	h.clock.pass(10 * time.Minute)
	h.ok(h.Requests.Expire(h.ctx(), store.Timer{Kind: store.TimerExpire, Ref: r.ID}))
	h.wantState(r.ID, approvers.Pending)
	h.clock.pass(20 * time.Minute)
	h.due()
	h.wantState(r.ID, approvers.Expired)
}

func TestActionsWithoutAReceiptTimeCountFromNow(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	h.clock.pass(expiresAfter + time.Second)
	c := h.clickOn(lead, approvers.Approve, r.ID)
	c.At = time.Time{}
	_, err := h.Requests.Decide(h.ctx(), c)
	wantDenied(t, err, approvers.DeniedLate)
	h.due()
}

// claimed makes alice ask for a refund, makes the lead approve the refund, and claims the run.
func (h *harness) claimed() approvers.Request {
	h.t.Helper()
	r := h.ask(`issue_refund {"amount":1}`)
	h.approve(lead, r.ID)
	_, run, err := h.Runs.Claim(h.ctx(), r.Execution)
	h.ok(err)
	if !run {
		h.t.Fatal("the approved call was not claimed")
	}
	return h.request(r.ID)
}

func TestAfterACrashTheOutcomeIsUnknown(t *testing.T) {
	h := newHarness(t)
	r := h.claimed()
	h.reopen()
	if due := h.timers(store.TimerRun)[r.Execution].Due; due.After(h.clock.Now()) {
		t.Errorf("the run of the earlier process is due only at %s; now is %s", due, h.clock.Now())
	}
	h.notRun(r.Execution)
	if e := h.execution(r.Execution); e.State != approvers.ExecutionUnknown {
		t.Fatalf("%s; it must not be run again blindly", e.State)
	}
	var to []string
	for _, s := range h.messagesOf(r.Execution) {
		if s.Kind != store.OutboxUnknown {
			t.Errorf("shown as %s", s.Kind)
		}
		to = append(to, s.To)
	}
	if len(to) != 2 || to[0] != "conversation:"+r.Conversation || to[1] != "role:team-lead" {
		t.Errorf("asked at %v; want the thread and the approver", to)
	}
	h.wantOutcome(r.Call, "")
	h.notRun(r.Execution)
}

// While no bot runs, the operator can list the runs that were interrupted when the bot stopped, and can report their
// outcomes.
func TestCutRunsAreLostWithoutABot(t *testing.T) {
	h := newHarness(t)
	h.ok(h.Runs.MarkInterrupted(h.ctx()))
	cut := h.ask(`issue_refund {"amount":1}`)
	report := func() error {
		return h.Runs.Report(h.ctx(), workflow.Click{Who: anna, Execution: cut.Execution, Reason: "seen at the bank"}, workflow.Happened)
	}
	wantDenied(t, report(), approvers.DeniedUnfinished)
	h.approve(lead, cut.ID)
	_, _, err := h.Runs.Claim(h.ctx(), cut.Execution)
	h.ok(err)
	wantDenied(t, report(), approvers.DeniedUnfinished)
	h.ok(h.Runs.MarkInterrupted(h.ctx()))
	h.wantKinds(cut.ID, "proposed denied decided approved executing denied unknown")
	h.ok(report())
	h.wantOutcome(cut.Call, approvers.OutcomeExecuted)
	before := readStore(h, func(r store.Reader) (int, error) { rows, err := r.Audit(cut.ID); return len(rows), err })
	h.ok(h.Runs.MarkInterrupted(h.ctx()))
	if after := readStore(h, func(r store.Reader) (int, error) { rows, err := r.Audit(cut.ID); return len(rows), err }); after != before {
		t.Errorf("%d records became %d", before, after)
	}
}

func TestReports(t *testing.T) {
	tests := []struct {
		name    string
		report  workflow.Report
		who     approvers.Identity
		reason  string
		state   approvers.ExecutionState
		outcome approvers.Outcome
		told    string
		code    approvers.Code
	}{
		{name: "it happened", report: workflow.Happened, who: lead, reason: "refund 77", state: approvers.ExecutionSucceeded, outcome: approvers.OutcomeExecuted, told: "refund 77"},
		{name: "it happened, without a comment", report: workflow.Happened, who: lead, state: approvers.ExecutionSucceeded, outcome: approvers.OutcomeExecuted, told: "a person reported that it happened"},
		{name: "it did not", report: workflow.DidNot, who: alice, state: approvers.ExecutionFailed, outcome: approvers.OutcomeError, told: "a person reported that it did not happen"},
		{name: "leave it", report: workflow.Leave, who: lead, state: approvers.ExecutionUnknown, outcome: approvers.OutcomeUnknown, told: "may or may not have happened"},
		{name: "somebody else", report: workflow.Happened, who: bob, state: approvers.ExecutionUnknown, code: approvers.DeniedNotMember},
		{name: "a guest", report: workflow.Happened, who: approvers.Identity{ID: lead.ID, Guest: true}, state: approvers.ExecutionUnknown, code: approvers.DeniedGuest},
		{name: "nobody", report: workflow.Happened, state: approvers.ExecutionUnknown, code: approvers.DeniedUnidentified},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t)
			r := h.claimed()
			h.ok(h.Runs.MarkUnknown(h.ctx(), r.Execution))
			err := h.Runs.Report(h.ctx(), workflow.Click{Execution: r.Execution, Who: tt.who, Reason: tt.reason, At: h.clock.Now()}, tt.report)
			if tt.code != "" {
				wantDenied(t, err, tt.code)
				h.wantKinds(r.ID, "proposed decided approved executing unknown denied")
			} else {
				h.ok(err)
				h.wantKinds(r.ID, "proposed decided approved executing unknown reported returned")
				h.wantTurn(r.Turn, approvers.TurnThinking)
			}
			if e := h.execution(r.Execution); e.State != tt.state {
				t.Errorf("%s; want %s", e.State, tt.state)
			}
			if c := h.wantOutcome(r.Call, tt.outcome); !contains(c.Result, tt.told) {
				t.Errorf("the model is told %q; want %q in it", c.Result, tt.told)
			}
			if tt.state == approvers.ExecutionUnknown {
				return
			}
			err = h.Runs.Report(h.ctx(), workflow.Click{Execution: r.Execution, Who: lead}, workflow.DidNot)
			if denied := wantDenied(t, err, approvers.DeniedResolved); denied.By != tt.who.ID {
				t.Errorf("told that %s reported", denied.By)
			}
		})
	}
	h := newHarness(t)
	wantDenied(t, h.Runs.Report(h.ctx(), workflow.Click{Execution: "exec_none", Who: lead}, workflow.Happened), approvers.DeniedNotFound)
}

// TestNobodyReports checks a run whose outcome nobody reports in time. The model continues without the outcome. A later
// report is accepted.
func TestNobodyReports(t *testing.T) {
	h := newHarness(t)
	r := h.claimed()
	h.ok(h.Runs.MarkUnknown(h.ctx(), r.Execution))
	h.clock.pass(expiresAfter)
	h.due()
	h.wantOutcome(r.Call, approvers.OutcomeUnknown)
	h.answer(r.Turn)
	h.ok(h.Runs.Report(h.ctx(), workflow.Click{Execution: r.Execution, Who: lead, Reason: "seen"}, workflow.Happened))
	if e := h.execution(r.Execution); e.State != approvers.ExecutionSucceeded || e.ReportedBy != lead.ID {
		t.Errorf("%s by %q", e.State, e.ReportedBy)
	}
	h.wantOutcome(r.Call, approvers.OutcomeUnknown) // the model was told once
	h.wantKinds(r.ID, "proposed decided approved executing unknown returned reported")
	h.ok(h.Runs.LeaveUnknown(h.ctx(), store.Timer{Kind: store.TimerLeave, Ref: r.Execution}))
	h.ok(h.Runs.LeaveUnknown(h.ctx(), store.Timer{Kind: store.TimerLeave, Ref: "exec_none"}))
}

// TestAReportBeforeTheDeadlineIsHandledFirst checks a report that arrives before the deadline. The model gets the
// reported outcome, even if the timer of the deadline is handled first.
func TestAReportBeforeTheDeadlineIsHandledFirst(t *testing.T) {
	h := newHarness(t)
	r := h.claimed()
	h.ok(h.Runs.MarkUnknown(h.ctx(), r.Execution))
	h.clock.pass(expiresAfter)
	c := workflow.Click{Inbox: h.id("click"), At: h.clock.Now(), Execution: r.Execution, Who: lead, Reason: "refund 77"}
	h.receive(c)
	h.clock.pass(time.Second)
	for range 2 {
		h.ok(h.Runs.LeaveUnknown(h.ctx(), h.timers(store.TimerLeave)[r.Execution]))
		h.wantOutcome(r.Call, "")
		h.clock.pass(time.Second)
	}
	h.ok(h.Runs.Report(h.ctx(), c, workflow.Happened))
	h.wantOutcome(r.Call, approvers.OutcomeExecuted)
	if len(h.timers(store.TimerLeave)) != 0 {
		t.Error("its timer is left")
	}
}

// TestHarmlessRunsAreTakenUpAgain checks that an interrupted run of a read-only or idempotent tool is repeated after a
// crash. The run is repeated with the same idempotency key, and only a limited number of times.
func TestHarmlessRunsAreTakenUpAgain(t *testing.T) {
	for _, spec := range []string{`search_orders {}`, `update_address {}`} {
		h := newHarness(t)
		turn := h.say(alice, "x").Turn
		c := h.propose(turn, spec)[0]
		_, _, err := h.Runs.Claim(h.ctx(), c.Execution)
		h.ok(err)
		tries := 1
		for ; ; tries++ {
			h.reopen()
			e, run, err := h.Runs.Claim(h.ctx(), c.Execution)
			h.ok(err)
			if !run {
				break
			}
			if e.ID != c.Execution || e.Tries != tries+1 || tries > 10 {
				t.Fatalf("try %d of %s", e.Tries, e.ID)
			}
		}
		if tries != 5 {
			t.Errorf("%s was tried %d times; want 5", spec, tries)
		}
		if e := h.execution(c.Execution); e.State != approvers.ExecutionUnknown {
			t.Errorf("%s after the last try", e.State)
		}
		// The call needed no approval, so only the requester can report the outcome.
		wantDenied(t, h.Runs.Report(h.ctx(), workflow.Click{Execution: c.Execution, Who: lead}, workflow.Happened), approvers.DeniedNotRequester)
		h.ok(h.Runs.Report(h.ctx(), workflow.Click{Execution: c.Execution, Who: alice}, workflow.DidNot))
		h.wantOutcome(c.ID, approvers.OutcomeError)
	}
}

// The people who are asked about a run read why its outcome is unknown. If no process stopped, no try gave a clear
// answer.
func TestTriesUsedUp(t *testing.T) {
	for restarted, want := range map[bool]approvers.Loss{false: approvers.LossUnclear, true: approvers.LossStopped} {
		h := newHarness(t)
		c := h.propose(h.say(alice, "x").Turn, `update_address {}`)[0]
		for run := true; run; {
			var err error
			_, run, err = h.Runs.Claim(h.ctx(), c.Execution)
			h.ok(err)
			if restarted && run {
				h.reopen()
			}
		}
		if e := h.execution(c.Execution); e.State != approvers.ExecutionUnknown || e.Tries != 5 || e.Loss != want {
			t.Errorf("restarted %t: %s after %d tries, because it is %s; want %s", restarted, e.State, e.Tries, e.Loss, want)
		}
	}
}

// TestRecoverShares checks that a run is recovered when this process takes over the run's share. A run is also
// recovered if this process had the share earlier, lost it, and cancelled the run's handler. Runs in other shares do
// not change.
func TestRecoverShares(t *testing.T) {
	h := newHarness(t)
	r := h.claimed()
	timer := h.timers(store.TimerRun)[r.Execution]
	if want := (store.Timer{Affinity: store.ToConversation + r.Conversation}).Share(); timer.Share() != want {
		t.Errorf("the run is in share %d, and its conversation's messages are in share %d", timer.Share(), want)
	}
	own := store.Shares(0).With(timer.Share())
	h.ok(h.Runs.Recover(h.ctx(), store.AllShares&^own))
	if got := h.timers(store.TimerRun)[r.Execution].Due; !got.Equal(timer.Due) {
		t.Errorf("a run of another share is due at %s; it was %s", got, timer.Due)
	}
	h.ok(h.Runs.Recover(h.ctx(), own))
	if got := h.timers(store.TimerRun)[r.Execution].Due; got.After(h.clock.Now()) {
		t.Errorf("an interrupted run is due at %s", got)
	}
	h.notRun(r.Execution)
	if e := h.execution(r.Execution); e.State != approvers.ExecutionUnknown {
		t.Errorf("an interrupted run is %s", e.State)
	}
}

// TestRecoverLeavesTheRestAlone checks that two kinds of runs are not recovered: runs of this process, and runs that
// have ended.
func TestRecoverLeavesTheRestAlone(t *testing.T) {
	h := newHarness(t)
	r := h.claimed()
	before := h.timers(store.TimerRun)[r.Execution].Due
	leave := h.Working(store.TimerRun, r.Execution)
	h.ok(h.Runs.Recover(h.ctx(), store.AllShares))
	leave()
	if got := h.timers(store.TimerRun)[r.Execution].Due; !got.Equal(before) || !got.After(h.clock.Now()) {
		t.Errorf("its own run is due at %s; it was %s", got, before)
	}
	h.ok(h.Runs.Finish(h.ctx(), r.Execution, true, "ok"))
	h.reopen()
	if n := len(h.timers(store.TimerRun)); n != 0 {
		t.Errorf("%d runs are due although the run has ended", n)
	}
}
