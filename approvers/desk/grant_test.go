package desk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// granting is a policy that allows grants for refunds and discounts.
func granting(p *approvers.Policy) {
	p.Tools[2].Grants = approvers.GrantTerms{Uses: 5, Within: time.Hour}
	p.Tools[3].Grants = approvers.GrantTerms{Uses: 5, Within: time.Hour, AtMost: []string{"amount"}, Same: []string{"currency"}}
	p.Tools[3].TrustAfter = 3
}

var errSlackDown = errors.New("Slack does not answer")

// giver is Slack's word on who gave a grant: whoever they say they are, but for those of whom a test says otherwise.
func (o *office) giver(_ context.Context, g approvers.Grant) (approvers.Identity, error) {
	if o.slackDown {
		return approvers.Identity{}, errSlackDown
	}
	if other, ok := o.known[g.By]; ok {
		return other, nil
	}
	return person(g.By.User()), nil
}

// grantMore has somebody approve a request and allow more calls like it.
func (o *office) grantMore(who approvers.Identity, request string, uses int, within time.Duration) approvers.Grant {
	o.t.Helper()
	_, err := o.GrantMore(o.ctx(), o.clickOn(who, approvers.Approve, request), approvers.Allowance{Uses: uses, Within: within})
	o.ok(err)
	g := o.grants()
	return g[len(g)-1]
}

// grants lists the open grants.
func (o *office) grants() []approvers.Grant {
	o.t.Helper()
	return view(o, func(r store.Reader) ([]approvers.Grant, error) { return r.OpenGrants("") })
}

func (o *office) grant(id string) approvers.Grant {
	o.t.Helper()
	return view(o, func(r store.Reader) (approvers.Grant, error) { return r.Grant(id) })
}

// granted has alice get a refund for which lead allows more, and answers the turn.
func (o *office) granted(uses int) approvers.Grant {
	o.t.Helper()
	r := o.ask(`issue_refund {"amount":50,"currency":"USD"}`)
	g := o.grantMore(lead, r.ID, uses, 30*time.Minute)
	o.run(r.Execution, "RF-1")
	o.answer(r.Turn)
	return g
}

// next has alice ask for one more call in the same thread.
func (o *office) next(spec string) store.Call {
	o.t.Helper()
	return o.propose(o.say(alice, "one more").Turn, spec)[0]
}

// wantAsked claims a call and checks that people are asked about it instead.
func (o *office) wantAsked(c store.Call) approvers.Request {
	o.t.Helper()
	if c.Request == "" {
		o.notRun(c.Execution)
		c = o.call(c.ID)
	}
	if c.Request == "" {
		o.t.Fatal("nobody is asked about it")
	}
	if e := o.execution(c.Execution); e.Grant != "" || e.GrantUse != 0 {
		o.t.Errorf("people are asked about it, and it has a grant")
	}
	return o.wantState(c.Request, approvers.Pending)
}

const oneRefund = `issue_refund {"amount":50,"currency":"USD"}`

// TestAGrantIsGivenWithTheApproval: it is one decision over what was shown, is seen by everybody in the conversation, and lets calls like it run.
func TestAGrantIsGivenWithTheApproval(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", granting))
	r := o.ask(oneRefund)
	g := o.grantMore(lead, r.ID, 2, 30*time.Minute)
	if g.By != lead.ID || g.Role != "team-lead" || g.Conversation != r.Conversation || g.Left != 2 || g.Until != o.clock.Now().Add(30*time.Minute) || g.Request != r.ID {
		t.Errorf("%+v", g)
	}
	o.wantState(r.ID, approvers.Approved)
	o.wantKinds(r.ID, "proposed decided granted approved")
	if got := o.wanted(g.ID); got != "grant conversation:"+r.Conversation+", grant user:U0002" {
		t.Errorf("shown: %s", got)
	}
	o.run(r.Execution, "RF-1")
	o.answer(r.Turn)
	for use := 1; use <= 2; use++ {
		c := o.next(fmt.Sprintf(`issue_refund {"amount":%d,"currency":"USD"}`, use))
		if c.Request != "" {
			t.Fatalf("people are asked about use %d", use)
		}
		o.run(c.Execution, "RF")
		if e := o.execution(c.Execution); e.Grant != g.ID || e.GrantUse != use {
			t.Errorf("ran under %q, use %d; want use %d", e.Grant, e.GrantUse, use)
		}
		o.wantKinds(c.Execution, "proposed granted executing executed returned")
		o.wantOutcome(c.ID, approvers.OutcomeExecuted)
		o.answer(c.Turn)
	}
	if g = o.grant(g.ID); g.State != approvers.GrantUsed || g.Left != 0 {
		t.Errorf("%s with %d left", g.State, g.Left)
	}
	o.wantKinds("grant:"+g.ID, "granted granted granted")
	o.wantAsked(o.next(oneRefund))
}

// TestWhatAGrantDoesNotAdmit asks people, whether that is seen when the call is proposed or when it is to run.
func TestWhatAGrantDoesNotAdmit(t *testing.T) {
	for name, c := range map[string]struct {
		spec   string
		before func(o *office, g approvers.Grant) // before it is proposed
		then   func(o *office, g approvers.Grant) // before it is to run
	}{
		"more":             {spec: `issue_refund {"amount":50.01,"currency":"USD"}`},
		"another currency": {spec: `issue_refund {"amount":50,"currency":"EUR"}`},
		"more arguments":   {spec: `issue_refund {"amount":50,"currency":"USD","to":"me"}`},
		"too late":         {then: func(o *office, g approvers.Grant) { o.clock.pass(31 * time.Minute) }},
		"revoked":          {then: func(o *office, g approvers.Grant) { o.revokeGrant(lead, g.ID) }},
		"lapsed":           {before: func(o *office, g approvers.Grant) { o.clock.pass(31 * time.Minute); o.due() }},
		"stricter policy": {then: func(o *office, _ approvers.Grant) {
			o.policy.Store(policy("policy-2", granting, func(p *approvers.Policy) {
				p.Tools[3].Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 2}}
			}))
		}},
		"a lower ceiling": {then: func(o *office, _ approvers.Grant) {
			o.policy.Store(policy("policy-2", granting, func(p *approvers.Policy) { p.Approvers[1].MaxRisk = approvers.Medium }))
		}},
		"no grants any more": {then: func(o *office, _ approvers.Grant) { o.policy.Store(policy("policy-2")) }},
		"the giver left": {then: func(o *office, _ approvers.Grant) {
			gone := lead
			gone.Deleted = true
			o.known = map[approvers.PersonID]approvers.Identity{lead.ID: gone}
		}},
		"Slack is down": {then: func(o *office, _ approvers.Grant) { o.slackDown = true }},
		"above the cap": {then: func(o *office, _ approvers.Grant) {
			o.policy.Store(policy("policy-2", granting, func(p *approvers.Policy) { p.Caps.Requester = approvers.Limit{Count: 1, Per: time.Hour} }))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.policy.Store(policy("policy-1", granting, func(p *approvers.Policy) { p.Caps.Requester = approvers.Limit{Count: 9, Per: time.Hour} }))
			g := o.granted(3)
			if c.before != nil {
				c.before(o, g)
			}
			if c.spec == "" {
				c.spec = oneRefund
			}
			call := o.next(c.spec)
			if (c.then != nil) != (call.Request == "") {
				t.Fatalf("asked when proposed: %t", call.Request != "")
			}
			if c.then != nil {
				c.then(o, g)
			}
			o.wantAsked(call)
			if left := o.grant(g.ID).Left; left != 3 {
				t.Errorf("%d of 3 left", left)
			}
		})
	}
}

func (o *office) clickGrant(who approvers.Identity, id string) desk.Click {
	o.t.Helper()
	c := desk.Click{Inbox: o.id("click"), At: o.clock.Now(), Who: who, Grant: id, Rendering: "rendering", Channel: "C0001", MessageTS: "300.1"}
	o.receive(c)
	return c
}

func (o *office) revokeGrant(who approvers.Identity, id string) {
	o.t.Helper()
	_, err := o.RevokeGrant(o.ctx(), o.clickGrant(who, id))
	o.ok(err)
}

// TestAGrantStaysWhereItWasGiven: in another thread people are asked.
func TestAGrantStaysWhereItWasGiven(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", granting))
	o.granted(3)
	o.wantAsked(o.propose(o.sayIn("900.1", alice, "me too").Turn, oneRefund)[0])
	o.wantAsked(o.propose(o.say(lead, "and one for me").Turn, oneRefund)[0]) // whoever granted it asks
}

// TestAChangedToolEndsWhatWaitsUnderAGrant: the call is void, and the grant stands for the old definition only.
func TestAChangedToolEndsWhatWaitsUnderAGrant(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", granting))
	g := o.granted(3)
	c := o.next(oneRefund)
	o.tools.change("issue_refund", func(t *desk.Tool) { t.Hash = "another" })
	o.notRun(c.Execution)
	o.wantOutcome(c.ID, approvers.OutcomeVoided)
	o.answer(c.Turn)
	o.wantAsked(o.next(oneRefund))
	s, err := o.See(o.ctx(), o.surfacesOf(g.ID)[0].ID)
	o.ok(err)
	if s.Grant.ID != g.ID || s.Conversation.ID != g.Conversation || s.Stalled != "the definition of the tool changed" {
		t.Errorf("seen: %q", s.Stalled)
	}
}

// TestAGrantObservedRunsNothing: in observe mode a call under a grant is not run.
func TestAGrantObservedRunsNothing(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", granting))
	g := o.granted(3)
	c := o.next(oneRefund)
	o.policy.Store(policy("policy-2", granting, func(p *approvers.Policy) { p.Mode = approvers.Observe }))
	o.notRun(c.Execution)
	o.wantOutcome(c.ID, approvers.OutcomeObserved)
	if g := o.grant(g.ID); g.Left != 3 {
		t.Errorf("%d left", g.Left)
	}
}

// TestAGrantBeyondTheAutomaticRuns stands for whoever would be asked about the runs above the limit, and they count for it.
func TestAGrantBeyondTheAutomaticRuns(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Tools[1].Grants = approvers.GrantTerms{Uses: 2, Within: 2 * time.Hour} }))
	for range 2 {
		c := o.next(`update_address {"to":"Elm Street"}`)
		o.run(c.Execution, "ok")
		o.answer(c.Turn)
	}
	r := o.wantAsked(o.next(`update_address {"to":"Elm Street"}`))
	g := o.grantMore(support, r.ID, 2, 2*time.Hour)
	o.run(r.Execution, "ok")
	o.answer(r.Turn)
	o.clock.pass(40 * time.Minute)
	for range 2 {
		c := o.next(`update_address {"to":"Oak Street"}`)
		o.run(c.Execution, "ok")
		if e := o.execution(c.Execution); e.Grant != g.ID {
			t.Error("not under the grant")
		}
		o.answer(c.Turn)
		o.clock.pass(15 * time.Minute)
	}
	o.wantAsked(o.next(`update_address {"to":"Oak Street"}`)) // the first two were more than an hour ago
}

// TestGrantMoreIsDenied leaves the request as it was.
func TestGrantMoreIsDenied(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*desk.Click, *approvers.Allowance)
		code   approvers.Code
	}{
		"by whoever asks":     {func(c *desk.Click, _ *approvers.Allowance) { c.Who = alice }, approvers.DeniedSelf},
		"by others":           {func(c *desk.Click, _ *approvers.Allowance) { c.Who = bob }, approvers.DeniedNotMember},
		"not shown whole":     {func(c *desk.Click, _ *approvers.Allowance) { c.Whole = false }, approvers.DeniedUnseen},
		"over something else": {func(c *desk.Click, _ *approvers.Allowance) { c.Digest = "other" }, approvers.DeniedStale},
		"too many":            {func(_ *desk.Click, a *approvers.Allowance) { a.Uses = 6 }, approvers.DeniedNoGrants},
		"too late":            {func(c *desk.Click, _ *approvers.Allowance) { c.At = c.At.Add(time.Hour) }, approvers.DeniedLate},
		"below what is asked": {func(_ *desk.Click, a *approvers.Allowance) {
			a.AtMost = map[string]json.RawMessage{"amount": json.RawMessage("10")}
		}, approvers.DeniedNoGrants},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.policy.Store(policy("policy-1", granting))
			r := o.ask(oneRefund)
			click, a := o.clickOn(lead, approvers.Approve, r.ID), approvers.Allowance{Uses: 2, Within: time.Hour}
			c.change(&click, &a)
			_, err := o.GrantMore(o.ctx(), click, a)
			wantDenied(t, err, c.code)
			o.wantState(r.ID, approvers.Pending)
			o.wantKinds(r.ID, "proposed denied")
			if len(o.grants()) != 0 {
				t.Error("something was granted")
			}
		})
	}
}

// TestAGrantIsTakenBack by its giver and by the people of the same role; by nobody else, and once.
func TestAGrantIsTakenBack(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", granting))
	g := o.granted(3)
	_, err := o.RevokeGrant(o.ctx(), o.clickGrant(alice, g.ID))
	wantDenied(t, err, approvers.DeniedNotMember)
	_, err = o.RevokeGrant(o.ctx(), o.clickGrant(lead, "grant_other"))
	wantDenied(t, err, approvers.DeniedNotFound)
	o.revokeGrant(lead, g.ID)
	_, err = o.RevokeGrant(o.ctx(), o.clickGrant(lead, g.ID))
	wantDenied(t, err, approvers.DeniedResolved)
	o.wantKinds("grant:"+g.ID, "granted denied granted denied")
	if g = o.grant(g.ID); g.State != approvers.GrantRevoked || g.ClosedBy != lead.ID {
		t.Errorf("%s by %s", g.State, g.ClosedBy)
	}
}

// TestANewGrantTakesTheOldOnesPlace: what is left of both does not add up.
func TestANewGrantTakesTheOldOnesPlace(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", granting))
	first := o.granted(3)
	r := o.wantAsked(o.next(`issue_refund {"amount":80,"currency":"USD"}`))
	second := o.grantMore(lead, r.ID, 2, time.Hour)
	if g := o.grant(first.ID); g.State != approvers.GrantReplaced || g.Left != 3 {
		t.Errorf("the first is %s with %d left", g.State, g.Left)
	}
	if open := o.grants(); len(open) != 1 || open[0].ID != second.ID {
		t.Errorf("%d are open", len(open))
	}
}

// TestLastUseOfAGrant: of the calls of one step only one runs with the last use, and a use is taken only by what runs.
func TestLastUseOfAGrant(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", granting))
	g := o.granted(1)
	cs := o.propose(o.say(alice, "three more").Turn, oneRefund, oneRefund, oneRefund)
	for _, c := range cs {
		if c.Request != "" {
			t.Fatal("a call was not expected to run under the grant")
		}
	}
	o.run(cs[1].Execution, "RF")
	o.wantAsked(cs[0])
	o.wantAsked(cs[2])
	if g = o.grant(g.ID); g.State != approvers.GrantUsed {
		t.Errorf("%s", g.State)
	}
}

// TestSixteenCallsAtOnce against a grant with five uses: five run without asking, and people are asked about eleven.
func TestSixteenCallsAtOnce(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", granting))
	g := o.granted(5)
	specs := slices.Repeat([]string{oneRefund}, 16)
	cs := o.propose(o.say(alice, "sixteen more").Turn, specs...)
	var mu sync.Mutex
	var ran []approvers.Execution
	var wg sync.WaitGroup
	for _, c := range cs {
		wg.Go(func() {
			e, run, err := o.Claim(o.ctx(), c.Execution)
			if err != nil {
				t.Error(err)
			}
			if run {
				mu.Lock()
				ran = append(ran, e)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	uses := map[int]bool{}
	for _, e := range ran {
		uses[e.GrantUse] = true
		o.ok(o.Finish(o.ctx(), e.ID, true, "RF"))
	}
	asked := 0
	for _, c := range cs {
		if c = o.call(c.ID); c.Request != "" {
			o.wantState(c.Request, approvers.Pending)
			asked++
		}
	}
	if len(ran) != 5 || len(uses) != 5 || asked != 11 {
		t.Errorf("%d ran, as %d uses, and people were asked about %d; want 5, 5 and 11", len(ran), len(uses), asked)
	}
	if g = o.grant(g.ID); g.State != approvers.GrantUsed || g.Left != 0 {
		t.Errorf("%s with %d left", g.State, g.Left)
	}
}

// TestAnUnknownOutcomeUnderAGrant is put to those who asked and to the giver, who may report.
func TestAnUnknownOutcomeUnderAGrant(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", granting))
	g := o.granted(2)
	c := o.next(oneRefund)
	if _, run, err := o.Claim(o.ctx(), c.Execution); !run || err != nil {
		t.Fatal(run, err)
	}
	o.ok(o.Lose(o.ctx(), c.Execution))
	if got := o.wanted(c.Execution); got != "unknown conversation:"+g.Conversation+", unknown user:U0002" {
		t.Errorf("shown: %s", got)
	}
	if left := o.grant(g.ID).Left; left != 1 {
		t.Errorf("%d left", left)
	}
	click := o.clickGrant(fin1, "")
	click.Execution = c.Execution
	wantDenied(t, o.Report(o.ctx(), click, desk.Happened), approvers.DeniedNotRequester)
	click = o.clickGrant(lead, "")
	click.Execution = c.Execution
	o.ok(o.Report(o.ctx(), click, desk.DidNot))
}
