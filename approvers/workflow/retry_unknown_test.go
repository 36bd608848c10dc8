package workflow_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// h.lost makes a call run with an unknown outcome, and returns the call.
func (h *harness) lost(spec string, by ...approvers.Identity) store.Call {
	h.t.Helper()
	c := h.propose(h.say(alice, "please").Turn, spec)[0]
	for _, who := range by {
		h.approve(who, c.Request)
	}
	_, run, err := h.Runs.Claim(h.ctx(), c.Execution)
	if h.ok(err); !run {
		h.t.Fatalf("%s does not run", c.Tool)
	}
	h.ok(h.Runs.MarkUnknown(h.ctx(), c.Execution))
	return h.call(c.ID)
}

// h.again makes a person ask for another run of a call.
func (h *harness) again(who approvers.Identity, execution string) error {
	h.t.Helper()
	c := workflow.Click{Inbox: h.id("click"), At: h.clock.Now(), Who: who, Execution: execution, Channel: "C0002"}
	h.receive(c)
	return h.Runs.RetryUnknown(h.ctx(), c)
}

func (h *harness) reports(who approvers.Identity, execution string, what workflow.Report) error {
	h.t.Helper()
	c := workflow.Click{Inbox: h.id("click"), At: h.clock.Now(), Who: who, Execution: execution, Reason: "RF-9", Channel: "C0002"}
	h.receive(c)
	return h.Runs.Report(h.ctx(), c, what)
}

// A person asks for another run of a call with an unknown outcome. The call then gets a new execution with the same
// arguments, and a new request with all stages. The outcome of the earlier run stays unknown. The model gets the new
// outcome, and is told that the tool may have run twice.
func TestAskAgain(t *testing.T) {
	h := newHarness(t)
	c := h.lost(`issue_refund {"amount": 600.0}`, lead, fin1, fin2)
	first := h.request(c.Request)
	h.ok(h.again(fin1, c.Execution))

	after := h.call(c.ID)
	r, e := h.request(after.Request), h.execution(after.Execution)
	if after.Request == c.Request || after.Execution == c.Execution || after.Outcome != "" {
		t.Fatalf("%+v", after)
	}
	if string(r.Args) != `{"amount": 600.0}` || r.Digest == first.Digest || e.After != c.Execution || e.State != approvers.ExecutionNone {
		t.Errorf("asked for %s under %s, after %q, as %s", r.Args, r.Digest, e.After, e.State)
	}
	if r.State != approvers.Pending || r.Stage != 0 || len(r.Decisions) != 0 || len(r.Plan.Stages) != 2 || r.Facts.Asker != alice.ID {
		t.Errorf("the new request: %s at stage %d of %d with %d decisions, for %s", r.State, r.Stage, len(r.Plan.Stages), len(r.Decisions), r.Facts.Asker)
	}
	if a := r.Retry; a == nil || a.Execution != c.Execution || a.By != fin1.ID || a.LostAt.IsZero() {
		t.Errorf("the new request records the earlier run as %+v", a)
	}
	if was := h.execution(c.Execution); was.State != approvers.ExecutionUnknown || h.request(first.ID).State != approvers.Consumed {
		t.Errorf("the earlier run is %s", was.State)
	}
	if _, left := h.timers(store.TimerLeave)[c.Execution]; left {
		t.Error("the model would be told that it is unknown")
	}
	h.only(r.ID, store.OutboxCard)
	h.notRun(after.Execution)

	for _, who := range []approvers.Identity{lead, fin1, fin2} {
		h.approve(who, r.ID)
	}
	h.run(after.Execution, "refunded")
	done := h.wantOutcome(c.ID, approvers.OutcomeExecuted)
	if !contains(done.Result, "refunded") || !contains(done.Result, "it may have happened besides") {
		t.Errorf("the model is told %s", done.Result)
	}
	h.wantKinds(first.ID, "proposed decided advanced decided decided approved executing unknown reported")
	h.wantKinds(r.ID, "proposed decided advanced decided decided approved executing executed returned")
	h.answer(c.Turn)
	h.ok(h.reports(alice, c.Execution, workflow.Happened)) // a late report is still accepted
	if was := h.execution(c.Execution); was.State != approvers.ExecutionSucceeded || h.call(c.ID).Result != done.Result {
		t.Errorf("reported later: %s, and the model's result is %s", was.State, h.call(c.ID).Result)
	}
}

// If a call ran without approval or under a grant, another run of the call needs approval. The approvers are the people
// who would decide the call without a grant.
func TestAskAgainAlwaysAsks(t *testing.T) {
	h := newHarness(t)
	h.tools.change("update_address", func(t *workflow.Tool) { t.Effect = approvers.Unprotected })
	c := h.lost(`update_address {}`)
	if c.Request != "" {
		t.Fatal("people were asked")
	}
	h.ok(h.again(alice, c.Execution))
	r := h.request(h.call(c.ID).Request)
	if r.State != approvers.Pending || r.Plan.Stages[0].Approver != "support-agent" || r.Plan.Why[1] != "it is unknown whether an earlier run happened" {
		t.Errorf("%s for %+v because %q", r.State, r.Plan.Stages, r.Plan.Why)
	}
	h.notRun(h.call(c.ID).Execution)
	h.approve(support, r.ID)
	h.run(h.call(c.ID).Execution, "moved")
	h.answer(c.Turn)
}

// A valid grant does not cover another run of a call with an unknown outcome. The new request counts towards the
// requester's cap.
func TestAskAgainUnderAGrant(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting, func(p *approvers.Policy) { p.Caps.Requester = approvers.Limit{Count: 2, Per: time.Hour} }))
	g := h.granted(2)
	c := h.next(oneRefund)
	_, run, err := h.Runs.Claim(h.ctx(), c.Execution)
	if h.ok(err); !run {
		t.Fatal("it does not run under the grant")
	}
	h.ok(h.Runs.MarkUnknown(h.ctx(), c.Execution))
	h.ok(h.again(lead, c.Execution)) // the person who gave the grant may report the outcome, and so may also request another run
	after := h.call(c.ID)
	r := h.wantState(after.Request, approvers.Pending)
	if e := h.execution(after.Execution); e.Grant != "" || h.grant(g.ID).Left != 1 {
		t.Errorf("under grant %q with %d uses left", e.Grant, h.grant(g.ID).Left)
	}
	if r.StepUp != "" {
		t.Errorf("the second request of an hour: %s", r.StepUp)
	}
	h.approve(lead, r.ID)
	_, _, err = h.Runs.Claim(h.ctx(), after.Execution)
	h.ok(err)
	h.ok(h.Runs.MarkUnknown(h.ctx(), after.Execution))
	h.ok(h.again(lead, after.Execution))
	if third := h.request(h.call(c.ID).Request); third.StepUp == "" {
		t.Error("a third request of an hour asks for no typed value")
	}
	h.reject(lead, h.call(c.ID).Request)
	h.answer(c.Turn)
}

// The test lists cases in which a person can't ask for a call again. The person is told the reason, and nothing
// changes.
func TestAskAgainDenied(t *testing.T) {
	const refund = `issue_refund {"amount":1}`
	guest, stranger := person("U0300"), person("U0400")
	guest.Guest, stranger.Foreign = true, true
	for name, c := range map[string]struct {
		who    approvers.Identity
		before func(*harness, store.Call)
		code   approvers.Code
	}{
		"a colleague":                   {bob, nil, approvers.DeniedNotMember},
		"another role":                  {support, nil, approvers.DeniedNotMember},
		"a lead who was not told of it": {fin1, nil, approvers.DeniedNotMember},
		"a guest":                       {guest, nil, approvers.DeniedGuest},
		"a stranger":                    {stranger, nil, approvers.DeniedForeign},
		"nobody known":                  {approvers.Identity{}, nil, approvers.DeniedUnidentified},
		"the agent was told": {lead, func(h *harness, c store.Call) {
			h.ok(h.reports(lead, c.Execution, workflow.Leave))
		}, approvers.DeniedReturned},
		"the agent was told in time": {lead, func(h *harness, c store.Call) {
			h.clock.pass(expiresAfter)
			h.due()
		}, approvers.DeniedReturned},
		"somebody knows": {lead, func(h *harness, c store.Call) {
			h.ok(h.reports(alice, c.Execution, workflow.DidNot))
		}, approvers.DeniedResolved},
		"it is asked again": {lead, func(h *harness, c store.Call) { h.ok(h.again(alice, c.Execution)) }, approvers.DeniedAgain},
		"it was asked again, and rejected": {lead, func(h *harness, c store.Call) {
			h.ok(h.again(alice, c.Execution))
			h.reject(lead, h.call(c.ID).Request)
		}, approvers.DeniedAgain},
		"the tool is gone": {lead, func(h *harness, c store.Call) {
			h.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Agents[0].Tools = []string{"search_orders"} }))
		}, approvers.DeniedNotAgain},
		"the tool takes other arguments": {lead, func(h *harness, c store.Call) {
			h.tools.change("issue_refund", func(t *workflow.Tool) { t.Check = func(json.RawMessage) error { return errors.New("amount: too odd") } })
		}, approvers.DeniedNotAgain},
		"nobody could allow it": {lead, func(h *harness, c store.Call) {
			h.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 5}} }))
		}, approvers.DeniedNotAgain},
		"it is only observed": {lead, func(h *harness, c store.Call) {
			h.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Tools[3].Mode = approvers.Observe }))
		}, approvers.DeniedNotAgain},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			call := h.lost(refund, lead)
			if c.before != nil {
				c.before(h, call)
			}
			was := h.call(call.ID)
			denied := wantDenied(t, h.again(c.who, call.Execution), c.code)
			if now := h.call(call.ID); now.Execution != was.Execution || now.Request != was.Request || now.Outcome != was.Outcome {
				t.Errorf("%+v became %+v", was, now)
			}
			if c.code == approvers.DeniedNotAgain && denied.Detail == "" || c.code == approvers.DeniedAgain && denied.By != alice.ID {
				t.Errorf("told of %+v", denied)
			}
			if !contains(h.kinds(call.Request), "denied") {
				t.Errorf("the history has %s", h.kinds(call.Request))
			}
		})
	}
	h := newHarness(t)
	wantDenied(t, h.again(lead, "exec_none"), approvers.DeniedNotFound)
}

// If the outcome of a run is unknown, the requesters may ask for another run, and so may leads to whom the request
// escalated. If the outcome of the repeated run is also unknown, the same people may ask for a third run.
func TestAskAgainAndAgain(t *testing.T) {
	h := newHarness(t)
	c := h.propose(h.say(alice, "please").Turn, `issue_refund {"amount":1}`)[0]
	h.clock.pass(escalateAfter)
	h.due()
	h.approve(fin1, c.Request)
	execution := c.Execution
	for i, who := range []approvers.Identity{fin2, alice, lead} {
		_, run, err := h.Runs.Claim(h.ctx(), execution)
		if h.ok(err); !run {
			t.Fatalf("run %d does not begin", i+1)
		}
		h.ok(h.Runs.MarkUnknown(h.ctx(), execution))
		h.ok(h.again(who, execution))
		r := h.request(h.call(c.ID).Request)
		if r.Retry.Execution != execution || r.Retry.By != who.ID {
			t.Errorf("asked again %+v", r.Retry)
		}
		execution = r.Execution
		h.approve(lead, r.ID)
	}
	h.run(execution, "refunded")
	h.answer(c.Turn)
}

// The approvers of the new request see a person's report about the earlier run. If the report says that the call took
// effect, the new request ends, and the model gets the report. So the call does not run a second time.
func TestReportOnTheEarlierRun(t *testing.T) {
	h := newHarness(t)
	c := h.lost(`issue_refund {"amount":1}`, lead)
	h.ok(h.again(lead, c.Execution))
	r := h.request(h.call(c.ID).Request)
	wantDenied(t, h.reports(lead, c.Execution, workflow.Leave), approvers.DeniedNothing)
	h.showAll()
	h.ok(h.reports(alice, c.Execution, workflow.DidNot))
	if a := h.request(r.ID).Retry; a.Found != approvers.ExecutionFailed || a.FoundBy != alice.ID || !contains(h.wanted(r.ID), "card") {
		t.Errorf("the new request says %+v; to be shown: %q", a, h.wanted(r.ID))
	}
	h.wantState(r.ID, approvers.Pending)
	h.approve(lead, r.ID)
	h.run(h.call(c.ID).Execution, "refunded")
	if got := h.wantOutcome(c.ID, approvers.OutcomeExecuted); got.Result != "refunded" {
		t.Errorf("the model is told %s", got.Result)
	}
	h.answer(c.Turn)

	for name, approved := range map[string]bool{"while it waits": false, "before it runs": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			c := h.lost(`issue_refund {"amount":1}`, lead)
			h.ok(h.again(lead, c.Execution))
			r := h.request(h.call(c.ID).Request)
			if approved {
				h.approve(lead, r.ID)
			}
			h.ok(h.reports(alice, c.Execution, workflow.Happened))
			h.wantState(r.ID, approvers.Voided)
			h.notRun(h.call(c.ID).Execution)
			if got := h.wantOutcome(c.ID, approvers.OutcomeExecuted); !contains(got.Result, "a person reported that it happened") || !contains(got.Result, "RF-9") {
				t.Errorf("the model is told %s", got.Result)
			}
			h.answer(c.Turn)
		})
	}
}

// If a call's arguments were edited before the earlier run, the new request has the edited arguments. If the call
// shared a card with other calls, the new request has its own card.
func TestAskAgainAfterAnEdit(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "please").Turn
	cs := h.propose(turn, `issue_refund {"amount":5}`, `issue_refund {"amount":6}`)
	_, err := h.Requests.Decide(h.ctx(), h.edit(lead, cs[0].Request, `{"amount":4}`))
	h.ok(err)
	h.approve(lead, cs[1].Request)
	edited := h.request(cs[0].Request)
	for _, e := range []string{edited.Execution, cs[1].Execution} {
		_, _, err := h.Runs.Claim(h.ctx(), e)
		h.ok(err)
		h.ok(h.Runs.MarkUnknown(h.ctx(), e))
		h.ok(h.again(lead, e))
	}
	again := h.request(h.call(cs[0].ID).Request)
	if string(again.Args) != `{"amount":4}` || len(again.Edits) != 1 || again.Preview != "Refund of 4" {
		t.Errorf("asked for %s with %d changes: %s", again.Args, len(again.Edits), again.Preview)
	}
	other := h.request(h.call(cs[1].ID).Request)
	if other.Bundle == "" || other.Bundled() {
		t.Errorf("in the bundle %q, decided there: %t", other.Bundle, other.Bundled())
	}
	h.only(other.ID, store.OutboxCard)
	for _, r := range []approvers.Request{again, other} {
		h.reject(lead, r.ID)
	}
	got := h.wantOutcome(cs[0].ID, approvers.OutcomeRejected)
	if !contains(got.Result, `"modified"`) || !contains(got.Result, "it may have happened besides") {
		t.Errorf("the model is told %s", got.Result)
	}
	h.answer(turn)
}

// If the requester withdraws a call that waits for another run, the new request ends as withdrawn. The outcome of the
// earlier run stays unknown.
func TestAskAgainAndWithdrawAll(t *testing.T) {
	h := newHarness(t)
	c := h.lost(`issue_refund {"amount":1}`, lead)
	h.ok(h.again(alice, c.Execution))
	h.say(bob, "never mind")
	h.ok(h.Requests.WithdrawAll(h.ctx(), workflow.Click{Who: bob, Turn: c.Turn, At: h.clock.Now()}))
	if got := h.wantOutcome(c.ID, approvers.OutcomeWithdrawn); !contains(got.Result, "it may have happened besides") {
		t.Errorf("the model is told %s", got.Result)
	}
	if was := h.execution(c.Execution); was.State != approvers.ExecutionUnknown {
		t.Errorf("the earlier run is %s", was.State)
	}
	h.answer(c.Turn)
}

// The record of a retry's request is damaged. The request is closed. People can still report the outcome of the earlier
// run, and can't ask for another run. With the proposal's audit record or the retry's run, the closed request still names
// the earlier run and the person who asked again. Without them, it does not.
func TestAskAgainAndDamage(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(h *harness, retry approvers.Request)
		named  bool
		code   approvers.Code
	}{
		"the request": {func(h *harness, retry approvers.Request) { h.spoil("requests", retry.ID) }, true, approvers.DeniedAgain},
		"the request and the run": {func(h *harness, retry approvers.Request) {
			h.spoil("requests", retry.ID, "executions", retry.Execution)
		}, true, approvers.DeniedAgain},
		"the request, the run and the history": {func(h *harness, retry approvers.Request) {
			h.remove("audit", retry.ID, 0)
			h.spoil("requests", retry.ID, "executions", retry.Execution)
		}, false, approvers.DeniedDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			h := newBareHarness(t, t.TempDir())
			call := h.lost(`issue_refund {"amount":5}`, lead)
			first := call.Execution
			h.ok(h.again(lead, first))
			before := h.request(h.call(call.ID).Request)
			c.damage(h, before)
			wantDenied(t, h.again(lead, first), c.code)
			after := h.request(before.ID)
			if after.State.Open() || !after.Damaged {
				t.Errorf("the request is %s", after.State)
			}
			want := *before.Retry
			want.Name = "" // the audit records have no names
			if a := after.Retry; (a != nil) != c.named || c.named && *a != want {
				t.Errorf("the earlier run is recorded as %+v; want %+v", a, want)
			}
			h.ok(h.reports(alice, first, workflow.Happened))
			if e := h.execution(first); e.State != approvers.ExecutionSucceeded {
				t.Errorf("the earlier run is %s", e.State)
			}
			if c.named { // otherwise, the test has removed audit records
				h.invariants()
			}
		})
	}
}

// The record of the request for the earlier run is damaged, after somebody has asked again. The rebuilt request is not a
// retry.
func TestDamageOfTheRequestBeforeAskAgain(t *testing.T) {
	h := newHarness(t)
	call := h.lost(`issue_refund {"amount":5}`, lead)
	h.ok(h.again(lead, call.Execution))
	h.spoil("requests", call.Request)
	h.ok(h.reports(alice, call.Execution, workflow.DidNot))
	if r := h.wantState(call.Request, approvers.Consumed); r.Retry != nil {
		t.Errorf("the earlier request is a retry: %+v", r.Retry)
	}
	if retry := h.wantState(h.call(call.ID).Request, approvers.Pending); retry.Retry.Found != approvers.ExecutionFailed {
		t.Errorf("the retry records %+v", retry.Retry)
	}
}
