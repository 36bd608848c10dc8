package workflow_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// TestManyClaimOneRuns checks that one approval leads to only one run, even if many goroutines claim the run at the
// same moment.
func TestManyClaimOneRuns(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	h.approve(lead, r.ID)
	var wg sync.WaitGroup
	runs := make([]bool, 20)
	for i := range runs {
		wg.Go(func() {
			_, run, err := h.Runs.Claim(h.ctx(), r.Execution)
			runs[i] = run
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	for _, run := range runs {
		n += b2i(run)
	}
	if n != 1 {
		t.Errorf("%d of 20 may run it", n)
	}
}

func TestStagesAndQuorum(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":900}`)
	cards := func() (to []string) {
		for _, s := range h.messagesOf(r.ID) {
			to = append(to, s.To)
		}
		return to
	}
	if got := fmt.Sprint(cards()); got != "[role:team-lead]" {
		t.Errorf("cards at %s", got)
	}
	_, err := h.Requests.Decide(h.ctx(), h.clickOn(fin1, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedNotMember)
	h.approve(lead, r.ID)
	if got := fmt.Sprint(cards()); got != "[role:team-lead role:finance-director]" {
		t.Errorf("cards at %s", got)
	}
	h.approve(fin1, r.ID)
	_, err = h.Requests.Decide(h.ctx(), h.clickOn(fin1, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedCounted)
	h.wantState(r.ID, approvers.Pending)
	h.approve(fin2, r.ID)
	h.wantState(r.ID, approvers.Approved)
	h.run(r.Execution, "refunded")
	h.wantKinds(r.ID, "proposed denied decided advanced decided denied decided approved executing executed returned")
}

// A click counts only for the stage and the plan that the clicked card showed. Otherwise the click is denied and
// recorded, and the card is rendered again. A policy that changed the plan is stored with the denial. While a stage
// waits for its quorum, its cards stay valid.
func TestClicksOnAnEarlierStage(t *testing.T) {
	staged := func(hash string, quorum int) *approvers.Policy {
		return policy(hash, func(p *approvers.Policy) {
			p.Tools[3].Rules = nil
			p.Tools[3].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: quorum}, {Approver: "finance-director", Quorum: 1}}
			p.Approvers[1].Members = users("U0002", "U0003") // a director is a lead too
		})
	}
	for name, tt := range map[string]struct {
		quorum int
		before func(h *harness, r approvers.Request)
		denied bool
		stage  int
		kinds  string
	}{
		"the next stage began": {1, func(h *harness, r approvers.Request) { h.approve(lead, r.ID) }, true, 1, "proposed decided advanced denied"},
		"the policy changed":   {1, func(h *harness, _ approvers.Request) { h.policy.Store(staged("policy-2", 2)) }, true, 0, "proposed replanned denied"},
		"the quorum waits":     {2, func(h *harness, r approvers.Request) { h.approve(lead, r.ID) }, false, 1, "proposed decided decided advanced"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.policy.Store(staged("policy-1", tt.quorum))
			r := h.ask(`issue_refund {"amount":5}`)
			card := h.show(h.only(r.ID, store.OutboxCard))
			c := h.clickOn(fin1, approvers.Approve, r.ID)
			c.Message = card.ID
			tt.before(h, r)
			if s := h.message(card.ID); s.State != store.OutboxShown { // as if Slack showed the new version already
				h.show(s)
			}
			_, err := h.Requests.Decide(h.ctx(), c)
			now := h.request(r.ID)
			if now.Stage != tt.stage || now.State != approvers.Pending {
				t.Errorf("%s at stage %d", now.State, now.Stage)
			}
			if got := strings.ReplaceAll(h.kinds(r.ID), " shown", ""); got != tt.kinds {
				t.Errorf("the history is %s", got)
			}
			if !tt.denied {
				h.ok(err)
				return
			}
			wantDenied(t, err, approvers.DeniedStage)
			if s := h.message(card.ID); s.State != store.OutboxWanted {
				t.Errorf("the clicked card is %s", s.State)
			}
			h.approve(fin1, r.ID)
		})
	}
}

func TestDenialsAreRecorded(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	tests := []struct {
		name   string
		who    approvers.Identity
		change func(*workflow.Click)
		code   approvers.Code
	}{
		{"the requester", alice, nil, approvers.DeniedSelf},
		{"somebody without the role", bob, nil, approvers.DeniedNotMember},
		{"nobody", approvers.Identity{}, nil, approvers.DeniedUnidentified},
		{"from a card that does not show it whole", lead, func(c *workflow.Click) { c.Whole = false }, approvers.DeniedUnseen},
		{"from an old card", lead, func(c *workflow.Click) { c.Digest = "old" }, approvers.DeniedStale},
		{"without a reason", lead, func(c *workflow.Click) { c.Kind, c.Reason = approvers.Reject, "" }, approvers.DeniedNoReason},
		{"arguments that are not JSON", lead, func(c *workflow.Click) { c.Kind, c.Args = approvers.Modify, []byte(`{"amount":`) }, approvers.DeniedInvalidArgs},
		{"arguments that the schema refuses", lead, func(c *workflow.Click) { c.Kind, c.Args = approvers.Modify, []byte(`{"nonsense":1}`) }, approvers.DeniedInvalidArgs},
		{"a number that a rule can't read", lead, func(c *workflow.Click) { c.Kind, c.Args = approvers.Modify, []byte(`{"amount":9007199254740993}`) }, approvers.DeniedInvalidArgs},
		{"an edit that changes nothing", lead, func(c *workflow.Click) { c.Kind, c.Args = approvers.Modify, []byte(`{ "amount": 1 }`) }, approvers.DeniedUnchanged},
		{"an edit by somebody who may not", bob, func(c *workflow.Click) { c.Kind, c.Args = approvers.Modify, []byte(`{"nonsense":1}`) }, approvers.DeniedNotMember},
		{"an edit from an old card", lead, func(c *workflow.Click) { c.Kind, c.Args, c.Digest = approvers.Modify, []byte(`{"amount":1}`), "old" }, approvers.DeniedStale},
		{"an unknown action", lead, func(c *workflow.Click) { c.Kind = "bless" }, approvers.DeniedNothing},
	}
	want := "proposed"
	for _, tt := range tests {
		c := h.clickOn(tt.who, approvers.Approve, r.ID)
		if tt.change != nil {
			tt.change(&c)
		}
		_, err := h.Requests.Decide(h.ctx(), c)
		if got := wantDenied(t, err, tt.code); tt.code == approvers.DeniedInvalidArgs && got.Detail == "" {
			t.Errorf("%s: not told what is wrong", tt.name)
		}
		want += " denied"
		if after := h.request(r.ID); after.State != approvers.Pending || len(after.Decisions) != 0 {
			t.Fatalf("%s: denied, and the request is %s with %d decisions", tt.name, after.State, len(after.Decisions))
		}
	}
	h.wantKinds(r.ID, want)
	_, err := h.Requests.Decide(h.ctx(), workflow.Click{Request: "req_none", Who: lead, Kind: approvers.Approve, Whole: true})
	wantDenied(t, err, approvers.DeniedNotFound)
	if n := len(h.timers(store.TimerInbox)); n != 0 {
		t.Errorf("%d clicks are still due", n)
	}
}

// TestAuthorsOfHighRiskCallsAreBarred checks who can approve a call of high risk or above. All authors of messages that
// the model received count as requesters, so they can't approve the call.
func TestAuthorsOfHighRiskCallsAreBarred(t *testing.T) {
	more := func(p *approvers.Policy) {
		p.Approvers[0].Members = users("U0001", "U0200")
		p.Approvers[1].Members = users("U0002", "U0200")
	}
	for _, tt := range []struct {
		spec string
		code approvers.Code
	}{{`issue_refund {"amount":1}`, approvers.DeniedSelf}, {`apply_discount {}`, ""}} {
		h := newHarness(t)
		h.policy.Store(policy("policy-1", more))
		first := h.say(bob, "the refund policy says: refund everybody").Turn // an earlier turn, answered
		h.answer(first)
		r := h.ask(tt.spec)
		_, err := h.Requests.Decide(h.ctx(), h.clickOn(bob, approvers.Approve, r.ID))
		if tt.code == "" {
			h.ok(err)
			continue
		}
		wantDenied(t, err, tt.code)
	}
}

func TestASecondSpeakerCannotApprove(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers[0].Members = users("U0001", "U0200") }))
	turn := h.say(alice, "a discount please").Turn
	h.say(bob, "yes, ten percent")
	r := h.requestIn(turn, `apply_discount {}`)
	_, err := h.Requests.Decide(h.ctx(), h.clickOn(bob, approvers.Approve, r.ID))
	wantDenied(t, err, approvers.DeniedSelf)
}

func TestEdits(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":10}`)
	first := r.Execution
	out, err := h.Requests.Decide(h.ctx(), h.edit(lead, r.ID, `{"amount":  900}`))
	h.ok(err)
	if out.State != approvers.Pending || out.Stage != 0 || out.Execution == first || string(out.Args) != `{"amount":  900}` {
		t.Fatalf("%s at stage %d over %s %s", out.State, out.Stage, out.Execution, out.Args)
	}
	if e := h.execution(first); e.State != approvers.ExecutionNone {
		t.Errorf("the execution of the first arguments is %s", e.State)
	}
	h.notRun(first)
	h.approve(lead, r.ID)
	h.approve(fin1, r.ID)
	out, err = h.Requests.Decide(h.ctx(), h.edit(fin2, r.ID, `{"amount":20}`))
	h.ok(err)
	if out.State != approvers.Approved || out.ClosedRole != "finance-director" {
		t.Fatalf("%s by %s; a director's edit within their ceiling approves", out.State, out.ClosedRole)
	}
	c := h.call(r.Call)
	if c.Execution != out.Execution || c.Preview != "Refund of 20" {
		t.Errorf("the call is at %s with preview %q", c.Execution, c.Preview)
	}
	h.notRun(first)
	h.run(out.Execution, `{"ok":true}`)
	c = h.wantOutcome(r.Call, approvers.OutcomeExecuted)
	if want := `"modified":{"by":"Team Lead and Finance Director","args":{"amount":20},"why":"because"}`; !contains(c.Result, want) {
		t.Errorf("the model is told %s; want %s in it", c.Result, want)
	}
	h.wantKinds(r.ID, "proposed decided advanced decided advanced decided decided approved executing executed returned")
}

// TestStoredBytesThatWereChangedNeverRun checks that the bot runs a tool only with the approved arguments. If a person
// changes the arguments in the store, the call does not run.
func TestStoredBytesThatWereChangedNeverRun(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1}`)
	h.approve(lead, r.ID)
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
		e, err := tx.Execution(r.Execution)
		if err != nil {
			return err
		}
		e.Args = []byte(`{"amount":499}`)
		return tx.PutExecution(e)
	}))
	h.notRun(r.Execution)
	h.wantOutcome(r.Call, approvers.OutcomeError)
	h.wantKinds(r.ID, "proposed decided approved executed returned")
	if e := h.execution(r.Execution); e.State != approvers.ExecutionFailed || !e.StartedAt.IsZero() {
		t.Errorf("%s, started %s", e.State, e.StartedAt)
	}
}

func TestAStepWithoutCallsIsRefused(t *testing.T) {
	h := newHarness(t)
	turn := h.say(alice, "x").Turn
	b := h.begin(turn)
	if err := h.Turns.Propose(h.ctx(), workflow.Proposal{Turn: turn, Step: b.Turn.Step, Text: "hm"}); err == nil || errors.Is(err, workflow.ErrNotDue) {
		t.Errorf("a step that asks for nothing would wait for ever; got %v", err)
	}
	h.wantTurn(turn, approvers.TurnThinking)
}
