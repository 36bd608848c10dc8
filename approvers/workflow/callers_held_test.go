package workflow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// heldCall returns a call of the client ci without a key. A call over MCP has no key.
func heldCall(spec string, change ...func(*workflow.CallerCall)) workflow.CallerCall {
	c := callerCall("", spec, func(c *workflow.CallerCall) { c.Body, c.Mode, c.Edits, c.Waits = "", approvers.ExecuteMode, true, true })
	for _, f := range change {
		f(&c)
	}
	return c
}

// h.repeats proposes a call. The parameter want is the id of the request that the call must repeat. If this parameter
// is "", the call must become a new request.
func (h *harness) repeats(c workflow.CallerCall, want string) string {
	h.t.Helper()
	id, again, err := h.Callers.Propose(h.ctx(), c)
	h.ok(err)
	if again != (want != "") || want != "" && id != want {
		h.t.Fatalf("the call became %s (again: %v), want %q", id, again, want)
	}
	return id
}

// A client's call without a key repeats the client's identical earlier call until the result of the earlier call is
// delivered. A call with a key and a call without a key never repeat each other.
func TestCallersRepeat(t *testing.T) {
	h := newCallerHarness(t)
	const spec = `issue_refund {"amount": 5}`
	executes := func(c *workflow.CallerCall) { c.Mode = approvers.ExecuteMode }
	first := h.repeats(heldCall(spec), "")
	h.repeats(heldCall(spec), first)
	h.repeats(heldCall(spec, func(c *workflow.CallerCall) { c.Client = other }), "")
	keyed := h.repeats(callerCall("k", spec, executes), "")
	h.repeats(heldCall(spec), first)
	h.ok(h.Callers.Delivered(h.ctx(), ci, first)) // no effect: a waiting request has no result to deliver
	h.repeats(heldCall(spec), first)
	h.ok(h.Callers.Withdraw(h.ctx(), ci, first, ""))
	h.repeats(heldCall(spec), first)
	wantProblem(t, h.Callers.Delivered(h.ctx(), other, first), workflow.CallerNotFound)
	h.ok(h.Callers.Delivered(h.ctx(), ci, first))
	h.ok(h.Callers.Undelivered(h.ctx(), ci, first))
	h.repeats(heldCall(spec), first)
	h.ok(h.Callers.Delivered(h.ctx(), ci, first))
	second := h.repeats(heldCall(spec), "")

	// A rejection applies to identical calls with a key, and to identical calls without a key.
	h.reject(lead, second)
	h.ok(h.Callers.Delivered(h.ctx(), ci, second))
	h.repeats(heldCall(spec), second)
	if id := h.callerAsks(callerCall("l", spec, executes)); id != second {
		t.Errorf("with a key, the rejected call became %s", id)
	}
	h.clock.pass(ci.RejectionHolds)
	third := h.repeats(heldCall(spec), "")
	h.ok(h.Callers.Withdraw(h.ctx(), ci, third, ""))
	h.ok(h.Callers.Delivered(h.ctx(), ci, third))
	h.ok(h.Callers.Withdraw(h.ctx(), ci, keyed, ""))
	h.ok(h.Callers.Delivered(h.ctx(), ci, keyed))
	if v := h.callerView("ci", keyed); !v.Conversation.Caller.Delivered.IsZero() {
		t.Error("a request with a key is marked as delivered")
	}
}

// Two calls are identical if their arguments have the same JSON value, even if the bytes differ. The bytes of the first
// call are stored, shown and run.
func TestCallersRepeatInOtherWriting(t *testing.T) {
	h := newCallerHarness(t)
	executes := func(c *workflow.CallerCall) { c.Mode = approvers.ExecuteMode }
	const spec = `issue_refund {"amount": 100, "note": "é"}`
	first := h.repeats(heldCall(spec), "")
	writings := []string{`issue_refund {"note":"\u00e9","amount":1e2}`, `issue_refund { "amount" : 100.0, "note" : "é" }`}
	for _, w := range writings {
		h.repeats(heldCall(w), first)
	}
	h.reject(lead, first)
	h.ok(h.Callers.Delivered(h.ctx(), ci, first))
	for i, w := range writings {
		h.repeats(heldCall(w), first)
		if id := h.callerAsks(callerCall(fmt.Sprint("k", i), w, executes)); id != first {
			t.Errorf("with a key, %s became %s, although it was rejected", w, id)
		}
	}
	if v := h.callerView("ci", first); "issue_refund "+v.Call.Args != spec || "issue_refund "+string(v.Execution.Args) != spec {
		t.Errorf("the call has the arguments %s, its run %s", v.Call.Args, v.Execution.Args)
	}
	h.repeats(heldCall(`issue_refund {"amount": 100, "note": "e"}`), "")
	h.repeats(heldCall(`issue_refund {"amount": 1000, "note": "é"}`), "")
}

// An older version of Countersign made the fingerprint of a call from the exact bytes of the arguments. A
// repetition must find this call.
func TestCallersRepeatOfAnOlderStore(t *testing.T) {
	h := newCallerHarness(t)
	const spec = `issue_refund {"note": "x", "amount": 100}`
	older := func(id string, parts ...string) {
		t.Helper()
		input := ""
		for _, p := range parts {
			input += fmt.Sprintf("%d:%s,", len(p), p)
		}
		h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
			conv, err := tx.Conversation(h.callerView("ci", id).Conversation.ID)
			if err != nil {
				return err
			}
			conv.Place = "caller/ci/" + hashText([]byte(input))
			return tx.PutConversation(conv)
		}))
	}
	_, args, _ := strings.Cut(spec, " ")
	first := h.repeats(heldCall(spec), "")
	older(first, "call", "execute", "issue_refund", args, "", "without a key", "")
	h.repeats(heldCall(spec), first)
	h.reject(lead, first)
	h.ok(h.Callers.Delivered(h.ctx(), ci, first))
	h.repeats(heldCall(spec), first)
	h.clock.pass(ci.RejectionHolds)
	second := h.repeats(heldCall(spec), "")

	// The older version does not find the second request, and stores the repeated call as a third request. Both versions
	// then continue the third request.
	h.clock.pass(time.Second)
	third := h.repeats(heldCall(`issue_refund {"note": "y", "amount": 100}`), "")
	older(third, "call", "execute", "issue_refund", args, "", "without a key", "")
	h.repeats(heldCall(spec), third)
	h.ok(h.Callers.Withdraw(h.ctx(), ci, third, ""))
	h.ok(h.Callers.Delivered(h.ctx(), ci, third))
	h.ok(h.Callers.Withdraw(h.ctx(), ci, second, ""))
	h.repeats(heldCall(spec), "")

	keyed := h.callerAsks(callerCall("k", spec))
	older(keyed, "call", "decide", "issue_refund", args, "")
	h.reject(lead, keyed)
	if id := h.callerAsks(callerCall("l", spec)); id != keyed {
		t.Errorf("with another key, the rejected call became %s", id)
	}
}

// isRunDue reports whether a call has the timer of its run.
func (h *harness) isRunDue(id string) (due bool) {
	h.t.Helper()
	execution := h.callerView("ci", id).Execution.ID
	h.ok(h.store.View(h.ctx(), func(r store.Reader) error {
		_, err := r.Timer(store.TimerRun, execution)
		due = err == nil
		return store.IgnoreNotFound(err)
	}))
	return due
}

// An approved call starts when its caller asks for the result. If the policy says when_caller_left: run, or the caller
// has said that it does not wait for the result, the call starts immediately after the approval.
func TestCallersStart(t *testing.T) {
	h := newCallerHarness(t)
	due := h.isRunDue
	id := h.repeats(heldCall(`issue_refund {"amount": 1}`), "")
	h.ok(h.Callers.Start(h.ctx(), ci, id))
	if due(id) {
		t.Fatal("a call that waits for people is started")
	}
	h.approve(lead, id)
	if due(id) {
		t.Fatal("the call runs without its caller")
	}
	wantProblem(t, h.Callers.Start(h.ctx(), other, id), workflow.CallerNotFound)
	h.ok(h.Callers.Start(h.ctx(), ci, id))
	h.ok(h.Callers.Start(h.ctx(), ci, id))
	if !due(id) {
		t.Error("the call does not run, although its caller is there")
	}
	task := h.repeats(heldCall(`issue_refund {"amount": 3}`, func(c *workflow.CallerCall) { c.Waits = false }), "")
	h.approve(lead, task)
	if !due(task) {
		t.Error("the call of a caller that does not wait is not run")
	}
	h.policy.Store(policy("policy-2", withClients, func(p *approvers.Policy) {
		for i := range p.Tools {
			p.Tools[i].RunsUnawaited = true
		}
	}))
	run := h.repeats(heldCall(`issue_refund {"amount": 4}`), "")
	h.approve(lead, run)
	if !due(run) {
		t.Error("with when_caller_left: run, the call is not run")
	}
}

// If a connection of the client holds the call, the transaction of the approval starts the call. The connection does not
// count if it has ended, if it only watches, or if the client's credentials have changed.
func TestCallersStartWhileHeld(t *testing.T) {
	h := newCallerHarness(t)
	changed := ci
	changed.Token = "the hash of an earlier token"
	for i, c := range []struct {
		name  string
		wait  func(id string) (stop func())
		after bool // the connection has ended before the approval
		runs  bool
	}{
		{"held", func(id string) func() { _, stop := h.Callers.Hold(ci, id); return stop }, false, true},
		{"ended", func(id string) func() { _, stop := h.Callers.Hold(ci, id); return stop }, true, false},
		{"watched", func(id string) func() { _, stop := h.Callers.Watch(id); return stop }, false, false},
		{"other credentials", func(id string) func() { _, stop := h.Callers.Hold(changed, id); return stop }, false, false},
	} {
		id := h.repeats(heldCall(fmt.Sprintf(`issue_refund {"amount": 1%d}`, i)), "")
		stop := c.wait(id)
		if c.after {
			stop()
		}
		h.approve(lead, id)
		stop()
		if got := h.isRunDue(id); got != c.runs {
			t.Errorf("%s: the run is due after the approval: %v, want %v", c.name, got, c.runs)
		}
	}
	decided := h.callerAsks(callerCall("k", `issue_refund {"amount": 2}`))
	_, stop := h.Callers.Hold(ci, decided)
	defer stop()
	if h.approve(lead, decided); h.isRunDue(decided) {
		t.Error("a call that its client runs itself is started")
	}
}

// An approved call expires if its caller does not ask for the result in time.
func TestCallersStartTooLate(t *testing.T) {
	h := newCallerHarness(t)
	late := h.repeats(heldCall(`issue_refund {"amount": 2}`), "")
	h.approve(lead, late)
	h.clock.pass(runWithin)
	h.due()
	h.ok(h.Callers.Start(h.ctx(), ci, late))
	if v := h.callerView("ci", late); v.Call.Outcome != approvers.OutcomeExpired || v.Execution.State != approvers.ExecutionNone {
		t.Errorf("without its caller, the call ended as %q, and the run is %s", v.Call.Outcome, v.Execution.State)
	}
}

// The gateway estimates how long a client waits. The estimate needs two hang-ups after about the same time. A hang-up
// after a very short time is an interruption, and is ignored. Several hang-ups at the same moment count as one hang-up.
func TestCallersPatience(t *testing.T) {
	h := newCallerHarness(t)
	hangUp := func(after, want time.Duration) {
		t.Helper()
		h.ok(h.Callers.HungUp(h.ctx(), ci, after))
		got, err := h.Views.Patience(h.ctx(), "ci")
		h.ok(err)
		if got != want {
			t.Errorf("after a hang-up at %s the patience is %s, want %s", after, got, want)
		}
		h.clock.pass(time.Minute)
	}
	hangUp(60*time.Second, 0)
	hangUp(2*time.Second, 0)
	hangUp(2*time.Second, 0)
	hangUp(17*time.Second, 0)
	hangUp(60*time.Second+100*time.Millisecond, 48*time.Second)
	hangUp(5*time.Second, 48*time.Second)
	hangUp(5*time.Second+100*time.Millisecond, 4*time.Second)
	if got, err := h.Views.Patience(h.ctx(), "other"); err != nil || got != 0 {
		t.Errorf("another client's patience is %s (%v)", got, err)
	}
	h.clock.pass(7 * 24 * time.Hour)
	hangUp(30*time.Second, 0)
	h.ok(h.Callers.HungUp(h.ctx(), ci, 40*time.Second))
	h.ok(h.Callers.HungUp(h.ctx(), ci, 40*time.Second)) // at the same moment
	hangUp(2*time.Second, 0)
	gone := ci
	gone.Token = "the hash of an earlier token"
	wantProblem(t, h.Callers.HungUp(h.ctx(), gone, time.Minute), workflow.CallerUnknown)
}
