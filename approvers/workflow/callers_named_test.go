package workflow_test

import (
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow"
)

// TestCallersNamed finds a client's requests by their calls and by further keys. Other clients find nothing.
func TestCallersNamed(t *testing.T) {
	h := newCallerHarness(t)
	state := func(s string) func(*workflow.CallerCall) { return func(c *workflow.CallerCall) { c.ClientState = s } }
	call := callerCall("a", `issue_refund {"amount":1}`, state("s-1"))
	last := func(c workflow.CallerCall, want string) {
		t.Helper()
		if id, err := h.Callers.Last(h.ctx(), c); err != nil || id != want {
			t.Errorf("the last request with the state %s is %q (%v), want %q", c.ClientState, id, err, want)
		}
	}
	named := func(c approvers.Client, key, want string) {
		t.Helper()
		if id, _, err := h.Callers.Named(h.ctx(), c, key); err != nil || id != want {
			t.Errorf("the key %s names %q (%v), want %q", key, id, err, want)
		}
	}
	last(call, "")
	first := h.callerAsks(call)
	last(call, first)
	again := callerCall("b", `issue_refund {"amount":1}`, state("s-2"))
	second := h.callerAsks(again)
	last(again, second)
	last(call, first) // Last still finds the first request
	last(callerCall("", `issue_refund {"amount":1}`, state("s-3")), "")
	last(callerCall("", `issue_refund {"amount":2}`, state("s-1")), "")
	foreign := call
	foreign.Client = other
	last(foreign, "")
	person := call
	person.Client.ActsFor = "U0300"
	last(person, "")

	named(ci, "a", first)
	named(ci, "run", "")
	for range 2 {
		h.ok(h.Callers.Name(h.ctx(), ci, "run", first, ""))
		named(ci, "run", first)
	}
	h.ok(h.Callers.Name(h.ctx(), ci, "run", second, ""))
	named(ci, "run", second)
	named(other, "run", "")
	if err := h.Callers.Name(h.ctx(), ci, "a", second, ""); err == nil {
		t.Error("the key of a request was moved to another request")
	}
	wantProblem(t, h.Callers.Name(h.ctx(), other, "run", first, ""), workflow.CallerNotFound)
	last(again, second) // a further key of the first request does not change the result of Last

	h.approve(lead, second)
	h.ok(h.claims(second))
	h.ok(h.Callers.Report(h.ctx(), ci, second, "", approvers.ExecutionSucceeded, "done"))
	h.runs(second, approvers.ExecutionSucceeded)
	named(ci, "run", second)
	h.reopen()
	named(ci, "run", second)
	last(again, second)
	third := h.callerAsks(callerCall("c", `issue_refund {"amount":1}`, state("s-1")))
	last(call, third)
	last(again, "") // the second request has ended, so Last no longer finds it

	h.ok(h.Callers.Withdraw(h.ctx(), ci, first, ""))
	h.ok(h.Callers.Withdraw(h.ctx(), ci, third, ""))
	h.policy.Store(policy("policy-1", withClients, func(p *approvers.Policy) { p.Retention = approvers.Retention{Conversations: 90 * aDay} }))
	h.clock.pass(91 * aDay)
	h.retain(5, 0)
	for _, key := range []string{"a", "b", "c", "run"} {
		named(ci, key, "")
	}
	h.ok(h.store.Check(h.ctx()))
}

// After a backup was restored, Last still finds a request that was open in the backup. So the agent that repeats the call
// learns that the call may have run.
func TestLastRequestAfterARestore(t *testing.T) {
	h := newCallerHarness(t)
	call := callerCall("a", `issue_refund {"amount":1}`, func(c *workflow.CallerCall) { c.ClientState = "s-1" })
	id := h.callerAsks(call)
	h.ok(h.History.Restored(h.ctx(), fromBackup))
	if last, err := h.Callers.Last(h.ctx(), call); err != nil || last != id || !h.callerView("ci", id).Lost() {
		t.Errorf("the last request is %q (%v), want %q, which is lost", last, err, id)
	}
}

// A key with which a call was proposed refers to the call's first run, also if people have asked for the call again. A
// key from Name refers to the run that was given to Name.
func TestNamedRuns(t *testing.T) {
	h := newCallerHarness(t)
	id := h.callerAsks(callerCall("a", `issue_refund {"amount":1}`, func(c *workflow.CallerCall) { c.Edits = true }))
	run := func() string { return h.callerView("ci", id).Execution.ID }
	named := func(key, want string) {
		t.Helper()
		if got, run, err := h.Callers.Named(h.ctx(), ci, key); err != nil || got != id || run != want {
			t.Errorf("the key %s names %q and the run %q (%v), want the run %q", key, got, run, err, want)
		}
	}
	first := run()
	for range 2 {
		h.approve(lead, h.callerView("ci", id).Request.ID)
		h.ok(h.claims(id))
		h.ok(h.Callers.Report(h.ctx(), ci, id, run(), approvers.ExecutionUnknown, ""))
		h.ok(h.Callers.Name(h.ctx(), ci, "b", id, run()))
		last := run()
		h.ok(h.Runs.RetryUnknown(h.ctx(), workflow.Click{Who: lead, Execution: last, At: h.clock.Now()}))
		named("a", first)
		named("b", last)
	}
	_, err := h.Requests.Decide(h.ctx(), h.edit(lead, h.callerView("ci", id).Request.ID, `{"amount":2}`)) // the edit makes another run
	h.ok(err)
	named("a", first)
}
