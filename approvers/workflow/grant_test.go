package workflow_test

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
	"countersign/approvers/workflow"
	"countersign/store"
)

// The function granting changes a policy so that it allows grants for refunds and discounts.
func granting(p *approvers.Policy) {
	p.Tools[2].Grants = approvers.GrantTerms{Uses: 5, Within: time.Hour}
	p.Tools[3].Grants = approvers.GrantTerms{Uses: 5, Within: time.Hour, AtMost: []string{"amount"}, Same: []string{"currency"}}
	p.Tools[3].TrustAfter = 3
}

var errSlackDown = errors.New("Slack does not answer")

// giver returns Slack's data about the person who gave a grant. By default, this person is a member with unchanged
// roles.
func (h *harness) giver(_ context.Context, g approvers.Grant) (approvers.Identity, error) {
	if h.slackDown {
		return approvers.Identity{}, errSlackDown
	}
	if other, ok := h.known[g.By]; ok {
		return other, nil
	}
	return person(g.By.User()), nil
}

// grantMore makes a person approve a request and give a grant for similar calls.
func (h *harness) grantMore(who approvers.Identity, request string, uses int, within time.Duration) approvers.Grant {
	h.t.Helper()
	_, err := h.Grants.Give(h.ctx(), h.clickOn(who, approvers.Approve, request), approvers.Allowance{Uses: uses, Within: within})
	h.ok(err)
	g := h.grants()
	return g[len(g)-1]
}

// h.grants lists the open grants.
func (h *harness) grants() []approvers.Grant {
	h.t.Helper()
	return readStore(h, func(r store.Reader) ([]approvers.Grant, error) { return r.OpenGrants("") })
}

func (h *harness) grant(id string) approvers.Grant {
	h.t.Helper()
	return readStore(h, func(r store.Reader) (approvers.Grant, error) { return r.Grant(id) })
}

// h.granted makes alice ask for a refund, which lead approves together with a grant. h.granted then ends the turn with
// an answer.
func (h *harness) granted(uses int) approvers.Grant {
	h.t.Helper()
	r := h.ask(`issue_refund {"amount":50,"currency":"USD"}`)
	g := h.grantMore(lead, r.ID, uses, 30*time.Minute)
	h.run(r.Execution, "RF-1")
	h.answer(r.Turn)
	return g
}

// h.next makes alice ask for one more call in the same thread.
func (h *harness) next(spec string) store.Call {
	h.t.Helper()
	return h.propose(h.say(alice, "one more").Turn, spec)[0]
}

// wantAsked claims a call. The claim must be refused, and people must be asked to approve the call.
func (h *harness) wantAsked(c store.Call) approvers.Request {
	h.t.Helper()
	if c.Request == "" {
		h.notRun(c.Execution)
		c = h.call(c.ID)
	}
	if c.Request == "" {
		h.t.Fatal("nobody is asked about it")
	}
	if e := h.execution(c.Execution); e.Grant != "" || e.GrantUse != 0 {
		h.t.Errorf("people are asked about it, and it has a grant")
	}
	return h.wantState(c.Request, approvers.Pending)
}

const oneRefund = `issue_refund {"amount":50,"currency":"USD"}`

// TestAGrantIsGivenWithTheApproval checks that one decision about a call stores the approval and the grant. The
// conversation must show the grant, and similar calls must run under the grant.
func TestAGrantIsGivenWithTheApproval(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting))
	r := h.ask(oneRefund)
	g := h.grantMore(lead, r.ID, 2, 30*time.Minute)
	if g.By != lead.ID || g.Role != "team-lead" || g.Conversation != r.Conversation || g.Left != 2 || g.Until != h.clock.Now().Add(30*time.Minute) || g.Request != r.ID {
		t.Errorf("%+v", g)
	}
	h.wantState(r.ID, approvers.Approved)
	h.wantKinds(r.ID, "proposed decided granted approved")
	if got := h.wanted(g.ID); got != "grant conversation:"+r.Conversation+", grant user:U0002" {
		t.Errorf("shown: %s", got)
	}
	h.run(r.Execution, "RF-1")
	h.answer(r.Turn)
	for use := 1; use <= 2; use++ {
		c := h.next(fmt.Sprintf(`issue_refund {"amount":%d,"currency":"USD"}`, use))
		if c.Request != "" {
			t.Fatalf("people are asked about use %d", use)
		}
		h.run(c.Execution, "RF")
		if e := h.execution(c.Execution); e.Grant != g.ID || e.GrantUse != use {
			t.Errorf("ran under %q, use %d; want use %d", e.Grant, e.GrantUse, use)
		}
		h.wantKinds(c.Execution, "proposed granted executing executed returned")
		h.wantOutcome(c.ID, approvers.OutcomeExecuted)
		h.answer(c.Turn)
	}
	if g = h.grant(g.ID); g.State != approvers.GrantUsed || g.Left != 0 {
		t.Errorf("%s with %d left", g.State, g.Left)
	}
	h.wantKinds("grant:"+g.ID, "granted granted granted")
	h.wantAsked(h.next(oneRefund))
}

// TestWhatAGrantDoesNotAdmit checks that people are asked about calls that the grant does not cover. Some of these
// calls are detected when they are proposed, and others when they are claimed.
func TestWhatAGrantDoesNotAdmit(t *testing.T) {
	for name, c := range map[string]struct {
		spec   string
		before func(h *harness, g approvers.Grant) // called before the call is proposed
		then   func(h *harness, g approvers.Grant) // called after the call is proposed, and before it runs
	}{
		"more":             {spec: `issue_refund {"amount":50.01,"currency":"USD"}`},
		"another currency": {spec: `issue_refund {"amount":50,"currency":"EUR"}`},
		"more arguments":   {spec: `issue_refund {"amount":50,"currency":"USD","to":"me"}`},
		"too late":         {then: func(h *harness, g approvers.Grant) { h.clock.pass(31 * time.Minute) }},
		"revoked":          {then: func(h *harness, g approvers.Grant) { h.revokeGrant(lead, g.ID) }},
		"lapsed":           {before: func(h *harness, g approvers.Grant) { h.clock.pass(31 * time.Minute); h.due() }},
		"stricter policy": {then: func(h *harness, _ approvers.Grant) {
			h.policy.Store(policy("policy-2", granting, func(p *approvers.Policy) {
				p.Tools[3].Stages = []approvers.Stage{{Approver: "finance-director", Quorum: 2}}
			}))
		}},
		"a lower ceiling": {then: func(h *harness, _ approvers.Grant) {
			h.policy.Store(policy("policy-2", granting, func(p *approvers.Policy) { p.Approvers[1].MaxRisk = approvers.Medium }))
		}},
		"no grants any more": {then: func(h *harness, _ approvers.Grant) { h.policy.Store(policy("policy-2")) }},
		"the giver left": {then: func(h *harness, _ approvers.Grant) {
			gone := lead
			gone.Deleted = true
			h.known = map[approvers.PersonID]approvers.Identity{lead.ID: gone}
		}},
		"Slack is down": {then: func(h *harness, _ approvers.Grant) { h.slackDown = true }},
		"above the cap": {then: func(h *harness, _ approvers.Grant) {
			h.policy.Store(policy("policy-2", granting, func(p *approvers.Policy) { p.Caps.Requester = approvers.Limit{Count: 1, Per: time.Hour} }))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.policy.Store(policy("policy-1", granting, func(p *approvers.Policy) { p.Caps.Requester = approvers.Limit{Count: 9, Per: time.Hour} }))
			g := h.granted(3)
			if c.before != nil {
				c.before(h, g)
			}
			if c.spec == "" {
				c.spec = oneRefund
			}
			call := h.next(c.spec)
			if (c.then != nil) != (call.Request == "") {
				t.Fatalf("asked when proposed: %t", call.Request != "")
			}
			if c.then != nil {
				c.then(h, g)
			}
			h.wantAsked(call)
			if left := h.grant(g.ID).Left; left != 3 {
				t.Errorf("%d of 3 left", left)
			}
		})
	}
}

func (h *harness) clickGrant(who approvers.Identity, id string) workflow.Click {
	h.t.Helper()
	c := workflow.Click{Inbox: h.id("click"), At: h.clock.Now(), Who: who, Grant: id, Rendering: "rendering", Channel: "C0001", MessageTS: "300.1"}
	h.receive(c)
	return c
}

func (h *harness) revokeGrant(who approvers.Identity, id string) {
	h.t.Helper()
	_, err := h.Grants.Revoke(h.ctx(), h.clickGrant(who, id))
	h.ok(err)
}

// TestAGrantStaysWhereItWasGiven checks that a grant does not cover a call in another thread, or a call for which the
// giver of the grant asks.
func TestAGrantStaysWhereItWasGiven(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting))
	h.granted(3)
	h.wantAsked(h.propose(h.sayIn("900.1", alice, "me too").Turn, oneRefund)[0])
	h.wantAsked(h.propose(h.say(lead, "and one for me").Turn, oneRefund)[0]) // the giver of the grant asks
}

// TestAChangedToolEndsWhatWaitsUnderAGrant checks a call under a grant whose tool changes before the run. The call is
// voided, because the grant is valid only for the old definition.
func TestAChangedToolEndsWhatWaitsUnderAGrant(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting))
	g := h.granted(3)
	c := h.next(oneRefund)
	h.tools.change("issue_refund", func(t *workflow.Tool) { t.Hash = "another" })
	h.notRun(c.Execution)
	h.wantOutcome(c.ID, approvers.OutcomeVoided)
	h.answer(c.Turn)
	h.wantAsked(h.next(oneRefund))
	s, err := h.Views.Message(h.ctx(), h.messagesOf(g.ID)[0].ID)
	h.ok(err)
	if s.Grant.ID != g.ID || s.Conversation.ID != g.Conversation || s.Stalled != "the definition of the tool changed" {
		t.Errorf("seen: %q", s.Stalled)
	}
}

// TestAGrantObservedRunsNothing checks that a call under a grant does not run in observe mode.
func TestAGrantObservedRunsNothing(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting))
	g := h.granted(3)
	c := h.next(oneRefund)
	h.policy.Store(policy("policy-2", granting, func(p *approvers.Policy) { p.Mode = approvers.Observe }))
	h.notRun(c.Execution)
	h.wantOutcome(c.ID, approvers.OutcomeObserved)
	if g := h.grant(g.ID); g.Left != 3 {
		t.Errorf("%d left", g.Left)
	}
}

// TestAGrantBeyondTheAutomaticRuns checks calls above the limit of automatic runs. If a grant covers the calls, they
// need no approval. Runs under a grant count towards the limit.
func TestAGrantBeyondTheAutomaticRuns(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Tools[1].Grants = approvers.GrantTerms{Uses: 2, Within: 2 * time.Hour} }))
	for range 2 {
		c := h.next(`update_address {"to":"Elm Street"}`)
		h.run(c.Execution, "ok")
		h.answer(c.Turn)
	}
	r := h.wantAsked(h.next(`update_address {"to":"Elm Street"}`))
	g := h.grantMore(support, r.ID, 2, 2*time.Hour)
	h.run(r.Execution, "ok")
	h.answer(r.Turn)
	h.clock.pass(40 * time.Minute)
	for range 2 {
		c := h.next(`update_address {"to":"Oak Street"}`)
		h.run(c.Execution, "ok")
		if e := h.execution(c.Execution); e.Grant != g.ID {
			t.Error("not under the grant")
		}
		h.answer(c.Turn)
		h.clock.pass(15 * time.Minute)
	}
	h.wantAsked(h.next(`update_address {"to":"Oak Street"}`)) // the first two runs were more than an hour ago
}

// TestGrantMoreIsDenied checks attempts to give a grant that are denied. A denied attempt must not change the request.
func TestGrantMoreIsDenied(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*workflow.Click, *approvers.Allowance)
		code   approvers.Code
	}{
		"by the requester":    {func(c *workflow.Click, _ *approvers.Allowance) { c.Who = alice }, approvers.DeniedSelf},
		"by others":           {func(c *workflow.Click, _ *approvers.Allowance) { c.Who = bob }, approvers.DeniedNotMember},
		"not shown whole":     {func(c *workflow.Click, _ *approvers.Allowance) { c.Whole = false }, approvers.DeniedUnseen},
		"over something else": {func(c *workflow.Click, _ *approvers.Allowance) { c.Digest = "other" }, approvers.DeniedStale},
		"too many":            {func(_ *workflow.Click, a *approvers.Allowance) { a.Uses = 6 }, approvers.DeniedNoGrants},
		"too late":            {func(c *workflow.Click, _ *approvers.Allowance) { c.At = c.At.Add(time.Hour) }, approvers.DeniedLate},
		"below what is asked": {func(_ *workflow.Click, a *approvers.Allowance) {
			a.AtMost = map[string]json.RawMessage{"amount": json.RawMessage("10")}
		}, approvers.DeniedNoGrants},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.policy.Store(policy("policy-1", granting))
			r := h.ask(oneRefund)
			click, a := h.clickOn(lead, approvers.Approve, r.ID), approvers.Allowance{Uses: 2, Within: time.Hour}
			c.change(&click, &a)
			_, err := h.Grants.Give(h.ctx(), click, a)
			wantDenied(t, err, c.code)
			h.wantState(r.ID, approvers.Pending)
			h.wantKinds(r.ID, "proposed denied")
			if len(h.grants()) != 0 {
				t.Error("something was granted")
			}
		})
	}
}

// TestAGrantIsTakenBack checks that the person who gave a grant can revoke the grant once. The requester can't revoke
// the grant.
func TestAGrantIsTakenBack(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting))
	g := h.granted(3)
	_, err := h.Grants.Revoke(h.ctx(), h.clickGrant(alice, g.ID))
	wantDenied(t, err, approvers.DeniedNotMember)
	_, err = h.Grants.Revoke(h.ctx(), h.clickGrant(lead, "grant_other"))
	wantDenied(t, err, approvers.DeniedNotFound)
	h.revokeGrant(lead, g.ID)
	_, err = h.Grants.Revoke(h.ctx(), h.clickGrant(lead, g.ID))
	wantDenied(t, err, approvers.DeniedResolved)
	h.wantKinds("grant:"+g.ID, "granted denied granted denied")
	if g = h.grant(g.ID); g.State != approvers.GrantRevoked || g.ClosedBy != lead.ID {
		t.Errorf("%s by %s", g.State, g.ClosedBy)
	}
}

// TestANewGrantTakesTheOldOnesPlace checks that a new grant replaces an earlier similar grant. The remaining uses of
// the earlier grant are lost.
func TestANewGrantTakesTheOldOnesPlace(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting))
	first := h.granted(3)
	r := h.wantAsked(h.next(`issue_refund {"amount":80,"currency":"USD"}`))
	second := h.grantMore(lead, r.ID, 2, time.Hour)
	if g := h.grant(first.ID); g.State != approvers.GrantReplaced || g.Left != 3 {
		t.Errorf("the first is %s with %d left", g.State, g.Left)
	}
	if open := h.grants(); len(open) != 1 || open[0].ID != second.ID {
		t.Errorf("%d are open", len(open))
	}
}

// TestLastUseOfAGrant checks a grant with one use left. Only one of several calls in a step runs under the grant. A
// call that does not run does not count as a use.
func TestLastUseOfAGrant(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting))
	g := h.granted(1)
	cs := h.propose(h.say(alice, "three more").Turn, oneRefund, oneRefund, oneRefund)
	for _, c := range cs {
		if c.Request != "" {
			t.Fatal("a call was not expected to run under the grant")
		}
	}
	h.run(cs[1].Execution, "RF")
	h.wantAsked(cs[0])
	h.wantAsked(cs[2])
	if g = h.grant(g.ID); g.State != approvers.GrantUsed {
		t.Errorf("%s", g.State)
	}
}

// TestSixteenCallsAtOnce makes sixteen calls under a grant with five uses. Five calls run without approval. People are
// asked to approve the other eleven calls.
func TestSixteenCallsAtOnce(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting))
	g := h.granted(5)
	specs := slices.Repeat([]string{oneRefund}, 16)
	cs := h.propose(h.say(alice, "sixteen more").Turn, specs...)
	var mu sync.Mutex
	var ran []approvers.Execution
	var wg sync.WaitGroup
	for _, c := range cs {
		wg.Go(func() {
			e, run, err := h.Runs.Claim(h.ctx(), c.Execution)
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
		h.ok(h.Runs.Finish(h.ctx(), e.ID, true, "RF"))
	}
	asked := 0
	for _, c := range cs {
		if c = h.call(c.ID); c.Request != "" {
			h.wantState(c.Request, approvers.Pending)
			asked++
		}
	}
	if len(ran) != 5 || len(uses) != 5 || asked != 11 {
		t.Errorf("%d ran, as %d uses, and people were asked about %d; want 5, 5 and 11", len(ran), len(uses), asked)
	}
	if g = h.grant(g.ID); g.State != approvers.GrantUsed || g.Left != 0 {
		t.Errorf("%s with %d left", g.State, g.Left)
	}
}

// TestAnUnknownOutcomeUnderAGrant checks a run that has an unknown outcome and took place under a grant. The requesters
// and the person who gave the grant are asked for the outcome, and may report it.
func TestAnUnknownOutcomeUnderAGrant(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting))
	g := h.granted(2)
	c := h.next(oneRefund)
	if _, run, err := h.Runs.Claim(h.ctx(), c.Execution); !run || err != nil {
		t.Fatal(run, err)
	}
	h.ok(h.Runs.MarkUnknown(h.ctx(), c.Execution))
	if got := h.wanted(c.Execution); got != "unknown conversation:"+g.Conversation+", unknown user:U0002" {
		t.Errorf("shown: %s", got)
	}
	if left := h.grant(g.ID).Left; left != 1 {
		t.Errorf("%d left", left)
	}
	click := h.clickGrant(fin1, "")
	click.Execution = c.Execution
	wantDenied(t, h.Runs.Report(h.ctx(), click, workflow.Happened), approvers.DeniedNotRequester)
	click = h.clickGrant(lead, "")
	click.Execution = c.Execution
	h.ok(h.Runs.Report(h.ctx(), click, workflow.DidNot))
}
