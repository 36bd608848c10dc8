package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// byOther makes a call a call of the client other.
func byOther(c *workflow.CallerCall) { c.Client = other }

// refused makes a client propose a call, which must fail with the given code. The function returns the problem.
func (h *harness) refused(c workflow.CallerCall, code workflow.CallerCode) *workflow.CallerProblem {
	h.t.Helper()
	_, _, err := h.Callers.Propose(h.ctx(), c)
	wantProblem(h.t, err, code)
	var p *workflow.CallerProblem
	errors.As(err, &p)
	return p
}

// The client's cap requests counts only calls that people were asked about. A call beyond the cap is not stored. The cap
// of one client does not affect another client, and ends with its period.
func TestCallersRequestsCap(t *testing.T) {
	h := newCallerHarness(t, func(p *approvers.Policy) {
		for i := range p.Clients {
			p.Clients[i].Requests = approvers.Limit{Count: 2, Per: time.Hour}
		}
	})
	for i := range 3 {
		h.callerAsks(callerCall(fmt.Sprint("low ", i), fmt.Sprintf(`search_orders {"n": %d}`, i)))
	}
	first := h.callerAsks(callerCall("1", `issue_refund {"amount": 1}`))
	h.reject(lead, first)
	h.callerAsks(callerCall("again", `issue_refund {"amount": 1}`)) // the rejection holds, so nobody is asked
	h.clock.pass(time.Minute)
	h.callerAsks(callerCall("2", `issue_refund {"amount": 2}`))
	third := callerCall("3", `issue_refund {"amount": 3}`)
	if p := h.refused(third, workflow.CallerOften); p.Detail != "the client may ask people 2/h" || p.Again != time.Minute {
		t.Errorf("the problem is %+v", p)
	}
	h.callerAsks(callerCall("3", `issue_refund {"amount": 3}`, byOther))
	h.clock.pass(time.Hour - time.Minute)
	h.callerAsks(third)
	h.refused(callerCall("4", `issue_refund {"amount": 4}`), workflow.CallerOften)
}

// The budget of calls for a day is the budget of the client, for whomever the client acts. Another client and the
// client's owner have budgets of their own.
func TestCallersBudget(t *testing.T) {
	h := newCallerHarness(t, func(p *approvers.Policy) { p.Budgets.Calls = 2 })
	h.callerAsks(callerCall("1", `search_orders {"n": 1}`))
	h.callerAsks(callerCall("2", `search_orders {"n": 2}`, func(c *workflow.CallerCall) { c.For = "U0300" }))
	third := callerCall("3", `search_orders {"n": 3}`, func(c *workflow.CallerCall) { c.For = "U0400" })
	p := h.refused(third, workflow.CallerBudget)
	if _, ends := approvers.Day(h.clock.Now()); p.Again != ends.Sub(h.clock.Now()) || p.Again <= 0 {
		t.Errorf("the problem is %+v", p)
	}
	h.callerAsks(callerCall("3", `search_orders {"n": 3}`, byOther))
	turn := h.say(alice, "look").Turn // alice owns the client
	h.run(h.propose(turn, `search_orders {}`)[0].Execution, "ok")
	h.clock.pass(p.Again)
	h.callerAsks(third)
}

// The policy's cap for a requester counts the requests of each client separately, and not those of the client's owner.
// The call beyond the cap needs a typed value.
func TestCallersRequesterCap(t *testing.T) {
	h := newCallerHarness(t, func(p *approvers.Policy) { p.Caps.Requester = approvers.Limit{Count: 1, Per: time.Hour} })
	first, second := h.callerAsks(callerCall("1", `issue_refund {"amount": 1}`)), h.callerAsks(callerCall("2", `issue_refund {"amount": 2}`))
	others := h.callerAsks(callerCall("1", `issue_refund {"amount": 3}`, byOther))
	owners := h.propose(h.say(alice, "a refund").Turn, `issue_refund {"amount": 4}`)[0].Request // alice owns the client ci
	for id, want := range map[string]string{
		first: "", second: "CI bot has caused 2 requests within an hour; the policy's cap is 1", others: "", owners: "",
	} {
		if r := h.request(id); r.StepUp != want {
			t.Errorf("the request of %s for %s asks for a typed value because %q, want %q", r.Facts.Asker, r.Args, r.StepUp, want)
		}
	}
}

// If the client's agent only observes a tool, the client's call does not run, and nobody is asked. The client may not
// claim the call. Clients of other agents are not affected.
func TestCallersObserved(t *testing.T) {
	observe := approvers.Observe
	h := newCallerHarness(t, func(p *approvers.Policy) {
		p.Agents = append(p.Agents, approvers.Agent{Name: "pilot", Tools: []string{"*"}, Overrides: map[string]approvers.Override{"issue_refund": {Mode: &observe}}})
		p.Clients[1].Agent = "pilot"
	})
	asked := h.callerAsks(callerCall("1", `issue_refund {"amount": 1}`))
	if r := h.request(asked); r.State != approvers.Pending {
		t.Errorf("the call of another agent's client is %s", r.State)
	}
	id := h.callerAsks(callerCall("1", `issue_refund {"amount": 1}`, byOther))
	v := h.callerView("other", id)
	if v.Call.Outcome != approvers.OutcomeObserved || v.Request != nil || !contains(v.Call.Result, "it would have waited for Team Lead") {
		t.Errorf("the call ended as %q: %s", v.Call.Outcome, v.Call.Result)
	}
	wantProblem(t, h.Callers.Claim(h.ctx(), other, id, hashText(v.Execution.Args)), workflow.CallerNotApproved)
	h.wantKinds(v.Execution.ID, "proposed returned")
}

// A call that needs no approval may need approval when it is claimed or run, because the limit of automatic runs is
// reached. The caps of the client also hold for the requests of these calls. Beyond a cap, the call is refused, and
// nobody is asked.
func TestCallersCapsAtTheClaim(t *testing.T) {
	for name, c := range map[string]struct {
		mode   approvers.CallerMode
		change func(*approvers.Client)
		want   string
	}{
		"requests":                {approvers.DecideMode, func(c *approvers.Client) { c.Requests = approvers.Limit{Count: 2, Per: time.Hour} }, "the client may ask people 2/h"},
		"pending":                 {approvers.DecideMode, func(c *approvers.Client) { c.MaxPending = 2 }, "2 requests wait for people already"},
		"pending in execute mode": {approvers.ExecuteMode, func(c *approvers.Client) { c.MaxPending = 2 }, "2 requests wait for people already"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newCallerHarness(t, func(p *approvers.Policy) { c.change(&p.Clients[0]) })
			var ids []string
			for i := range 6 { // the policy lets two of them run in an hour
				ids = append(ids, h.callerAsks(callerCall(fmt.Sprint(i), fmt.Sprintf(`update_address {"n": %d}`, i), func(p *workflow.CallerCall) { p.Mode = c.mode })))
			}
			for i, id := range ids {
				claim := h.claims
				if c.mode == approvers.ExecuteMode {
					claim = func(id string) error {
						_, run, err := h.Runs.Claim(h.ctx(), h.call(id).Execution)
						if err == nil && !run {
							err = &workflow.CallerProblem{Code: workflow.CallerNotApproved}
						}
						return err
					}
				}
				if err := claim(id); i < 2 {
					h.ok(err)
					continue
				} else {
					wantProblem(t, err, workflow.CallerNotApproved)
				}
				got := h.call(id)
				if i < 4 {
					if got.Outcome != "" || h.request(id).State != approvers.Pending {
						t.Errorf("call %d does not wait for people: %+v", i, got)
					}
					continue
				}
				if got.Outcome != approvers.OutcomeRefused || got.Request != "" || !contains(got.Result, c.want) {
					t.Errorf("call %d, beyond the cap, has the request %q, and ended as %q: %s", i, got.Request, got.Outcome, got.Result)
				}
				wantProblem(t, h.claims(id), map[bool]workflow.CallerCode{true: workflow.CallerNotApproved, false: workflow.CallerMode}[c.mode == approvers.DecideMode])
			}
		})
	}
}

// stuck is a store whose transactions wait until they may go on.
type stuck struct {
	store.Store
	waiting atomic.Int32
	goOn    chan struct{}
}

func (s *stuck) Update(ctx context.Context, fn func(store.Tx) error) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case <-s.goOn:
		return s.Store.Update(ctx, fn)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// While many calls of one client wait for the store, only a few of them are ahead of another client's call.
func TestCallersShareTheStore(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		w.policy.Store(policy("policy-1", flooding))
		s := &stuck{Store: w.store, goOn: make(chan struct{})}
		w.Workflow = workflow.New(workflow.Config{Store: s, Policy: w.policy.Load, Tools: w.tools, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(w.ctx())
		defer cancel()
		var proposed atomic.Int32
		propose := func(ctx context.Context, key string, change ...func(*workflow.CallerCall)) {
			_, _, err := w.Callers.Propose(ctx, callerCall(key, fmt.Sprintf(`issue_refund {"amount": 1, "note": %q}`, key), change...))
			if err == nil {
				proposed.Add(1)
			} else if ctx.Err() == nil {
				t.Error(err)
			}
		}
		waiting := func(want int32) {
			t.Helper()
			synctest.Wait()
			if n := s.waiting.Load(); n != want {
				t.Errorf("%d transactions wait for the store, want %d", n, want)
			}
		}
		for i := range 20 {
			go propose(ctx, fmt.Sprint("left-", i))
		}
		waiting(8)
		cancel() // the callers disconnect, and free the client's slots
		waiting(0)
		for i := range 50 {
			go propose(w.ctx(), fmt.Sprint("flood-", i))
		}
		waiting(8)
		go propose(w.ctx(), "other", func(c *workflow.CallerCall) { c.Client = other })
		waiting(9)
		close(s.goOn)
		waiting(0)
		if n := proposed.Load(); n != 51 {
			t.Errorf("%d calls were stored", n)
		}
	})
}
