package desk_test

import (
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

func TestEscalationAndExpiry(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	o.clock.pass(escalateAfter - time.Microsecond)
	o.due()
	if got := o.request(r.ID); len(got.Joined) != 0 {
		t.Fatalf("escalated too early to %v", got.Joined)
	}
	o.clock.pass(time.Microsecond)
	o.due()
	o.clock.pass(escalateAfter)
	o.due()
	got := o.request(r.ID)
	if len(got.Joined) != 2 || got.State != approvers.Pending || !got.EscalateAt.IsZero() {
		t.Fatalf("joined by %v, %s, next escalation at %s", got.Joined, got.State, got.EscalateAt)
	}
	var told []string
	for _, s := range o.surfacesOf(r.ID) {
		told = append(told, string(s.Kind)+" "+s.To)
	}
	want := []string{"card channel:#support-approvals", "escalation role:team-lead", "escalation role:finance-director"}
	if len(told) != len(want) || told[0] != want[0] || told[1] != want[1] || told[2] != want[2] {
		t.Errorf("shown at %q; want %q", told, want)
	}
	o.clock.pass(expiresAfter - 2*escalateAfter)
	o.due()
	o.wantState(r.ID, approvers.Expired)
	o.wantOutcome(r.Call, approvers.OutcomeExpired)
	o.wantKinds(r.ID, "proposed escalated escalated closed returned")
	for _, kind := range []store.TimerKind{store.TimerExpire, store.TimerEscalate, store.TimerRun} {
		if n := len(o.timers(kind)); n != 0 {
			t.Errorf("%d timers to %s are left", n, kind)
		}
	}
	// Handled once more, a timer changes nothing.
	o.ok(o.Expire(o.ctx(), store.Timer{Kind: store.TimerExpire, Ref: r.ID}))
	o.ok(o.Escalate(o.ctx(), store.Timer{Kind: store.TimerEscalate, Ref: r.ID}))
	o.ok(o.Expire(o.ctx(), store.Timer{Kind: store.TimerExpire, Ref: "req_none"}))
	o.wantKinds(r.ID, "proposed escalated escalated closed returned")
}

// TestTheLeadIsGoneWhenTheEscalationIsDue: then nobody is told, and the request does not go on promising it.
func TestTheLeadIsGoneWhenTheEscalationIsDue(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	o.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Approvers[0].Lead = "" }))
	before := o.only(r.ID, store.SurfaceCard).Want
	o.clock.pass(escalateAfter)
	o.due()
	if got := o.wantState(r.ID, approvers.Pending); !got.EscalateAt.IsZero() || len(got.Joined) != 0 {
		t.Errorf("escalates at %s, joined by %v", got.EscalateAt, got.Joined)
	}
	if o.only(r.ID, store.SurfaceCard).Want == before {
		t.Error("the card is not shown again")
	}
}

func TestALeadMayDecideAfterTheEscalation(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	_, err := o.Decide(o.ctx(), o.clickOn(lead, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedNotMember)
	o.clock.pass(escalateAfter)
	o.due()
	if out := o.approve(lead, r.ID); out.State != approvers.Approved || out.ClosedRole != "team-lead" {
		t.Errorf("%s by %s", out.State, out.ClosedRole)
	}
	o.run(r.Execution, "ok")
	o.clock.pass(24 * time.Hour)
	o.due()
	o.wantState(r.ID, approvers.Consumed)
	o.wantKinds(r.ID, "proposed denied escalated decided approved executing executed returned")
}

// TestAClickBeforeTheDeadlineIsHandledBeforeTheExpiry, whichever of the two falls to be handled first.
func TestAClickBeforeTheDeadlineIsHandledBeforeTheExpiry(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	o.clock.pass(expiresAfter)
	c := o.clickOn(lead, approvers.Approve, r.ID) // received at the deadline
	o.clock.pass(time.Second)
	late := o.clickOn(lead, approvers.Reject, r.ID)
	expire := o.timers(store.TimerExpire)[r.ID]
	waits := []time.Duration{}
	for n := range 12 {
		o.ok(o.Expire(o.ctx(), expire))
		o.wantState(r.ID, approvers.Pending)
		if expire = o.timers(store.TimerExpire)[r.ID]; expire.Tries != n+1 {
			t.Errorf("try %d counts as %d", n+1, expire.Tries)
		}
		wait := expire.Due.Sub(o.clock.Now())
		if wait <= 0 {
			t.Fatal("the expiry is due again at once")
		}
		waits = append(waits, wait)
		o.clock.pass(wait)
	}
	if first, last := waits[0], waits[len(waits)-1]; first > 100*time.Millisecond || last < time.Second || last > time.Minute {
		t.Errorf("it looks again after %s; want soon at first, and rarely when the click stays unhandled", waits)
	}
	_, err := o.Decide(o.ctx(), late)
	wantDenied(t, err, approvers.DeniedLate)
	out, err := o.Decide(o.ctx(), c)
	o.ok(err)
	if out.State != approvers.Approved {
		t.Errorf("%s", out.State)
	}
	o.ok(o.Expire(o.ctx(), store.Timer{Kind: store.TimerExpire, Ref: r.ID})) // a timer that was read before
	o.wantState(r.ID, approvers.Approved)
}

func TestAnUnhandledDeliveryAfterTheDeadlineDelaysNothing(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	o.clock.pass(expiresAfter + time.Microsecond)
	c := o.clickOn(lead, approvers.Approve, r.ID)
	o.due()
	o.wantState(r.ID, approvers.Expired)
	_, err := o.Decide(o.ctx(), c)
	wantDenied(t, err, approvers.DeniedResolved)
}

// TestAnUnhandledMessageDelaysNoExpiry: what decides nothing, such as a message that can't be read while Slack is down, keeps no request from its end.
func TestAnUnhandledMessageDelaysNoExpiry(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	_, err := o.Receive(o.ctx(), store.Inbox{ID: "Ev-9", Kind: store.InboxEvent, ReceivedAt: o.clock.Now(), Payload: []byte("{}")}, "")
	o.ok(err)
	o.clock.pass(expiresAfter)
	o.ok(o.Expire(o.ctx(), o.timers(store.TimerExpire)[r.ID]))
	o.wantState(r.ID, approvers.Expired)
	o.ok(o.Done(o.ctx(), "Ev-9", ""))
}

// TestAnEditMovesTheDeadline: the timer of the first deadline finds nothing to do and stands at the new one.
func TestAnEditMovesTheDeadline(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	o.clock.pass(20 * time.Minute)
	_, err := o.Decide(o.ctx(), o.edit(lead, r.ID, `{"amount":900}`))
	o.ok(err)
	o.clock.pass(10 * time.Minute)
	o.ok(o.Expire(o.ctx(), store.Timer{Kind: store.TimerExpire, Ref: r.ID}))
	o.wantState(r.ID, approvers.Pending)
	o.clock.pass(20 * time.Minute)
	o.due()
	o.wantState(r.ID, approvers.Expired)
}

func TestMovesWithoutAReceiptTimeCountFromNow(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`issue_refund {"amount":1}`)
	o.clock.pass(expiresAfter + time.Second)
	c := o.clickOn(lead, approvers.Approve, r.ID)
	c.At = time.Time{}
	_, err := o.Decide(o.ctx(), c)
	wantDenied(t, err, approvers.DeniedLate)
	o.due()
}

// claimed has alice ask for a refund that the lead approves, and claims it.
func (o *office) claimed() approvers.Request {
	o.t.Helper()
	r := o.ask(`issue_refund {"amount":1}`)
	o.approve(lead, r.ID)
	_, run, err := o.Claim(o.ctx(), r.Execution)
	o.ok(err)
	if !run {
		o.t.Fatal("not to be run")
	}
	return o.request(r.ID)
}

func TestAfterACrashTheOutcomeIsUnknown(t *testing.T) {
	o := newOffice(t)
	r := o.claimed()
	o.reopen()
	if due := o.timers(store.TimerRun)[r.Execution].Due; due.After(o.clock.Now()) {
		t.Errorf("the run of the earlier process is looked into at %s only; now is %s", due, o.clock.Now())
	}
	o.notRun(r.Execution)
	if e := o.execution(r.Execution); e.State != approvers.ExecutionUnknown {
		t.Fatalf("%s; it must not be run again blindly", e.State)
	}
	var to []string
	for _, s := range o.surfacesOf(r.Execution) {
		if s.Kind != store.SurfaceUnknown {
			t.Errorf("shown as %s", s.Kind)
		}
		to = append(to, s.To)
	}
	if len(to) != 2 || to[0] != "conversation:"+r.Conversation || to[1] != "role:team-lead" {
		t.Errorf("asked at %v; want the thread and whoever approved", to)
	}
	o.wantOutcome(r.Call, "")
	o.notRun(r.Execution)
}

// The operator without a bot finds what the bot was running when it stopped, and can report on it.
func TestCutRunsAreLostWithoutABot(t *testing.T) {
	o := newOffice(t)
	o.ok(o.LoseCut(o.ctx()))
	cut := o.ask(`issue_refund {"amount":1}`)
	report := func() error {
		return o.Report(o.ctx(), desk.Click{Who: anna, Execution: cut.Execution, Reason: "seen at the bank"}, desk.Happened)
	}
	wantDenied(t, report(), approvers.DeniedUnfinished)
	o.approve(lead, cut.ID)
	_, _, err := o.Claim(o.ctx(), cut.Execution)
	o.ok(err)
	wantDenied(t, report(), approvers.DeniedUnfinished)
	o.ok(o.LoseCut(o.ctx()))
	o.wantKinds(cut.ID, "proposed denied decided approved executing denied unknown")
	o.ok(report())
	o.wantOutcome(cut.Call, approvers.OutcomeExecuted)
	before := view(o, func(r store.Reader) (int, error) { rows, err := r.Audit(cut.ID); return len(rows), err })
	o.ok(o.LoseCut(o.ctx()))
	if after := view(o, func(r store.Reader) (int, error) { rows, err := r.Audit(cut.ID); return len(rows), err }); after != before {
		t.Errorf("%d records became %d", before, after)
	}
}

func TestReports(t *testing.T) {
	tests := []struct {
		name    string
		report  desk.Report
		who     approvers.Identity
		reason  string
		state   approvers.ExecutionState
		outcome approvers.Outcome
		told    string
		code    approvers.Code
	}{
		{name: "it happened", report: desk.Happened, who: lead, reason: "refund 77", state: approvers.ExecutionSucceeded, outcome: approvers.OutcomeExecuted, told: "refund 77"},
		{name: "it happened, in no words", report: desk.Happened, who: lead, state: approvers.ExecutionSucceeded, outcome: approvers.OutcomeExecuted, told: "a person reported that it happened"},
		{name: "it did not", report: desk.DidNot, who: alice, state: approvers.ExecutionFailed, outcome: approvers.OutcomeError, told: "a person reported that it did not happen"},
		{name: "leave it", report: desk.Leave, who: lead, state: approvers.ExecutionUnknown, outcome: approvers.OutcomeUnknown, told: "may or may not have happened"},
		{name: "somebody else", report: desk.Happened, who: bob, state: approvers.ExecutionUnknown, code: approvers.DeniedNotMember},
		{name: "a guest", report: desk.Happened, who: approvers.Identity{ID: lead.ID, Guest: true}, state: approvers.ExecutionUnknown, code: approvers.DeniedGuest},
		{name: "nobody", report: desk.Happened, state: approvers.ExecutionUnknown, code: approvers.DeniedUnidentified},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := newOffice(t)
			r := o.claimed()
			o.ok(o.Lose(o.ctx(), r.Execution))
			err := o.Report(o.ctx(), desk.Click{Execution: r.Execution, Who: tt.who, Reason: tt.reason, At: o.clock.Now()}, tt.report)
			if tt.code != "" {
				wantDenied(t, err, tt.code)
				o.wantKinds(r.ID, "proposed decided approved executing unknown denied")
			} else {
				o.ok(err)
				o.wantKinds(r.ID, "proposed decided approved executing unknown reported returned")
				o.wantTurn(r.Turn, approvers.TurnThinking)
			}
			if e := o.execution(r.Execution); e.State != tt.state {
				t.Errorf("%s; want %s", e.State, tt.state)
			}
			if c := o.wantOutcome(r.Call, tt.outcome); !contains(c.Result, tt.told) {
				t.Errorf("the model is told %q; want %q in it", c.Result, tt.told)
			}
			if tt.state == approvers.ExecutionUnknown {
				return
			}
			err = o.Report(o.ctx(), desk.Click{Execution: r.Execution, Who: lead}, desk.DidNot)
			if denied := wantDenied(t, err, approvers.DeniedResolved); denied.By != tt.who.ID {
				t.Errorf("told that %s reported", denied.By)
			}
		})
	}
	o := newOffice(t)
	wantDenied(t, o.Report(o.ctx(), desk.Click{Execution: "exec_none", Who: lead}, desk.Happened), approvers.DeniedNotFound)
}

// TestNobodyReports: after the time of a request the model goes on without knowing; a later report is still taken.
func TestNobodyReports(t *testing.T) {
	o := newOffice(t)
	r := o.claimed()
	o.ok(o.Lose(o.ctx(), r.Execution))
	o.clock.pass(expiresAfter)
	o.due()
	o.wantOutcome(r.Call, approvers.OutcomeUnknown)
	o.answer(r.Turn)
	o.ok(o.Report(o.ctx(), desk.Click{Execution: r.Execution, Who: lead, Reason: "seen"}, desk.Happened))
	if e := o.execution(r.Execution); e.State != approvers.ExecutionSucceeded || e.ReportedBy != lead.ID {
		t.Errorf("%s by %q", e.State, e.ReportedBy)
	}
	o.wantOutcome(r.Call, approvers.OutcomeUnknown) // the model was told once
	o.wantKinds(r.ID, "proposed decided approved executing unknown returned reported")
	o.ok(o.LeaveUnknown(o.ctx(), store.Timer{Kind: store.TimerLeave, Ref: r.Execution}))
	o.ok(o.LeaveUnknown(o.ctx(), store.Timer{Kind: store.TimerLeave, Ref: "exec_none"}))
}

// TestAReportBeforeTheDeadlineIsHandledFirst: the model is told what the person found out, and not that nobody knows.
func TestAReportBeforeTheDeadlineIsHandledFirst(t *testing.T) {
	o := newOffice(t)
	r := o.claimed()
	o.ok(o.Lose(o.ctx(), r.Execution))
	o.clock.pass(expiresAfter)
	c := desk.Click{Inbox: o.id("click"), At: o.clock.Now(), Execution: r.Execution, Who: lead, Reason: "refund 77"}
	o.receive(c)
	o.clock.pass(time.Second)
	for range 2 {
		o.ok(o.LeaveUnknown(o.ctx(), o.timers(store.TimerLeave)[r.Execution]))
		o.wantOutcome(r.Call, "")
		o.clock.pass(time.Second)
	}
	o.ok(o.Report(o.ctx(), c, desk.Happened))
	o.wantOutcome(r.Call, approvers.OutcomeExecuted)
	if len(o.timers(store.TimerLeave)) != 0 {
		t.Error("its timer is left")
	}
}

// TestHarmlessRunsAreTakenUpAgain: read-only and idempotent tools run again after a crash, under the same key, but not for ever.
func TestHarmlessRunsAreTakenUpAgain(t *testing.T) {
	for _, spec := range []string{`search_orders {}`, `update_address {}`} {
		o := newOffice(t)
		turn := o.say(alice, "x").Turn
		c := o.propose(turn, spec)[0]
		_, _, err := o.Claim(o.ctx(), c.Execution)
		o.ok(err)
		tries := 1
		for ; ; tries++ {
			o.reopen()
			e, run, err := o.Claim(o.ctx(), c.Execution)
			o.ok(err)
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
		if e := o.execution(c.Execution); e.State != approvers.ExecutionUnknown {
			t.Errorf("%s after the last try", e.State)
		}
		// Nobody was asked before: the requester is the one who can say.
		wantDenied(t, o.Report(o.ctx(), desk.Click{Execution: c.Execution, Who: lead}, desk.Happened), approvers.DeniedNotRequester)
		o.ok(o.Report(o.ctx(), desk.Click{Execution: c.Execution, Who: alice}, desk.DidNot))
		o.wantOutcome(c.ID, approvers.OutcomeError)
	}
}

// TestRecoverLeavesTheRestAlone: runs that are this process's own, or not begun.
func TestRecoverLeavesTheRestAlone(t *testing.T) {
	o := newOffice(t)
	r := o.claimed()
	before := o.timers(store.TimerRun)[r.Execution].Due
	o.ok(o.Recover(o.ctx()))
	if got := o.timers(store.TimerRun)[r.Execution].Due; !got.Equal(before) || !got.After(o.clock.Now()) {
		t.Errorf("its own run is due at %s; it was %s", got, before)
	}
	o.ok(o.Finish(o.ctx(), r.Execution, true, "ok"))
	o.reopen()
	if n := len(o.timers(store.TimerRun)); n != 0 {
		t.Errorf("%d runs are due after a clean one", n)
	}
}
