package workflow_test

import (
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// The conversation of a call is damaged. An identical call without a key gets the stored result until the result is
// delivered, and is then a new request. With the same key, the call stays the same request.
func TestCallersConversationDamaged(t *testing.T) {
	executes := func(c *workflow.CallerCall) { c.Mode = approvers.ExecuteMode }
	forPerson := func(c *workflow.CallerCall) { c.Client.ActsFor = "U0300" }
	const refund = `issue_refund {"amount": 5}`
	for name, call := range map[string]workflow.CallerCall{
		"automatic": heldCall(`search_orders {}`), "approved": heldCall(refund), "for a person": heldCall(refund, forPerson), "key": callerCall("k", refund, executes),
	} {
		t.Run(name, func(t *testing.T) {
			h := newCallerHarness(t)
			id := h.repeats(call, "")
			v := h.callerView("ci", id)
			if v.Request != nil {
				h.approve(lead, id)
			}
			h.run(v.Execution.ID, "done")
			h.spoil("conversations", v.Conversation.ID)
			_, err := h.Views.Caller(h.ctx(), "ci", id)
			h.Callers.Mend(h.ctx(), err)
			h.repeats(call, id)
			h.ok(h.Callers.Delivered(h.ctx(), call.Client, id))
			h.clock.pass(24 * time.Hour)
			want := ""
			if call.Key != "" {
				want = id
			}
			h.repeats(call, want)
		})
	}
}

// A token proves that a client acts for a person, and the conversation of an automatic call is damaged. Afterwards, the
// call still belongs to this person only.
func TestCallersPersonDamaged(t *testing.T) {
	h := newCallerHarness(t, withOAuth)
	own := h.policy.Load().Clients[0]
	forUser := func(user string) approvers.Client {
		c := own
		c.ActsFor = user
		return c
	}
	call := func(key string, c approvers.Client) workflow.CallerCall {
		return callerCall(key, `search_orders {}`, func(call *workflow.CallerCall) { call.Client = c })
	}
	id, clients := h.callerAsks(call("k", forUser("U0300"))), h.callerAsks(call("k", own))
	for _, id := range []string{id, clients} {
		v := h.callerView("ci", id)
		h.spoil("conversations", v.Conversation.ID)
		_, err := h.Views.Caller(h.ctx(), "ci", id)
		h.Callers.Mend(h.ctx(), err)
	}
	for _, c := range []approvers.Client{own, forUser("U0200"), forUser("U0100")} {
		wantProblem(t, h.Callers.Withdraw(h.ctx(), c, id, ""), workflow.CallerNotFound)
	}
	wantProblem(t, h.Callers.Withdraw(h.ctx(), forUser("U0300"), clients, ""), workflow.CallerNotFound)
	h.repeats(call("k", forUser("U0300")), id)
	h.repeats(call("k", own), clients)
	wantProblem(t, h.Callers.Withdraw(h.ctx(), forUser("U0300"), id, ""), workflow.CallerOver) // it was voided
	wantProblem(t, h.Callers.Withdraw(h.ctx(), own, clients, ""), workflow.CallerOver)
}

// A client names a person, and its automatic call has an unknown outcome. Then the conversation is damaged, and somebody
// asks for the call again. The named person can't approve the new request. If the conversation was rebuilt from a record
// that does not name the person, the call can't be asked for again, and belongs to no token if the client's tokens can
// name people.
func TestCallersClaimedPersonDamaged(t *testing.T) {
	for _, lost := range []bool{false, true} {
		h := newCallerHarness(t, withOAuth, func(p *approvers.Policy) { p.Approvers[0].Members = users("U0001", "U0300") })
		h.tools.effect("update_address", approvers.Unprotected)
		own := h.policy.Load().Clients[0]
		id := h.callerAsks(callerCall("k", `update_address {}`, func(c *workflow.CallerCall) {
			c.Client, c.For, c.Mode = own, "U0300", approvers.ExecuteMode
		}))
		v := h.callerView("ci", id)
		_, run, err := h.Runs.Claim(h.ctx(), v.Execution.ID)
		if h.ok(err); !run {
			t.Fatal("it does not run")
		}
		h.ok(h.Runs.MarkUnknown(h.ctx(), v.Execution.ID))
		facts, _ := h.lastFacts(v.Execution.ID, approvers.AuditProposed)
		if facts["for"] != "T0001/U0300" || facts["proven"] != "" {
			t.Errorf("the call is recorded as %v", facts)
		}
		h.spoil("conversations", v.Conversation.ID)
		_, err = h.Views.Caller(h.ctx(), "ci", id)
		h.Callers.Mend(h.ctx(), err)
		if lost {
			h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
				conv := h.callerView("ci", id).Conversation
				conv.Caller.Caller.For, conv.Caller.Caller.PersonLost = "", true
				return tx.PutConversation(conv)
			}))
		}
		err = h.again(alice, v.Execution.ID)
		if lost {
			if d := wantDenied(t, err, approvers.DeniedNotAgain); !contains(d.Detail, "the person for whom the agent asked is lost") {
				t.Errorf("the reason is %s", d.Detail)
			}
			wantProblem(t, h.Callers.Withdraw(h.ctx(), own, id, ""), workflow.CallerNotFound)
			continue
		}
		h.ok(err)
		retry := h.callerView("ci", id).Request.ID
		_, err = h.Requests.Decide(h.ctx(), h.clickOn(person("U0300"), approvers.Approve, retry))
		wantDenied(t, err, approvers.DeniedSelf)
		h.approve(support, retry)
	}
}

// The person of a call without a key is lost, so the client can't read the call's result. An identical call is a new
// request, even if people rejected the earlier call shortly before.
func TestCallersRepeatPersonLost(t *testing.T) {
	for _, rejected := range []bool{false, true} {
		h := newCallerHarness(t, withOAuth)
		call := heldCall(`issue_refund {"amount": 5}`, func(c *workflow.CallerCall) { c.Client = h.policy.Load().Clients[0] })
		id := h.repeats(call, "")
		if rejected {
			h.reject(lead, id)
		}
		h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
			conv := h.callerView("ci", id).Conversation
			conv.Caller.Caller.PersonLost = true
			return tx.PutConversation(conv)
		}))
		next := h.repeats(call, "")
		h.repeats(call, next)
	}
}

// The record of a turn is damaged after its run ended with an unknown outcome, and somebody asks again for the call. The
// owner of a client, and the author of a message in Slack, can't approve the call. Only the author can ask again.
func TestRetryAfterDamagedTurn(t *testing.T) {
	t.Run("caller", func(t *testing.T) {
		h := newCallerHarness(t, func(p *approvers.Policy) { p.Approvers[0].Members = append(p.Approvers[0].Members, users("U0100")...) })
		h.tools.effect("update_address", approvers.Unprotected)
		id := h.callerAsks(callerCall("k", `update_address {}`, func(c *workflow.CallerCall) { c.Mode = approvers.ExecuteMode }))
		v := h.callerView("ci", id)
		_, run, err := h.Runs.Claim(h.ctx(), v.Execution.ID)
		if h.ok(err); !run {
			t.Fatal("it does not run")
		}
		h.ok(h.Runs.MarkUnknown(h.ctx(), v.Execution.ID))
		h.spoil("turns", v.Call.Turn)
		_, err = h.Views.Caller(h.ctx(), "ci", id)
		h.Callers.Mend(h.ctx(), err)
		h.ok(h.again(alice, v.Execution.ID))
		retry := h.callerView("ci", id).Request.ID
		_, err = h.Requests.Decide(h.ctx(), h.clickOn(person("U0100"), approvers.Approve, retry))
		wantDenied(t, err, approvers.DeniedSelf)
	})
	t.Run("message of a stopped turn", func(t *testing.T) { // the next turn also answers this message
		h := newHarness(t)
		h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
			p.Approvers[0].Members = append(p.Approvers[0].Members, users(bob.ID.User())...)
		}))
		h.tools.effect("update_address", approvers.Unprotected)
		h.ok(h.stop(bob, h.say(bob, "hello").Turn))
		c := h.lost(`update_address {}`)
		h.spoil("turns", c.Turn)
		h.ok(h.again(alice, c.Execution))
		_, err := h.Requests.Decide(h.ctx(), h.clickOn(bob, approvers.Approve, h.call(c.ID).Request))
		wantDenied(t, err, approvers.DeniedSelf)
	})
	t.Run("Slack", func(t *testing.T) {
		h := newHarness(t)
		h.policy.Store(policy("policy-1", func(p *approvers.Policy) {
			p.Approvers[0].Members = append(p.Approvers[0].Members, users(alice.ID.User())...)
		}))
		h.tools.effect("update_address", approvers.Unprotected)
		c := h.lost(`update_address {}`)
		h.spoil("turns", c.Turn)
		h.ok(h.again(alice, c.Execution))
		_, err := h.Requests.Decide(h.ctx(), h.clickOn(alice, approvers.Approve, h.call(c.ID).Request))
		wantDenied(t, err, approvers.DeniedSelf)
	})
}

// The facts of the record about the proposal show for whom a caller acted. Version 0.1.0 recorded only a proven person.
func TestRestorePeople(t *testing.T) {
	const client, owner, user = "caller:ci", "T/U1", "T/U2"
	for _, c := range []struct {
		requesters, person, proven string
		want                       approvers.Caller
	}{
		{client + "," + owner, "nobody", "", approvers.Caller{Owner: owner}},
		{client + "," + owner, user, "", approvers.Caller{Owner: owner, For: user}},
		{client + "," + owner + "," + user, user, "true", approvers.Caller{Owner: owner, For: user, Proven: true}},
		{client + "," + owner, owner, "true", approvers.Caller{Owner: owner, For: owner, Proven: true}},
		{client + "," + owner + "," + user, "", "", approvers.Caller{Owner: owner, For: user, Proven: true}},
		{client + "," + owner, "", "", approvers.Caller{Owner: owner, PersonLost: true}},
		{"", "", "", approvers.Caller{PersonLost: true}},
	} {
		got := approvers.Caller{Name: "ci"}
		workflow.RestorePeople(&got, map[string]string{"requesters": c.requesters, "for": c.person, "proven": c.proven})
		if c.want.Name = "ci"; got != c.want {
			t.Errorf("%s for %s (proven: %s) is %+v", c.requesters, c.person, c.proven, got)
		}
	}
}

// The conversation, the request and the run of a call are damaged together. The call is closed, and its key still names
// it. If the conversation was lost before, the call and its turn are closed, too.
func TestCallersAllButCallDamaged(t *testing.T) {
	const refund, search = `issue_refund {"amount": 5}`, `search_orders {}`
	for _, c := range []struct {
		name, spec  string
		runs, early bool // the run has begun; the conversation was lost before
	}{
		{"pending", refund, false, false}, {"running", refund, true, false}, {"automatic", search, false, false}, {"automatic running", search, true, false},
		{"no conversation", refund, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newCallerHarness(t)
			id := h.callerAsks(callerCall("k", c.spec))
			v := h.callerView("ci", id)
			if c.runs && v.Request != nil {
				h.approve(lead, id)
			}
			if c.runs {
				h.ok(h.claims(id))
			}
			records := []string{"conversations", v.Conversation.ID, "executions", v.Execution.ID}
			if v.Request != nil {
				records = append(records, "requests", id)
			}
			h.spoil(records...)
			if c.early {
				h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
					_, _, err := tx.(store.SetAside).SetAside("conversations", v.Conversation.ID)
					return err
				}))
			}
			for _, read := range []func() error{
				func() error { _, err := h.Views.Caller(h.ctx(), "ci", id); return err },
				func() error { _, err := h.Views.Request(h.ctx(), id); return err },
			} {
				for range 3 { // each read closes damaged records
					h.Callers.Mend(h.ctx(), read())
				}
			}
			if !c.early {
				h.repeats(callerCall("k", c.spec), id)
			}
			if c.runs {
				h.runs(id, approvers.ExecutionUnknown)
				h.clock.pass(expiresAfter)
				h.due() // nobody reports the outcome
				h.wantOutcome(id, approvers.OutcomeUnknown)
			} else {
				h.wantOutcome(id, approvers.OutcomeVoided)
			}
			h.wantTurn(v.Call.Turn, approvers.TurnAnswered)
			if ids, err := h.Views.CallerPending(h.ctx(), "ci"); err != nil || len(ids) > 0 {
				t.Errorf("the client's pending requests are %v, %v", ids, err)
			}
		})
	}
}
