package workflow_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
)

const driftedWhy = "its definition changed since it was pinned"

// drift makes a tool's source offer another definition than the pinned definition, so the tool is blocked.
func (h *harness) drift(name string) {
	h.tools.change(name, func(t *workflow.Tool) { t.Hash, t.Blocked = "another definition of "+name, driftedWhy })
}

const lookAtRefund = "issue_refund can't be called now, because its definition changed since it was pinned: the operator has to look at it"

// A tool drifts when its source changes the tool's definition. The tool's pending and approved requests are then voided
// immediately. The card, the model, the audit, and people who click on the old button get the reason.
func TestDriftVoidsWhatWaits(t *testing.T) {
	h := newHarness(t)
	waits, other := h.ask(`issue_refund {"amount":10}`), h.requestIn(h.sayIn("200.1", alice, "please").Turn, `apply_discount {}`)
	approved := h.requestIn(h.sayIn("300.1", alice, "please").Turn, `issue_refund {"amount":20}`)
	h.approve(lead, approved.ID)
	half := h.requestIn(h.sayIn("400.1", alice, "please").Turn, `issue_refund {"amount":900}`)
	h.approve(lead, half.ID)
	h.ok(h.Requests.Reevaluate(h.ctx()))
	old := h.clickOn(lead, approvers.Approve, waits.ID)
	card := h.messagesOf(waits.ID)[0].Revision

	h.drift("issue_refund")
	h.ok(h.Requests.Reevaluate(h.ctx()))
	for _, r := range []approvers.Request{waits, approved, half} {
		now := h.wantState(r.ID, approvers.Voided)
		if now.Reason != lookAtRefund {
			t.Errorf("voided because %q", now.Reason)
		}
		if c := h.wantOutcome(now.Call, approvers.OutcomeVoided); !strings.Contains(c.Result, lookAtRefund) {
			t.Errorf("the model is told %s", c.Result)
		}
		h.notRun(now.Execution)
	}
	h.wantState(other.ID, approvers.Pending)
	if h.messagesOf(waits.ID)[0].Revision == card {
		t.Error("the card is not shown again")
	}
	h.wantKinds(waits.ID, "proposed closed returned")
	_, err := h.Requests.Decide(h.ctx(), old)
	if d := wantDenied(t, err, approvers.DeniedResolved); d.State != approvers.Voided {
		t.Errorf("the old button is answered with %+v", d)
	}
	version := h.request(waits.ID).Version
	h.ok(h.Requests.Reevaluate(h.ctx()))
	if v := h.request(waits.ID).Version; v != version {
		t.Error("a second check changed something")
	}
}

// When a tool changes, all waiting requests are checked. A click or a claim that comes before this check also detects
// the change.
func TestDriftIsFoundByTheFirstReader(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":10}`)
	approved := h.requestIn(h.sayIn("200.1", alice, "please").Turn, `issue_refund {"amount":20}`)
	h.approve(lead, approved.ID)
	automatic := h.propose(h.sayIn("300.1", alice, "please").Turn, `search_orders {}`)[0]
	h.drift("issue_refund")
	h.drift("search_orders")
	_, err := h.Requests.Decide(h.ctx(), h.clickOn(lead, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedResolved)
	h.wantState(r.ID, approvers.Voided)
	h.notRun(approved.Execution)
	h.wantState(approved.ID, approvers.Voided)
	h.notRun(automatic.Execution)
	if c := h.wantOutcome(automatic.ID, approvers.OutcomeVoided); !strings.Contains(c.Result, "search_orders can't be called now") {
		t.Errorf("the model is told %s", c.Result)
	}
}

// A call to a blocked tool is refused with the reason, and nobody is asked to approve the call.
func TestDriftRefusesNewCalls(t *testing.T) {
	h := newHarness(t)
	h.drift("issue_refund")
	c := h.propose(h.say(alice, "please").Turn, `issue_refund {"amount":10}`)[0]
	if c.Request != "" || c.Outcome != approvers.OutcomeError || !strings.Contains(c.Result, lookAtRefund) {
		t.Errorf("%s: %s", c.Outcome, c.Result)
	}
	h.wantKinds(c.ID, "proposed returned")
}

// If the outcome of a run is unknown, people can ask for another run only if the tool's definition is unchanged.
func TestDriftAndAskingAgain(t *testing.T) {
	h := newHarness(t)
	c := h.lost(`issue_refund {"amount":10}`, lead)
	h.drift("issue_refund")
	if d := wantDenied(t, h.again(lead, c.Execution), approvers.DeniedNotAgain); d.Detail != lookAtRefund {
		t.Errorf("%+v", d)
	}
}

// A grant is valid only for the definition for which it was given.
func TestDriftStallsGrants(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting))
	g := h.granted(3)
	c := h.next(oneRefund)
	h.tools.change("issue_refund", func(t *workflow.Tool) { t.Blocked = "nobody has pinned its definition yet" })
	h.notRun(c.Execution)
	h.wantOutcome(c.ID, approvers.OutcomeVoided)
	if s, err := h.Views.Message(h.ctx(), h.messagesOf(g.ID)[0].ID); err != nil || s.Stalled == "" {
		t.Errorf("the grant is not shown as stalled: %+v, %v", s.Stalled, err)
	}
	if g := h.grant(g.ID); g.Left != 3 {
		t.Errorf("%d uses are left", g.Left)
	}
}

// While a tool server is unavailable, requests for its tools keep waiting, even across a restart. The bot has the
// definitions of the server's tools, because their pins are stored.
func TestServerDownLeavesWhatWaits(t *testing.T) {
	h := newHarness(t)
	h.ok(h.Requests.Reevaluate(h.ctx()))
	r := h.ask(`issue_refund {"amount":10}`)
	h.reopen()
	h.ok(h.Requests.Reevaluate(h.ctx()))
	h.wantState(r.ID, approvers.Pending)
	h.approve(lead, r.ID)
	h.run(r.Execution, "RF-1")
}

// If a tool changes while the bot is down, the bot detects the change at its next start.
func TestDriftWhileDown(t *testing.T) {
	h := newHarness(t)
	h.ok(h.Requests.Reevaluate(h.ctx()))
	r := h.ask(`issue_refund {"amount":10}`)
	h.drift("issue_refund")
	h.reopen()
	h.ok(h.Requests.Reevaluate(h.ctx()))
	h.wantState(r.ID, approvers.Voided)
}

// An interrupted run of an idempotent tool is repeated only if the tool's definition is unchanged. A changed tool might
// act twice under the same idempotency key.
func TestDriftDuringARunThatWasCut(t *testing.T) {
	for name, c := range map[string]struct {
		spec  string
		drift bool
		want  approvers.ExecutionState
	}{
		"idempotent, as it was": {`update_address {}`, false, approvers.ExecutionExecuting},
		"idempotent, drifted":   {`update_address {}`, true, approvers.ExecutionUnknown},
		"only reads, drifted":   {`search_orders {}`, true, approvers.ExecutionExecuting}, // the claim succeeds, but package agent does not call a changed tool, so the run fails
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			call := h.propose(h.say(alice, "please").Turn, c.spec)[0]
			if _, run, err := h.Runs.Claim(h.ctx(), call.Execution); err != nil || !run {
				t.Fatalf("%t, %v", run, err)
			}
			h.reopen()
			if c.drift {
				tool, _, _ := strings.Cut(c.spec, " ")
				h.drift(tool)
			}
			if _, _, err := h.Runs.Claim(h.ctx(), call.Execution); err != nil {
				t.Fatal(err)
			}
			if e := h.execution(call.Execution); e.State != c.want {
				t.Errorf("%s, want %s", e.State, c.want)
			}
		})
	}
}

// unknownInstead returns a policy that does not block a drifted tool, but treats the tool as an unknown tool.
func unknownInstead(hash, tool string) *approvers.Policy {
	return policy(hash).With(approvers.Overlay{Distrusted: map[string]string{tool: driftedWhy}})
}

// A policy can treat a drifted tool as an unknown tool. The tool can then be called with its new definition, if the
// approvers of the highest risk approve the call. Requests for the earlier definition are voided.
func TestDriftedCountsAsUnknown(t *testing.T) {
	h := newHarness(t)
	before := h.ask(`issue_refund {"amount":10}`)
	h.drift("issue_refund")
	h.policy.Store(unknownInstead("policy-2", "issue_refund"))
	h.ok(h.Requests.Reevaluate(h.ctx()))
	if r := h.wantState(before.ID, approvers.Voided); r.Reason != "the definition of the tool changed" {
		t.Errorf("voided because %q", r.Reason)
	}
	r := h.requestIn(h.sayIn("200.1", alice, "please").Turn, `issue_refund {"amount":10}`)
	if r.Plan.Risk != approvers.Critical || len(r.Plan.Stages) != 1 || r.Plan.Stages[0].Approver != "finance-director" {
		t.Errorf("%+v", r.Plan)
	}
	h.policy.Store(policy("policy-3")) // the operator changed their mind
	h.ok(h.Requests.Reevaluate(h.ctx()))
	h.wantState(r.ID, approvers.Voided)
}

// If a tool's pin is removed, the tool has the same definition but counts as unpinned. Waiting requests then need the
// approvers of the highest risk.
func TestUnpinnedWhileItWaits(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":10}`)
	h.tools.change("issue_refund", func(t *workflow.Tool) { t.Blocked = "nobody has pinned its definition yet" })
	h.policy.Store(unknownInstead("policy-1", "issue_refund"))
	h.ok(h.Requests.Reevaluate(h.ctx()))
	now := h.wantState(r.ID, approvers.Pending)
	if now.Plan.Risk != approvers.Critical || !strings.Contains(strings.Join(now.Plan.Why, "; "), "did not pin issue_refund") {
		t.Errorf("%+v", now.Plan)
	}
	_, err := h.Requests.Decide(h.ctx(), h.clickOn(lead, approvers.Approve, r.ID))
	var denied *approvers.Denied
	if err == nil && h.request(r.ID).State != approvers.Pending || err != nil && !errors.As(err, &denied) {
		t.Errorf("the lead alone: %v, %s", err, h.request(r.ID).State)
	}
}

// After a drift, all waiting requests are voided, each exactly once. The test has many requests, and kills the process
// before every commit.
func TestDriftSurvivesKills(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	const waiting = 25
	for kill := 1; ; kill++ {
		h := newHarness(t)
		var rs []approvers.Request
		for i := range waiting {
			rs = append(rs, h.requestIn(h.sayIn(fmt.Sprint("t", i), alice, "please").Turn, `issue_refund {"amount":10}`))
		}
		h.ok(h.Requests.Reevaluate(h.ctx()))
		h.drift("issue_refund")
		h.ok(h.store.Close())
		n := 0
		h.open(func(s store.Store) store.Store {
			return &mortal{Store: s, reach: func(point string) {
				if strings.HasSuffix(point, testkit.BeforeCommit) {
					if n++; n == kill {
						panic(stopped{})
					}
				}
			}}
		})
		alive := h.survives(func() { h.ok(h.Requests.Reevaluate(h.ctx())) })
		h.reopen()
		h.ok(h.Requests.Reevaluate(h.ctx()))
		for _, r := range rs {
			h.wantState(r.ID, approvers.Voided)
			h.wantKinds(r.ID, "proposed closed returned")
		}
		if alive {
			if kill < 4 {
				t.Errorf("all was done after %d transactions; want one for each page of requests", kill-1)
			}
			return
		}
	}
}

// Sixteen people approve a request at the moment when its tool drifts. The call either runs once with the old
// definition, or is voided. After the drift is detected, the call must not run. All sixteen people are told the
// outcome.
func TestDriftAgainstSixteenApprovals(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("races", racing))
	h.ok(h.Requests.Reevaluate(h.ctx()))
	ran, voided := 0, 0
	for i := range 40 {
		h.tools.change("cancel_account", func(t *workflow.Tool) { t.Hash, t.Blocked = fmt.Sprint("definition ", i), "" })
		q := h.requestIn(h.sayIn(fmt.Sprint("race ", i), alice, "please").Turn, `cancel_account {}`)
		var people sync.WaitGroup
		var mu sync.Mutex
		runs, looked := 0, false
		start, answered, begun := make(chan struct{}), make(chan struct{}, len(sixteen)), make(chan struct{}, 1)
		people.Go(func() {
			<-start
			if i%4 == 3 { // the run has begun
				<-begun
			}
			for range i % 4 { // none, one or two people approved before
				<-answered
			}
			h.drift("cancel_account")
			h.ok(h.Requests.Reevaluate(h.ctx()))
			mu.Lock()
			looked = true
			mu.Unlock()
		})
		for _, who := range sixteen {
			people.Go(func() {
				<-start
				after, err := h.Requests.Decide(h.ctx(), workflow.Click{
					At: h.clock.Now(), Who: who, Request: q.ID, Kind: approvers.Approve, Whole: true, Typed: true, Digest: q.Digest, Rendering: "alone",
				})
				answered <- struct{}{}
				var denied *approvers.Denied
				if err != nil && !errors.As(err, &denied) {
					t.Error(err)
				}
				if err != nil || after.State != approvers.Approved {
					return
				}
				mu.Lock()
				late := looked
				mu.Unlock()
				e, run, err := h.Runs.Claim(h.ctx(), q.Execution)
				if err != nil {
					t.Error(err)
				}
				if run {
					mu.Lock()
					runs++
					mu.Unlock()
					begun <- struct{}{}
					if late || e.ToolHash != q.ToolHash {
						t.Errorf("it ran after the drift was detected (%t), with the definition %s", late, e.ToolHash)
					}
					h.ok(h.Runs.Finish(h.ctx(), e.ID, true, "ok"))
				}
			})
		}
		close(start)
		people.Wait()
		switch r := h.request(q.ID); {
		case r.State == approvers.Consumed && runs == 1:
			ran++
		case r.State == approvers.Voided && runs == 0:
			voided++
		default:
			t.Fatalf("%s, and it ran %d times", r.State, runs)
		}
	}
	t.Logf("races=40 ran=%d voided=%d", ran, voided)
	if ran == 0 || voided == 0 {
		t.Error("one of the two always wins: they don't race")
	}
}
