package desk_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// lost has a call run whose outcome nobody knows, and returns it as it is then.
func (o *office) lost(spec string, by ...approvers.Identity) store.Call {
	o.t.Helper()
	c := o.propose(o.say(alice, "please").Turn, spec)[0]
	for _, who := range by {
		o.approve(who, c.Request)
	}
	_, run, err := o.Claim(o.ctx(), c.Execution)
	if o.ok(err); !run {
		o.t.Fatalf("%s does not run", c.Tool)
	}
	o.ok(o.Lose(o.ctx(), c.Execution))
	return o.call(c.ID)
}

// again asks for a call once more.
func (o *office) again(who approvers.Identity, execution string) error {
	o.t.Helper()
	c := desk.Click{Inbox: o.id("click"), At: o.clock.Now(), Who: who, Execution: execution, Channel: "C0002"}
	o.receive(c)
	return o.AskAgain(o.ctx(), c)
}

func (o *office) reports(who approvers.Identity, execution string, what desk.Report) error {
	o.t.Helper()
	c := desk.Click{Inbox: o.id("click"), At: o.clock.Now(), Who: who, Execution: execution, Reason: "RF-9", Channel: "C0002"}
	o.receive(c)
	return o.Report(o.ctx(), c, what)
}

// Asking again is a new execution of the same bytes, with a new request that has all its stages. The earlier run stays unknown, and the model is
// told what comes of the new one, and that there may have been two.
func TestAskAgain(t *testing.T) {
	o := newOffice(t)
	c := o.lost(`issue_refund {"amount": 600.0}`, lead, fin1, fin2)
	first := o.request(c.Request)
	o.ok(o.again(fin1, c.Execution))

	after := o.call(c.ID)
	r, e := o.request(after.Request), o.execution(after.Execution)
	if after.Request == c.Request || after.Execution == c.Execution || after.Outcome != "" {
		t.Fatalf("%+v", after)
	}
	if string(r.Args) != `{"amount": 600.0}` || r.Digest == first.Digest || e.After != c.Execution || e.State != approvers.ExecutionNone {
		t.Errorf("asked for %s under %s, after %q, as %s", r.Args, r.Digest, e.After, e.State)
	}
	if r.State != approvers.Pending || r.Stage != 0 || len(r.Decisions) != 0 || len(r.Plan.Stages) != 2 || r.Facts.Asker != alice.ID {
		t.Errorf("the new request: %s at stage %d of %d with %d decisions, for %s", r.State, r.Stage, len(r.Plan.Stages), len(r.Decisions), r.Facts.Asker)
	}
	if a := r.Again; a == nil || a.Execution != c.Execution || a.By != fin1.ID || a.LostAt.IsZero() {
		t.Errorf("it says of the earlier run %+v", a)
	}
	if was := o.execution(c.Execution); was.State != approvers.ExecutionUnknown || o.request(first.ID).State != approvers.Consumed {
		t.Errorf("the earlier run is %s", was.State)
	}
	if _, left := o.timers(store.TimerLeave)[c.Execution]; left {
		t.Error("the model would be told that nobody knows")
	}
	o.only(r.ID, store.SurfaceCard)
	o.notRun(after.Execution)

	for _, who := range []approvers.Identity{lead, fin1, fin2} {
		o.approve(who, r.ID)
	}
	o.run(after.Execution, "refunded")
	done := o.wantOutcome(c.ID, approvers.OutcomeExecuted)
	if !contains(done.Result, "refunded") || !contains(done.Result, "it may have happened besides") {
		t.Errorf("the model is told %s", done.Result)
	}
	o.wantKinds(first.ID, "proposed decided advanced decided decided approved executing unknown reported")
	o.wantKinds(r.ID, "proposed decided advanced decided decided approved executing executed returned")
	o.answer(c.Turn)
	o.ok(o.reports(alice, c.Execution, desk.Happened)) // it is still good to know
	if was := o.execution(c.Execution); was.State != approvers.ExecutionSucceeded || o.call(c.ID).Result != done.Result {
		t.Errorf("reported later: %s, and the model's result is %s", was.State, o.call(c.ID).Result)
	}
}

// A call that ran without asking, or under a grant, is asked about when it is asked for again: by whom the policy would ask.
func TestAskAgainAlwaysAsks(t *testing.T) {
	o := newOffice(t)
	o.tools.change("update_address", func(t *desk.Tool) { t.Effect = approvers.Unprotected })
	c := o.lost(`update_address {}`)
	if c.Request != "" {
		t.Fatal("people were asked")
	}
	o.ok(o.again(alice, c.Execution))
	r := o.request(o.call(c.ID).Request)
	if r.State != approvers.Pending || r.Plan.Stages[0].Approver != "support-agent" || r.Plan.Why[1] != "nobody knows whether an earlier run of it happened" {
		t.Errorf("%s for %+v because %q", r.State, r.Plan.Stages, r.Plan.Why)
	}
	o.notRun(o.call(c.ID).Execution)
	o.approve(support, r.ID)
	o.run(o.call(c.ID).Execution, "moved")
	o.answer(c.Turn)
}

// A grant in force covers no call that is asked for again, and the cap on what one person causes counts it.
func TestAskAgainUnderAGrant(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", granting, func(p *approvers.Policy) { p.Caps.Requester = approvers.Limit{Count: 2, Per: time.Hour} }))
	g := o.granted(2)
	c := o.next(oneRefund)
	_, run, err := o.Claim(o.ctx(), c.Execution)
	if o.ok(err); !run {
		t.Fatal("it does not run under the grant")
	}
	o.ok(o.Lose(o.ctx(), c.Execution))
	o.ok(o.again(lead, c.Execution)) // who gave the grant may say what happened, and so ask again
	after := o.call(c.ID)
	r := o.wantState(after.Request, approvers.Pending)
	if e := o.execution(after.Execution); e.Grant != "" || o.grant(g.ID).Left != 1 {
		t.Errorf("under grant %q, of which %d are left", e.Grant, o.grant(g.ID).Left)
	}
	if r.StepUp != "" {
		t.Errorf("the second request of an hour: %s", r.StepUp)
	}
	o.approve(lead, r.ID)
	_, _, err = o.Claim(o.ctx(), after.Execution)
	o.ok(err)
	o.ok(o.Lose(o.ctx(), after.Execution))
	o.ok(o.again(lead, after.Execution))
	if third := o.request(o.call(c.ID).Request); third.StepUp == "" {
		t.Error("a third request of an hour asks for no typed value")
	}
	o.reject(lead, o.call(c.ID).Request)
	o.answer(c.Turn)
}

// Why something can't be asked again, each with its reason: then it stays as it was.
func TestAskAgainDenied(t *testing.T) {
	const refund = `issue_refund {"amount":1}`
	guest, stranger := person("U0300"), person("U0400")
	guest.Guest, stranger.Foreign = true, true
	for name, c := range map[string]struct {
		who    approvers.Identity
		before func(*office, store.Call)
		code   approvers.Code
	}{
		"a colleague":                   {bob, nil, approvers.DeniedNotMember},
		"another role":                  {support, nil, approvers.DeniedNotMember},
		"a lead who was not told of it": {fin1, nil, approvers.DeniedNotMember},
		"a guest":                       {guest, nil, approvers.DeniedGuest},
		"a stranger":                    {stranger, nil, approvers.DeniedForeign},
		"nobody known":                  {approvers.Identity{}, nil, approvers.DeniedUnidentified},
		"the agent was told": {lead, func(o *office, c store.Call) {
			o.ok(o.reports(lead, c.Execution, desk.Leave))
		}, approvers.DeniedReturned},
		"the agent was told in time": {lead, func(o *office, c store.Call) {
			o.clock.pass(expiresAfter)
			o.due()
		}, approvers.DeniedReturned},
		"somebody knows": {lead, func(o *office, c store.Call) {
			o.ok(o.reports(alice, c.Execution, desk.DidNot))
		}, approvers.DeniedResolved},
		"it is asked again": {lead, func(o *office, c store.Call) { o.ok(o.again(alice, c.Execution)) }, approvers.DeniedAgain},
		"it was asked again, and rejected": {lead, func(o *office, c store.Call) {
			o.ok(o.again(alice, c.Execution))
			o.reject(lead, o.call(c.ID).Request)
		}, approvers.DeniedAgain},
		"the tool is gone": {lead, func(o *office, c store.Call) {
			o.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Agents[0].Tools = []string{"search_orders"} }))
		}, approvers.DeniedNotAgain},
		"the tool takes other arguments": {lead, func(o *office, c store.Call) {
			o.tools.change("issue_refund", func(t *desk.Tool) { t.Check = func(json.RawMessage) error { return errors.New("amount: too odd") } })
		}, approvers.DeniedNotAgain},
		"nobody could allow it": {lead, func(o *office, c store.Call) {
			o.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 5}} }))
		}, approvers.DeniedNotAgain},
		"it is only observed": {lead, func(o *office, c store.Call) {
			o.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Tools[3].Mode = approvers.Observe }))
		}, approvers.DeniedNotAgain},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			call := o.lost(refund, lead)
			if c.before != nil {
				c.before(o, call)
			}
			was := o.call(call.ID)
			denied := wantDenied(t, o.again(c.who, call.Execution), c.code)
			if now := o.call(call.ID); now.Execution != was.Execution || now.Request != was.Request || now.Outcome != was.Outcome {
				t.Errorf("%+v became %+v", was, now)
			}
			if c.code == approvers.DeniedNotAgain && denied.Detail == "" || c.code == approvers.DeniedAgain && denied.By != alice.ID {
				t.Errorf("told of %+v", denied)
			}
			if !contains(o.kinds(call.Request), "denied") {
				t.Errorf("the history has %s", o.kinds(call.Request))
			}
		})
	}
	o := newOffice(t)
	wantDenied(t, o.again(lead, "exec_none"), approvers.DeniedNotFound)
}

// The leads whom escalation told, and those who asked, may; after a lost run of what was asked again, it is asked again once more.
func TestAskAgainAndAgain(t *testing.T) {
	o := newOffice(t)
	c := o.propose(o.say(alice, "please").Turn, `issue_refund {"amount":1}`)[0]
	o.clock.pass(escalateAfter)
	o.due()
	o.approve(fin1, c.Request)
	execution := c.Execution
	for i, who := range []approvers.Identity{fin2, alice, lead} {
		_, run, err := o.Claim(o.ctx(), execution)
		if o.ok(err); !run {
			t.Fatalf("run %d does not begin", i+1)
		}
		o.ok(o.Lose(o.ctx(), execution))
		o.ok(o.again(who, execution))
		r := o.request(o.call(c.ID).Request)
		if r.Again.Execution != execution || r.Again.By != who.ID {
			t.Errorf("asked again %+v", r.Again)
		}
		execution = r.Execution
		o.approve(lead, r.ID)
	}
	o.run(execution, "refunded")
	o.answer(c.Turn)
}

// What is found out about the earlier run reaches those who decide about the new one. If it happened, the new request ends, and the agent is told
// what was found: nothing runs twice that anybody knows to have run.
func TestReportOnTheEarlierRun(t *testing.T) {
	o := newOffice(t)
	c := o.lost(`issue_refund {"amount":1}`, lead)
	o.ok(o.again(lead, c.Execution))
	r := o.request(o.call(c.ID).Request)
	wantDenied(t, o.reports(lead, c.Execution, desk.Leave), approvers.DeniedNothing)
	o.showAll()
	o.ok(o.reports(alice, c.Execution, desk.DidNot))
	if a := o.request(r.ID).Again; a.Found != approvers.ExecutionFailed || a.FoundBy != alice.ID || !contains(o.wanted(r.ID), "card") {
		t.Errorf("the new request says %+v; to be shown: %q", a, o.wanted(r.ID))
	}
	o.wantState(r.ID, approvers.Pending)
	o.approve(lead, r.ID)
	o.run(o.call(c.ID).Execution, "refunded")
	if got := o.wantOutcome(c.ID, approvers.OutcomeExecuted); got.Result != "refunded" {
		t.Errorf("the model is told %s", got.Result)
	}
	o.answer(c.Turn)

	for name, approved := range map[string]bool{"while it waits": false, "before it runs": true} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			c := o.lost(`issue_refund {"amount":1}`, lead)
			o.ok(o.again(lead, c.Execution))
			r := o.request(o.call(c.ID).Request)
			if approved {
				o.approve(lead, r.ID)
			}
			o.ok(o.reports(alice, c.Execution, desk.Happened))
			o.wantState(r.ID, approvers.Voided)
			o.notRun(o.call(c.ID).Execution)
			if got := o.wantOutcome(c.ID, approvers.OutcomeExecuted); !contains(got.Result, "a person reported that it happened") || !contains(got.Result, "RF-9") {
				t.Errorf("the model is told %s", got.Result)
			}
			o.answer(c.Turn)
		})
	}
}

// What was changed before the earlier run is asked for again as it was changed, beside the card that it shared with others.
func TestAskAgainAfterAnEdit(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "please").Turn
	cs := o.propose(turn, `issue_refund {"amount":5}`, `issue_refund {"amount":6}`)
	_, err := o.Decide(o.ctx(), o.edit(lead, cs[0].Request, `{"amount":4}`))
	o.ok(err)
	o.approve(lead, cs[1].Request)
	edited := o.request(cs[0].Request)
	for _, e := range []string{edited.Execution, cs[1].Execution} {
		_, _, err := o.Claim(o.ctx(), e)
		o.ok(err)
		o.ok(o.Lose(o.ctx(), e))
		o.ok(o.again(lead, e))
	}
	again := o.request(o.call(cs[0].ID).Request)
	if string(again.Args) != `{"amount":4}` || len(again.Edits) != 1 || again.Preview != "Refund of 4" {
		t.Errorf("asked for %s with %d changes: %s", again.Args, len(again.Edits), again.Preview)
	}
	other := o.request(o.call(cs[1].ID).Request)
	if other.Bundle == "" || other.Bundled() {
		t.Errorf("in the bundle %q, decided there: %t", other.Bundle, other.Bundled())
	}
	o.only(other.ID, store.SurfaceCard)
	for _, r := range []approvers.Request{again, other} {
		o.reject(lead, r.ID)
	}
	got := o.wantOutcome(cs[0].ID, approvers.OutcomeRejected)
	if !contains(got.Result, `"modified"`) || !contains(got.Result, "it may have happened besides") {
		t.Errorf("the model is told %s", got.Result)
	}
	o.answer(turn)
}

// Withdrawing what is asked again, and what was said meanwhile, ends it as any other request.
func TestAskAgainAndGoOn(t *testing.T) {
	o := newOffice(t)
	c := o.lost(`issue_refund {"amount":1}`, lead)
	o.ok(o.again(alice, c.Execution))
	o.say(bob, "never mind")
	o.ok(o.GoOn(o.ctx(), desk.Click{Who: bob, Turn: c.Turn, At: o.clock.Now()}))
	if got := o.wantOutcome(c.ID, approvers.OutcomeWithdrawn); !contains(got.Result, "it may have happened besides") {
		t.Errorf("the model is told %s", got.Result)
	}
	if was := o.execution(c.Execution); was.State != approvers.ExecutionUnknown {
		t.Errorf("the earlier run is %s", was.State)
	}
	o.answer(c.Turn)
}
