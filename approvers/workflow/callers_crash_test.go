package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/internal/testkit"
	"countersign/store"
)

// callerTransactions are the transactions of workflow.Callers. A process can stop before and after the commit of each
// transaction.
var callerTransactions = []string{
	"Propose", "Claim", "Report", "Withdraw", "Answer", "Overdue", "Start", "HungUp", "Delivered", "Undelivered", "Name", "Told",
}

// callerMoments are the points between two transactions of a webhook's delivery.
var callerMoments = []string{notTold, notToldRecorded}

const (
	notTold         = "a message to a webhook is about to be sent"
	notToldRecorded = "a webhook has accepted a message, but this is not recorded"
)

// otherAgent is an agent that makes one call over the gateway. The agent survives the kills of the bot, and repeats an
// action until the bot has answered.
type otherAgent struct {
	call    workflow.CallerCall
	actions []action
	want    approvers.Outcome // of the last request, if the process is never killed
	begun   bool              // the process was killed during the next action, so the answer to the action is lost
	ids     []string          // of the call's requests
	run     string            // the run that the agent has claimed
}

// action is an action of an agent. If lost is true, the answer to an earlier try of the action is lost. If the action
// returns false, the agent waits.
type action func(w *environment, o *otherAgent, lost bool) bool

func (o *otherAgent) id() string { return o.ids[len(o.ids)-1] }

// acts makes the agent's next action. If the agent waits, or has no action left, acts returns false.
func (o *otherAgent) acts(w *environment) bool {
	if len(o.actions) == 0 {
		return false
	}
	lost := o.begun
	o.begun = true // stays true if the process is killed
	next := o.actions[0]
	done := next(w, o, lost)
	o.begun = false
	if done && len(o.actions) > 0 {
		o.actions = o.actions[1:]
	}
	return done
}

// asks proposes the call for the first time, or again after the last result was delivered.
func asks(w *environment, o *otherAgent, _ bool) bool {
	id := w.callerAsks(o.call)
	o.ids = append(o.ids, id)
	return true
}

// repeats proposes the call again, which must not become another request.
func repeats(w *environment, o *otherAgent, _ bool) bool {
	w.repeats(o.call, o.id())
	return true
}

// awaits waits until the request has one of the statuses.
func awaits(statuses ...string) action {
	return func(w *environment, o *otherAgent, _ bool) bool {
		return slices.Contains(statuses, w.callerView(ci.Name, o.id()).Status())
	}
}

// passes lets time pass.
func passes(d time.Duration) action {
	return func(w *environment, _ *otherAgent, _ bool) bool {
		w.clock.pass(d)
		return true
	}
}

// claims claims an approved call. If the answer to the claim is lost, the agent reports that the call did not run. If
// the bot never got the claim, the agent claims the call again.
func claims(w *environment, o *otherAgent, lost bool) bool {
	o.run = w.callerView(ci.Name, o.id()).Execution.ID
	if lost {
		var p *workflow.CallerProblem
		err := w.Callers.Report(w.ctx(), ci, o.id(), o.run, approvers.ExecutionFailed, "the answer to the claim was lost")
		if !errors.As(err, &p) || p.Code != workflow.CallerNotClaimed {
			w.ok(err)
			o.actions = nil
			return true
		}
	}
	w.ok(w.claims(o.id()))
	return true
}

func runs(w *environment, o *otherAgent, _ bool) bool {
	w.calls[o.run]++
	w.acts[o.run]++
	return true
}

func reports(state approvers.ExecutionState) action {
	return func(w *environment, o *otherAgent, _ bool) bool {
		w.ok(w.Callers.Report(w.ctx(), ci, o.id(), o.run, state, "done"))
		return true
	}
}

func withdraws(w *environment, o *otherAgent, _ bool) bool {
	w.ok(w.Callers.Withdraw(w.ctx(), ci, o.id(), "not needed"))
	return true
}

// answers waits for an approver's question, and answers it.
func answers(w *environment, o *otherAgent, lost bool) bool {
	if len(w.callerView(ci.Name, o.id()).Request.Remarks) == 0 {
		return false
	}
	err := w.Callers.Answer(w.ctx(), ci, o.id(), 0, "the tests passed")
	if p := (*workflow.CallerProblem)(nil); lost && errors.As(err, &p) && p.Code == workflow.CallerNoQuestion {
		return true // the question was answered before
	}
	w.ok(err)
	return true
}

func names(w *environment, o *otherAgent, _ bool) bool {
	w.ok(w.Callers.Name(w.ctx(), ci, "name of "+o.call.Key, o.id(), o.run))
	return true
}

// tells calls a method of workflow.Callers about the agent's request.
func tells(method func(*workflow.Callers, context.Context, approvers.Client, string) error) action {
	return func(w *environment, o *otherAgent, _ bool) bool {
		w.ok(method(w.Callers, w.ctx(), ci, o.id()))
		return true
	}
}

func hangsUp(w *environment, _ *otherAgent, _ bool) bool {
	w.ok(w.Callers.HungUp(w.ctx(), ci, 5*time.Second))
	return true
}

// newCalling returns an environment in which other agents make calls in every way. People approve all calls, and
// report the outcomes of lost runs.
func newCalling(t testing.TB, kill func(point string) bool) *environment {
	w := newEnvironment(t, kill)
	approved, ended := awaits(string(approvers.Approved)), awaits(view.CallerSucceeded, view.CallerFailed)
	starts, delivered, undelivered := tells((*workflow.Callers).Start), tells((*workflow.Callers).Delivered), tells((*workflow.Callers).Undelivered)
	succeeds := reports(approvers.ExecutionSucceeded)
	executes := func(c *workflow.CallerCall) { c.Mode = approvers.ExecuteMode }
	refund := func(n int) string { return fmt.Sprintf(`issue_refund {"amount":%d}`, n) }
	w.deliveries, w.aside = nil, []act{{Who: lead, Remark: approvers.Question}}
	w.others = []*otherAgent{
		// The calls of the first two agents need no approval, so the approvers' question is about the third call.
		{call: callerCall("1", `search_orders {"n":1}`), want: approvers.OutcomeExpired, actions: []action{asks, passes(runWithin), awaits(string(approvers.Expired))}},
		{call: callerCall("2", `search_orders {"n":2}`), want: approvers.OutcomeExecuted, actions: []action{asks, claims, runs, succeeds}},
		{call: callerCall("3", refund(3)), want: approvers.OutcomeExecuted, actions: []action{asks, answers, approved, claims, runs, succeeds}},
		{call: callerCall("4", refund(4)), want: approvers.OutcomeWithdrawn, actions: []action{asks, withdraws}},
		// The report comes after the bot has asked people about the run.
		{call: callerCall("5", refund(5)), want: approvers.OutcomeExecuted, actions: []action{
			asks, approved, claims, names, runs, passes(time.Minute), awaits(view.CallerUnknown), succeeds,
		}},
		// The agent dies after its claim, so people report the outcome.
		{call: callerCall("6", refund(6)), want: approvers.OutcomeError, actions: []action{asks, approved, claims, passes(time.Minute), ended}},
		{call: callerCall("7", refund(7), executes), want: approvers.OutcomeExecuted, actions: []action{asks, repeats, ended}},
		{call: heldCall(refund(8)), want: approvers.OutcomeWithdrawn, actions: []action{
			asks, hangsUp, repeats, approved, starts, ended, delivered, undelivered, repeats, delivered, asks, withdraws,
		}},
	}
	requests := 7 // about which people are asked
	w.policy.Store(policy("policy-1", withClients, func(p *approvers.Policy) {
		c := &p.Clients[0]
		c.MaxPending, c.Requests, c.OutcomeWithin = requests, approvers.Limit{Count: requests, Per: 24 * time.Hour}, time.Minute
		c.Webhook = &approvers.Webhook{URL: "https://ci.example.com/hook"}
	}))
	return w
}

// tellWebhook delivers the latest change of a caller's request to the caller's webhook.
func (w *environment) tellWebhook(ctx context.Context, t store.Timer) error {
	v, err := w.Views.Caller(ctx, t.Lane, t.Ref)
	if err != nil {
		return err
	}
	change, ok := v.Change()
	if !ok || change.Key == v.Conversation.Caller.Told {
		return w.Callers.Told(ctx, t, "", "")
	}
	w.reach(notTold)
	w.told[t.Ref] = change.Key
	w.reach(notToldRecorded)
	return w.Callers.Told(ctx, t, "", change.Key)
}

// checkOthers checks the calls of other agents. The conditions must hold for every point at which the process was
// killed.
func (w *environment) checkOthers() {
	t := w.t
	t.Helper()
	requests := 0
	for _, o := range w.others {
		if len(o.actions) > 0 {
			t.Errorf("the agent of %s still has %d actions to do", o.call.Args, len(o.actions))
		}
		requests += len(o.ids)
		for i, id := range o.ids {
			v := w.callerView(ci.Name, id)
			run := v.Execution
			if n := w.acts[run.ID]; n > 1 || w.calls[run.ID] > 1 || (n == 1) != (run.State == approvers.ExecutionSucceeded) {
				t.Errorf("%s ran %d times, and its run is %s", o.call.Args, n, run.State)
			}
			if n := w.count(run.Chain(), approvers.AuditReturned); n != 1 {
				t.Errorf("%s got %d results", o.call.Args, n)
			}
			if last := i == len(o.ids)-1; last && w.crashes == 0 && v.Call.Outcome != o.want {
				t.Errorf("%s ended as %s, want %s", o.call.Args, v.Call.Outcome, o.want)
			}
			if r := v.Request; r != nil && len(r.ValidApprovals()) > 0 && r.State != approvers.Consumed {
				t.Errorf("the approval of %s is lost: its request is %s", o.call.Args, r.State)
			}
			if change, _ := v.Change(); w.told[id] != change.Key || v.Conversation.Caller.Told != change.Key {
				t.Errorf("the webhook was told %q of %s, and %q is recorded; want %q", w.told[id], o.call.Args, v.Conversation.Caller.Told, change.Key)
			}
		}
	}
	stored := readStore(w.harness, func(r store.Reader) (n int, err error) {
		all, err := r.ConversationsSince(time.Time{}, 1<<20)
		for _, conv := range all {
			own, err := r.Call(conv.Caller.Request)
			if err != nil {
				return 0, err
			}
			n += b2i(own.Conversation == conv.ID) // other conversations only give a request another name
		}
		return n, err
	})
	if stored != requests {
		t.Errorf("%d requests are stored, and the agents know %d", stored, requests)
	}
	if n := len(w.timers(store.TimerRun, store.TimerOutcome, store.TimerWebhook, store.TimerInbox)); n != 0 {
		t.Errorf("%d things are left to do", n)
	}
}

// count returns how many records of a kind a chain has.
func (w *environment) count(chain string, kind approvers.AuditKind) (n int) {
	w.t.Helper()
	for _, a := range readStore(w.harness, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(chain) }) {
		n += b2i(a.Kind == kind)
	}
	return n
}

// TestCallersKilledAtEveryPoint kills the process at each point while other agents make calls. No approval may be lost,
// no call may run twice, and every call must get one result.
func TestCallersKilledAtEveryPoint(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	killedAtEveryPoint(t, newCalling, (*environment).checkOthers)
}

// TestCallersKilledOverAndOver kills each process after a few points while other agents make calls.
func TestCallersKilledOverAndOver(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	killedOverAndOver(t, newCalling, (*environment).checkOthers)
}

// TestCallersCrashPoints compares the points that the environment reaches with callerTransactions and callerMoments.
func TestCallersCrashPoints(t *testing.T) {
	reached := map[string]bool{}
	w := newCalling(t, func(point string) bool {
		reached[point] = true
		return false
	})
	w.life()
	w.checkOthers()
	want := slices.Clone(callerMoments)
	for _, transaction := range callerTransactions {
		want = append(want, transaction+testkit.BeforeCommit, transaction+testkit.BehindCommit)
	}
	for _, point := range want {
		if !reached[point] {
			t.Errorf("no agent reaches the point %q", point)
		}
	}
	known := slices.Concat(want, crashPoints(), []string{"Say" + testkit.BeforeCommit, "Say" + testkit.BehindCommit}) // Say: the approver's question
	for point := range reached {
		if !slices.Contains(known, point) {
			t.Errorf("%q is a crash point that has no name in callerTransactions or callerMoments, nor in docs/crashes.md", point)
		}
	}
}
